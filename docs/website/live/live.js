// Cells that run on the page: Python in a worker, an editor, and the outputs below it.
import { workButtons } from "./buttons.js";
import { button, element } from "./elements.js";
import { made, widen } from "./outputs.js";
import { pythons } from "./python.js";
import { slidesButton } from "./slides.js";
import { keepText, linked, linkTo, textOf } from "./work.js";
import "./exercises.js";

const beside = (path) => new URL(path, import.meta.url);
const cells = [...document.querySelectorAll(".cell")];
const able = typeof WebAssembly === "object" && typeof Worker === "function" && location.protocol.startsWith("http");

const LOST = "Its variables are lost: a new Python has taken its place, and the cells above run again.\n";

/** What runs, what waits for it, and a number that changes with each new Python. */
const session = { running: null, queue: [], pumping: false, token: 0 };

class Cell {
  constructor(place, index) {
    this.element = place;
    this.number = index + 1;
    this.source = place.querySelector(".cell-code");
    this.outputs = place.querySelector(".cell-outputs");
    this.original = this.source.querySelector("code").textContent.replace(/\n$/, "");
    this.recorded = [...this.outputs.childNodes].map((node) => node.cloneNode(true));
    this.code = this.original;
    this.ran = null; // the code that this Python has run
    this.stale = false; // whether the outputs are those of an earlier run
    this.status = element("span", { className: "cell-status", role: "status" });
    this.clock = element("span", { className: "cell-clock", ariaHidden: "true" }); // a status would be read out each second
    this.loading = element("progress", { className: "cell-loading", max: 1, ariaLabel: "Python is starting", hidden: true });
    this.runButton = button("Run", `Run cell ${this.number}`, () => this.press());
    this.runButton.classList.add("cell-run");
    this.runButton.title = "Shift+Enter in the cell";
    this.restoreButton = button("Undo changes", `Undo the changes of cell ${this.number}`, () => this.restore());
    this.restoreButton.hidden = true;
    this.linkButton = button("Link", `Copy a link with the code of cell ${this.number}`, () => this.link());
    this.source.after(element("div", { className: "cell-bar" }, this.runButton, this.restoreButton, this.linkButton, this.loading, this.status, this.clock));
    this.outputs.setAttribute("role", "group");
    this.outputs.setAttribute("aria-label", `Output of cell ${this.number}`);
  }

  /** Takes what was typed here before, or what it is told; it is kept with the next change only. */
  take(code) {
    this.code = code;
    this.restoreButton.hidden = code === this.original;
    if (!this.editor) this.source.querySelector("code").textContent = code;
    else this.editor.write(code);
  }

  open(edit) {
    const place = element("div", { className: "cell-editor" });
    this.editor = edit(place, this.code, `Python, cell ${this.number}. Escape, then Tab leaves the editor.`, {
      run: () => run(this),
      changed: (code) => this.code !== code && this.changed(code),
    });
    this.source.replaceChildren(place);
  }

  changed(code) {
    this.code = code;
    this.restoreButton.hidden = code === this.original;
    const isKept = keepText(this, code);
    if (session.running === this || this.isQueued()) return;
    const words = this.ran !== null && this.ran !== code ? ["changed since it ran"] : [];
    if (!isKept) words.push("this browser keeps nothing: export your work before you leave");
    this.say(words.join("; "));
  }

  restore() {
    this.changed(this.original);
    this.take(this.original);
    this.runButton.focus();
  }

  async link() {
    const address = await linkTo(this.number, this.code);
    try {
      await navigator.clipboard.writeText(address);
      this.say("link copied: it has this code in it");
    } catch {
      history.replaceState(null, "", address);
      this.say("the link, with this code in it, is in the address bar");
    }
  }

  isQueued() {
    return session.queue.some(({ cell }) => cell === this);
  }

  /** The button starts the cell; or stops it, or what it waits for, where it was started. */
  press() {
    if (session.running === this) stop();
    else if (this.isQueued()) cancel(this);
    else run(this);
  }

  say(text) {
    this.status.textContent = text;
  }

  /** Running, waiting, or neither: the button stops what it started. */
  show() {
    const word = session.running === this ? "Stop" : this.isQueued() ? "Cancel" : "Run";
    this.element.classList.toggle("running", word === "Stop");
    this.element.classList.toggle("queued", word === "Cancel");
    if (this.runButton.textContent === word) return;
    this.runButton.textContent = word;
    this.runButton.setAttribute("aria-label", `${word} cell ${this.number}`);
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
    this.show();
  }

  receive({ kind, text, name }) {
    this.clear();
    this.outputs.append(...made(kind, text, name, this.outputs.lastElementChild));
  }
}

