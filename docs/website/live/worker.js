// Python in a worker: the page stays awake whatever a cell does, and ends the worker to stop one.
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { instance } from "./viz/viz.js";

const beside = (path) => new URL(path, import.meta.url).href;

async function setUp() {
  const [pyodide, graphviz, packages] = await Promise.all([
    loadPyodide({ indexURL: beside("pyodide/") }),
    instance(),
    fetch(beside("packages.zip")).then((answer) => answer.arrayBuffer()),
  ]);
  const folder = pyodide.runPython("import site; site.getsitepackages()[0]");
  pyodide.unpackArchive(packages, "zip", { extractDir: folder });
  const layOut = (source, format, engine) => graphviz.renderString(source, { format, engine });
  const limit = (seconds) => postMessage({ kind: "limit", seconds });
  return pyodide.pyimport("cell_runner").in_browser(layOut, limit);
}

const runner = setUp();
runner.then(
  () => postMessage({ kind: "ready" }),
  (error) => postMessage({ kind: "failed", text: String(error) }),
);

onmessage = async ({ data: { number, code, notes } }) => {
  const python = await runner;
  try {
    python.put_notes(notes ?? "");
    const line = python.run(number, code, (kind, text, name) => postMessage({ kind, text, name }));
    postMessage({ kind: "done", line, notes: python.notes() });
  } catch (error) {
    // Python itself has ended: too deep a recursion in C, or no memory left.
    postMessage({ kind: "ended", text: String(error).split("\n")[0] });
  }
};
