// Cells that run on the page: Python in a worker, an editor, and the outputs below it.
import { keepNotes, notes } from "./progress.js";

const beside = (path) => new URL(path, import.meta.url);
const cells = [...document.querySelectorAll(".cell")];
const able = typeof WebAssembly === "object" && typeof Worker === "function" && location.protocol.startsWith("http");

const LONGEST = 2 ** 31 - 1; // milliseconds that a timer takes
const LOST = "Its variables are lost: a new Python has taken its place, and the cells above run again.\n";

/** One Python, in a worker of its own. */
class Python {
  constructor() {
    this.worker = new Worker(beside("worker.js"), { type: "module" });
    this.ready = new Promise((resolve, reject) => {
      this.listen = ({ kind, text }) => (kind === "ready" ? resolve() : reject(new Error(text)));
      this.worker.onerror = (event) => reject(new Error(event.message || "the runner could not be loaded"));
    });
    this.ready.catch(() => {}); // whoever runs something is told
    this.worker.onmessage = ({ data }) => this.listen(data);
  }

  /** Runs a cell, and gives what it ends with: "done" and a line, "ended" and a text, "overdue" and seconds, or "stopped". */
  async run(number, code, show) {
    await this.ready;
    const before = notes();
    const ended = (message) => {
      if (message.kind === "done" && message.notes !== before) keepNotes(message.notes);
      return message;
    };
    return new Promise((resolve) => {
      this.stop = () => resolve({ kind: "stopped" });
      this.listen = (message) => {
        if (message.kind === "limit") this.limit(message.seconds, resolve);
        else if (message.kind === "done" || message.kind === "ended") resolve(ended(message));
        else show(message);
      };
      this.worker.onerror = (event) => resolve({ kind: "ended", text: event.message || "the worker ended" });
      this.worker.postMessage({ number, code, notes: before });
    });
  }

  /** An answer to an exercise may run for so many seconds; 0 once it has ended. */
  limit(seconds, overdue) {
    clearTimeout(this.timer);
    if (seconds > 0) this.timer = setTimeout(() => overdue({ kind: "overdue", seconds }), Math.min(seconds * 1000, LONGEST));
  }

  end() {
    clearTimeout(this.timer);
    this.worker.terminate();
    this.stop?.();
  }
}

/** The Python of this page, and the one that waits to take its place. */
const pythons = {
  now: null,
  spare: null,
  current() {
    return (this.now ??= this.spare ?? new Python());
  },
  /** Another one in a moment, so that nobody waits after a stop. A device with little memory does without. */
  warm() {
    if ((navigator.deviceMemory ?? 8) > 2) this.spare ??= new Python();
  },
  replace() {
    this.now?.end();
    this.now = this.spare;
    this.spare = null;
  },
};

const session = { running: null, token: 0 };

class Cell {
  constructor(element, index) {
    this.element = element;
    this.number = index + 1;
    this.source = element.querySelector(".cell-code");
    this.outputs = element.querySelector(".cell-outputs");
    this.original = this.source.querySelector("code").textContent.replace(/\n$/, "");
    this.recorded = [...this.outputs.childNodes].map((node) => node.cloneNode(true));
    this.code = this.original;
    this.ran = null; // the code that this Python has run
    this.stale = false; // whether the outputs are those of an earlier run
    this.bar = document.createElement("div");
    this.bar.className = "cell-bar";
    this.status = document.createElement("span");
    this.status.className = "cell-status";
    this.status.setAttribute("role", "status");
    this.runButton = this.button("Run", `Run cell ${this.number}`, () => (session.running === this ? stop() : run(this)));
    this.runButton.classList.add("cell-run");
    this.runButton.title = "Shift+Enter in the cell";
    this.restoreButton = this.button("Undo changes", `Undo the changes of cell ${this.number}`, () => this.restore());
    this.restoreButton.hidden = true;
    this.bar.append(this.runButton, this.restoreButton, this.status);
    this.source.after(this.bar);
    this.outputs.setAttribute("role", "group");
    this.outputs.setAttribute("aria-label", `Output of cell ${this.number}`);
  }

  button(text, label, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    return button;
  }

  async open(edit) {
    const place = document.createElement("div");
    place.className = "cell-editor";
    this.editor = edit(place, this.code, `Python, cell ${this.number}. Escape, then Tab leaves the editor.`, {
      run: () => run(this),
      changed: (code) => this.changed(code),
    });
    this.source.replaceChildren(place);
  }