/** Runs a cell, after those above it that this Python has not run, and after what was started before. */
function run(cell) {
  const above = live.slice(0, cell.number - 1).filter((other) => other.ran === null && other !== session.running && !other.isQueued());
  return enqueue([...above, cell]);
}

/** Has cells wait for their turn. Gives, once they have all run, whether none of them failed. */
function enqueue(wanted) {
  const turns = wanted.filter((cell) => !cell.isQueued()).map((cell) => new Promise((done) => session.queue.push({ cell, done })));
  showQueue();
  pump();
  return Promise.all(turns).then((fine) => fine.every(Boolean));
}

function showQueue() {
  session.queue.forEach(({ cell }, place) => {
    const before = place ? session.queue[place - 1].cell : session.running;
    if (before) cell.say(cell === session.running ? "running, and then once more" : `waits for cell ${before.number}`);
  });
  for (const cell of live) cell.show();
}

/** Takes cells out of the queue, which then say so. */
function drop(dropped, words) {
  session.queue = session.queue.filter((turn) => !dropped.includes(turn));
  for (const { cell, done } of dropped) {
    cell.say(words);
    done(false);
  }
  showQueue();
}
const cancel = (cell) => drop(session.queue.filter((turn) => turn.cell === cell), "");

async function pump() {
  if (session.pumping) return;
  session.pumping = true;
  while (session.queue.length) {
    const { cell, done } = session.queue.shift();
    const { token } = session;
    const fine = await runOne(cell);
    done(fine);
    if (!fine && token === session.token) drop(session.queue, `not run: see cell ${cell.number}`); // they were to follow it
  }
  session.pumping = false;
  if (!pythons.now) return;
  keepForLater();
  pythons.warm();
}

/** Shows how long a cell has been running, or how much of Python is there; gives what ends that. */
function watch(cell, python) {
  const began = performance.now();
  const show = () => {
    const starting = python.share < 1;
    cell.loading.hidden = !starting;
    cell.loading.value = python.share;
    const seconds = Math.floor((performance.now() - began) / 1000);
    cell.clock.textContent = starting ? `${Math.floor(100 * python.share)} %` : seconds ? `${seconds} s` : "";
  };
  show();
  const timer = setInterval(show, 200);
  return () => {
    clearInterval(timer);
    cell.loading.hidden = true;
    cell.clock.textContent = "";
  };
}

async function runOne(cell) {
  const { token } = session;
  const { code } = cell;
  session.running = cell;
  cell.stale = true;
  let end, began, soon;
  let unwatch = () => {};
  try {
    const python = pythons.current();
    unwatch = watch(cell, python);
    cell.say(python.share < 1 ? "Python is starting, once for this page" : "running");
    showQueue();
    await python.ready;
    if (token !== session.token) return false;
    unwatch();
    unwatch = watch(cell, python);
    cell.say("running");
    began = performance.now();
    soon = pythons.warm(2000); // it may have to be stopped
    end = await python.run(cell.number, code, (message) => token === session.token && cell.receive(message));
  } catch (error) {
    end = { kind: "failed", text: String(error.message ?? error) };
  } finally {
    unwatch();
    clearTimeout(soon);
  }
  if (token !== session.token) return false; // stopped, or begun again
  cell.clear();
  session.running = null;
  if (end.kind === "done") {
    cell.ran = code;
    cell.editor?.point(end.line);
    const seconds = (performance.now() - began) / 1000;
    cell.say(end.line !== 0 ? "an error: see below" : cell.code !== code ? "changed since it ran" : seconds < 1 ? "done" : `done in ${seconds.toFixed(1)} s`);
    showQueue();
    return end.line === 0;
  }
  if (end.kind === "failed") {
    pythons.now = null;
    const why = navigator.onLine ? "" : " There is no network, and this browser has not kept all of Python yet.";
    cell.receive({ kind: "error", text: `Python could not be started here: ${end.text}\n${why}` });
    cell.say("not run");
    showQueue();
    return false;
  }
  if (end.kind === "overdue") {
    const why = "is there a loop that never ends? `seconds=60` gives it more time.";
    cell.receive({ kind: "error", text: `The answer was stopped after ${end.seconds} s: ${why} ${LOST}` });
    startAgain(cell, "stopped");
    return false;
  }
  const why = "It is too deep a recursion, or no memory is left.";
  cell.receive({ kind: "error", text: `Python itself has ended (${end.text}). ${why} ${LOST}` });
  startAgain(cell, "ended");
  return false;
}

/** Ends the worker; the spare one takes its place, and runs the cells above again. */
function stop() {
  const cell = session.running;
  cell.receive({ kind: "warning", text: `Stopped. ${LOST}` });
  startAgain(cell, "stopped");
}

async function startAgain(cell, word) {
  const above = live.slice(0, cell.number - 1).filter((other) => other.ran !== null);
  endPython();
  cell.say(word);
  if (!(await enqueue(above))) return;
  cell.say(above.length ? `${word}; the cells above have run again` : word);
}

