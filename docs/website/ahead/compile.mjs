// node compile.mjs LIVE: compiles Python's library and the packages of the site's folder live/, in their places.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const live = resolve(process.argv[2]);
const [library, packages] = [`${live}/pyodide/python_stdlib.zip`, `${live}/packages.zip`];
const { loadPyodide } = await import(pathToFileURL(`${live}/pyodide/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${live}/pyodide/` });
const folder = python.runPython("import site; site.getsitepackages()[0]");
python.unpackArchive(new Uint8Array(readFileSync(packages)), "zip", { extractDir: folder });
python.FS.writeFile("/library.zip", readFileSync(library));
python.FS.writeFile("/packages.zip", readFileSync(packages));
python.runPython(readFileSync(new URL("compiling.py", import.meta.url), "utf8"));
python.globals.set("folder", folder);
python.runPython(`
from pathlib import Path
library = next(path for path in sys.path if path.endswith(".zip"))
loaded = load("cell_runner", "micrograd", "graphviz")
Path("/library.zip").write_bytes(compiled(Path("/library.zip").read_bytes(), library, loaded, False))
Path("/packages.zip").write_bytes(compiled(Path("/packages.zip").read_bytes(), folder, loaded, True))
`);
writeFileSync(library, python.FS.readFile("/library.zip"));
writeFileSync(packages, python.FS.readFile("/packages.zip"));
process.exit(0);
