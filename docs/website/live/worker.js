// Python in a worker: the page stays awake whatever a cell does, and ends the worker to stop one.
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { instance } from "./viz/viz.js";

const beside = (path) => new URL(path, import.meta.url).href;
const BYTES = SIZES; // of the large files, by name
const PACKAGES = IMPORTS; // of Pyodide that the site has, by the names that cells import
const ALL = Object.values(BYTES).reduce((sum, size) => sum + size, 0);
const LOADED = 0.7; // the share of the time that loading takes, about

/** Says how much has been loaded, while the large files come in. */
function countBytes() {
  const ask = self.fetch;
  let loaded = 0;
  self.fetch = async (...asked) => {
    const answer = await ask(...asked);
    if (!(new URL(answer.url).pathname.split("/").pop() in BYTES) || !answer.body) return answer;
    const count = new WritableStream({
      write(part) {
        loaded += part.length;
        say((LOADED * loaded) / ALL);
      },
    });
    answer.clone().body.pipeTo(count).catch(() => {}); // whoever reads the answer itself is told
    return answer;
  };
}
const say = (share) => postMessage({ kind: "loading", share: Math.min(share, 0.99) });

async function setUp() {
  countBytes();
  const [pyodide, graphviz, packages] = await Promise.all([
    loadPyodide({ indexURL: beside("pyodide/") }),
    instance(),
    fetch(beside("packages.zip")).then((answer) => answer.arrayBuffer()),
  ]);
  say(0.8);
  const folder = pyodide.runPython("import site; site.getsitepackages()[0]");
  pyodide.unpackArchive(packages, "zip", { extractDir: folder });
  say(0.9);
  const layOut = (source, format, engine) => graphviz.renderString(source, { format, engine });
  const limit = (seconds) => postMessage({ kind: "limit", seconds });
  const python = pyodide.pyimport("cell_runner").in_browser(layOut, limit, Object.keys(PACKAGES));
  const { find_imports: findImports } = pyodide.pyimport("pyodide.code");
  /** Loads the packages that a cell imports, where the site has them. */
  const load = async (code) => {
    const wanted = findImports(code).toJs().map((name) => PACKAGES[name]).filter(Boolean);
    if (wanted.length) await pyodide.loadPackage(wanted, { messageCallback: () => {} });
  };
  return { python, load };
}

const runner = setUp();
runner.then(
  () => postMessage({ kind: "ready" }),
  (error) => postMessage({ kind: "failed", text: String(error) }),
);

onmessage = async ({ data: { number, code, notes } }) => {
  const { python, load } = await runner;
  try {
    await load(code).catch(() => {}); // without the network: Python says that there is no such module
    python.put_notes(notes ?? "");
    const line = python.run(number, code, (kind, text, name) => postMessage({ kind, text, name }));
    postMessage({ kind: "done", line, notes: python.notes() });
  } catch (error) {
    // Python itself has ended: too deep a recursion in C, or no memory left.
    postMessage({ kind: "ended", text: String(error).split("\n")[0] });
  }
};