  changed(code) {
    this.code = code;
    this.restoreButton.hidden = code === this.original;
    if (session.running !== this) this.say(this.ran !== null && this.ran !== code ? "changed since it ran" : "");
  }

  restore() {
    this.code = this.original;
    this.editor?.write(this.original);
    this.changed(this.original);
    this.runButton.focus();
  }

  say(text) {
    this.status.textContent = text;
  }

  /** Running, or not: the button stops what it started. */
  show(running) {
    this.element.classList.toggle("running", running);
    this.runButton.textContent = running ? "Stop" : "Run";
    this.runButton.setAttribute("aria-label", `${running ? "Stop" : "Run"} cell ${this.number}`);
  }

  /** Takes away what an earlier run gave: once something new is there, so that the page does not jump. */
  clear() {
    if (this.stale) this.outputs.replaceChildren();
    this.stale = false;
  }

  /** Goes back to what was recorded when the site was built. */
  forget() {
    this.ran = null;
    this.outputs.replaceChildren(...this.recorded.map((node) => node.cloneNode(true)));
    widen(this.outputs);
    this.editor?.point(0);
    this.say("");
  }

  receive({ kind, text, name }) {
    this.clear();
    this.outputs.append(...made(kind, text, name, this.outputs.lastElementChild));
  }
}

/** The elements that show an output; text after text of the same kind goes on in the same element. */
function made(kind, text, name, last) {
  if (kind === "text" || kind === "warning" || kind === "error") {
    if (last?.dataset.kind === kind) {
      last.firstChild.append(text);
      return [];
    }
    const block = document.createElement("pre");
    block.dataset.kind = kind;
    block.tabIndex = 0; // long lines are scrolled by keyboard, too
    block.append(document.createElement("code"));
    block.firstChild.append(text);
    return [block];
  }
  if (kind === "picture") {
    const picture = document.createElement("img");
    picture.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    picture.addEventListener("load", () => URL.revokeObjectURL(picture.src));
    picture.alt = `picture: ${name}`;
    const figure = document.createElement("figure");
    figure.dataset.kind = kind;
    figure.tabIndex = 0;
    figure.append(picture);
    return [figure];
  }
  const frame = document.createElement("iframe");
  frame.dataset.kind = kind;
  frame.sandbox = kind === "page" ? "allow-scripts allow-downloads" : "";
  frame.title = name;
  frame.srcdoc = kind === "page" ? text : `<meta charset="utf-8"><style>body{font:14px system-ui}</style>${text}`;
  return [frame, wide(frame)];
}

/** Gives each page that was recorded its button. */
function widen(place) {
  for (const frame of place.querySelectorAll("iframe")) frame.after(wide(frame));
}

/** Pages in frames are light or dark as the site is. */
const themeOfSite = () => (document.body.getAttribute("data-md-color-scheme") === "slate" ? "dark" : "light");
const tellTheme = (frame) => frame.contentWindow?.postMessage({ theme: themeOfSite() }, "*"); // its origin has no name
addEventListener("message", ({ source, data }) => {
  const frame = [...document.querySelectorAll(".cell-outputs iframe")].find(({ contentWindow }) => contentWindow === source);
  if (frame && data?.height > 0) frame.style.height = `${Math.min(data.height, 0.9 * innerHeight)}px`;
});
new MutationObserver(() => document.querySelectorAll(".cell-outputs iframe").forEach(tellTheme)).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
});
document.addEventListener("load", ({ target }) => target.matches?.(".cell-outputs iframe") && tellTheme(target), true);

/** A button that gives a page the whole screen. */
function wide(frame) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cell-wide";
  button.textContent = "Full screen";
  button.setAttribute("aria-label", `Full screen: ${frame.title}`);
  button.addEventListener("click", () => frame.requestFullscreen?.());
  return button;
}

/** Runs a cell, after those above it that this Python has not run. */
async function run(cell) {
  if (session.running) return;
  const above = live.slice(0, cell.number - 1).filter((other) => other.ran === null);
  for (const next of [...above, cell]) if (!(await runOne(next))) return;
  keepForLater();
  setTimeout(() => pythons.warm(), 500);
}