/** Ends Python with all that it had, and what waited for it. */
function endPython() {
  session.token++;
  session.running = null;
  if (pythons.now) pythons.replace();
  for (const other of live) other.ran = null;
  drop(session.queue, "");
}

/** Python again, and every output as it was recorded; what was typed stays. */
function reset() {
  endPython();
  for (const cell of live) cell.forget();
  pythons.warm();
}

/** What can be done with the whole page, above its first cell. */
function pageBar() {
  const bar = element("div", { className: "cell-page-bar" });
  const runAll = button("Run all", "Run all cells of this page", () => enqueue(live.filter((cell) => cell !== session.running)));
  const again = button("Reset", "Reset: Python again, and the outputs as recorded", reset);
  const work = element("details", { className: "cell-work" }, element("summary", {}, "My work"));
  const [, chapter] = /\/learn\/(\d\d-[\w-]+)\.html$/.exec(location.pathname) ?? [];
  work.append(element("div", {}, ...workButtons()), element("p", {}, "What you type is kept in this browser only. A file takes it to another one."));
  if (chapter) work.append(element("p", {}, element("a", { href: `${chapter}.ipynb`, download: "" }, "This chapter as a notebook")));
  bar.append(runAll, again, ...(chapter ? [slidesButton()] : []), work, element("span", {}, "This Python runs on your own machine. Change a cell, and run it."), offline);
  live[0].element.before(bar);
}

/** A link past the menus, to the first cell: the first that the Tab key reaches. */
function skipLink() {
  const act = (event) => {
    event.preventDefault();
    live[0].element.closest("details")?.setAttribute("open", "");
    live[0].element.scrollIntoView({ block: "center" });
    (live[0].element.querySelector(".cm-content") ?? live[0].runButton).focus();
  };
  document.body.prepend(element("a", { className: "skip-to-cell", href: "#cell-1", onclick: act }, "Skip to the first cell"));
}

const offline = element("span", { className: "cell-offline", role: "status" });
/** Has the service worker keep the whole path, so that it is there without the network. */
async function keepForLater() {
  if (navigator.connection?.saveData) return;
  const registration = await navigator.serviceWorker?.ready;
  registration?.active?.postMessage({ kind: "keep" });
}

/** What was typed here before, or came with a link. */
async function bringBack() {
  const found = await linked();
  for (const cell of live) {
    const code = found?.number === cell.number && found.code !== null ? found.code : textOf(cell, live);
    if (code !== null && code !== cell.code) cell.take(code);
  }
  const cell = found && live[found.number - 1];
  if (!cell) return;
  history.replaceState(null, "", `#cell-${found.number}`);
  cell.element.scrollIntoView({ block: "center" });
  cell.say(found.code === null ? "the link is damaged: this is the code of the page" : "the code came with the link, and has not been run. Your own comes back when the page is loaded again");
}

const openEditors = () => import("./editor/editor.js").then(({ edit }) => live.forEach((cell) => cell.open(edit))).catch(() => {});
/** The editor is large: the home page loads it when a cell comes near, or is wanted. */
function openWhenSeen() {
  const seen = new IntersectionObserver((all) => {
    if (!all.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    openEditors();
  });
  for (const cell of live) seen.observe(cell.element);
}

let live = [];
const home = document.getElementById("home-moons");
if (home) import("./home.js").catch(console.error); // then its text stays
if (!able) {
  for (const cell of cells) cell.classList.add("recorded");
  if (cells.length) cells[0].before(element("p", { className: "cell-note" }, "This browser, or a page opened from the disk, cannot run Python: outputs are shown as recorded."));
} else if (cells.length) {
  live = cells.map((place, index) => new Cell(place, index));
  pageBar();
  skipLink();
  addEventListener("work", bringBack);
  const start = () => pythons.current();
  for (const cell of live) cell.element.addEventListener("pointerdown", start, { once: true });
  bringBack();
  if (home) openWhenSeen();
  else openEditors();
}
for (const place of document.querySelectorAll(".cell-outputs")) widen(place);

if ("serviceWorker" in navigator && window.isSecureContext && location.protocol.startsWith("http")) {
  navigator.serviceWorker.register(beside("../service-worker.js")).then(() => setTimeout(keepForLater, 3000)).catch(() => {});
  navigator.serviceWorker.addEventListener("message", ({ data: { kind, count, of } }) => {
    if (kind === "keeping") offline.textContent = `Being kept for reading without a network: ${Math.floor((100 * count) / of)} %`;
    if (kind === "kept") offline.textContent = count === of ? "The whole path works without a network." : `Without a network, ${of - count} of ${of} files would be missing.`;
  });
}