async function runOne(cell) {
  const token = session.token;
  const code = cell.code;
  session.running = cell;
  cell.show(true);
  cell.say(pythons.now || pythons.spare ? "running" : "starting Python, once for this page");
  cell.stale = true;
  let end, began, soon;
  try {
    const python = pythons.current();
    await python.ready;
    if (token !== session.token) return false;
    cell.say("running");
    began = performance.now();
    soon = setTimeout(() => pythons.warm(), 2000); // it may have to be stopped
    end = await python.run(cell.number, code, (message) => cell.receive(message));
  } catch (error) {
    end = { kind: "failed", text: String(error.message ?? error) };
  }
  clearTimeout(soon);
  if (token !== session.token) return false; // stopped, or begun anew
  cell.clear();
  session.running = null;
  cell.show(false);
  if (end.kind === "done") {
    cell.ran = code;
    cell.editor?.point(end.line);
    const seconds = (performance.now() - began) / 1000;
    cell.say(end.line === 0 ? (seconds < 1 ? "done" : `done in ${seconds.toFixed(1)} s`) : "an error: see below");
    return end.line === 0;
  }
  if (end.kind === "failed") {
    pythons.now = null;
    cell.receive({ kind: "error", text: `Python could not be started here: ${end.text}\n` });
    cell.say("not run");
    return false;
  }
  if (end.kind === "overdue") {
    const why = "is there a loop that never ends? `seconds=60` gives it more time.";
    cell.receive({ kind: "error", text: `The answer was stopped after ${end.seconds} s: ${why} ${LOST}` });
    await startAnew(cell, "stopped");
    return false;
  }
  const why = "It is too deep a recursion, or no memory is left.";
  cell.receive({ kind: "error", text: `Python itself has ended (${end.text}). ${why} ${LOST}` });
  await startAnew(cell, "ended");
  return false;
}

/** Ends the worker; the spare one takes its place, and runs the cells above again. */
async function stop() {
  const cell = session.running;
  if (!cell) return;
  session.running = null;
  session.token++;
  cell.show(false);
  cell.receive({ kind: "warning", text: `Stopped. ${LOST}` });
  await startAnew(cell, "stopped");
}

async function startAnew(cell, word) {
  const above = live.slice(0, cell.number - 1).filter((other) => other.ran !== null);
  pythons.replace();
  for (const other of live) other.ran = null;
  cell.say(word);
  for (const other of above) if (!(await runOne(other))) return;
  cell.say(above.length ? `${word}; the cells above have run again` : word);
  setTimeout(() => pythons.warm(), 500);
}

/** Python anew, and every output as it was recorded; what was typed stays. */
function reset() {
  session.running?.show(false);
  session.running = null;
  session.token++;
  if (pythons.now) pythons.replace();
  for (const cell of live) cell.forget();
  setTimeout(() => pythons.warm(), 500);
}

/** Buttons for the whole page, above its first cell. */
function pageBar() {
  const bar = document.createElement("div");
  bar.className = "cell-page-bar";
  const runAll = live[0].button("Run all", "Run all cells of this page", async () => {
    if (session.running) return;
    for (const cell of live) if (!(await runOne(cell))) return;
    keepForLater();
    setTimeout(() => pythons.warm(), 500);
  });
  const anew = live[0].button("Reset", "Reset: Python anew, and the outputs as recorded", reset);
  const note = document.createElement("span");
  note.textContent = "This Python runs on your own machine. Change a cell, and run it.";
  bar.append(runAll, anew, note);
  live[0].element.before(bar);
}

/** Has the service worker keep what the runner is made of, so that it runs without the network. */
async function keepForLater() {
  const registration = await navigator.serviceWorker?.ready;
  const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  registration?.active?.postMessage({ kind: "keep", loaded });
}

let live = [];
if (!able) {
  for (const cell of cells) cell.classList.add("recorded");
  if (cells.length) {
    const note = document.createElement("p");
    note.className = "cell-note";
    note.textContent = "This browser, or a page opened from the disk, cannot run Python: outputs are shown as recorded.";
    cells[0].before(note);
  }
} else if (cells.length) {
  live = cells.map((element, index) => new Cell(element, index));
  pageBar();
  const start = () => pythons.current();
  for (const cell of live) cell.element.addEventListener("pointerdown", start, { once: true });
  import("./editor/editor.js").then(({ edit }) => live.forEach((cell) => cell.open(edit))).catch(() => {});
}
for (const place of document.querySelectorAll(".cell-outputs")) widen(place);

if ("serviceWorker" in navigator && window.isSecureContext && location.protocol.startsWith("http"))
  navigator.serviceWorker.register(beside("../service-worker.js")).catch(() => {});
