// What is done of the exercises: shown beside each, with hints and solutions, on the chapters and on the list of all.
import { button, element } from "./elements.js";
import { entries, keepNotes, KEY, noteHelp, notes } from "./notes.js";
import { workButtons } from "./buttons.js";

const CHAPTER = /\/learn\/(\d\d)-[^/]*$/;
const INDEX = /\/learn\/(index\.html)?$/;
const LIST = /\/learn\/exercises\.html$/;
let chapters = []; // each with its number, title, page, and its exercises: [number, title]

/** How far an exercise is: "new", "tried" or "solved". */
function stateOf(number, known) {
  const { right, tries, hints, solution } = known[number] ?? {};
  return right ? "solved" : tries || hints || solution ? "tried" : "new";
}

/** A mark for each exercise of a chapter, and how many are right. */
function marks({ exercises }, known) {
  const right = exercises.map(([number]) => known[number]?.right === true);
  const dots = element("span", { className: "progress-dots", ariaHidden: "true" }, right.map((each) => (each ? "●" : "○")).join(""));
  return element("span", { className: "progress-marks" }, dots, ` ${right.filter(Boolean).length} of ${right.length} right`);
}

/** Which exercise comes next, as a link; null when all are done. */
function nextOne(known) {
  const chapter = chapters.find(({ exercises }) => exercises.some(([number]) => !known[number]?.right));
  const [number, title, cell] = chapter?.exercises.find(([number]) => !known[number]?.right) ?? [];
  return number ? element("a", { href: `${chapter.page}#cell-${cell}` }, `${number}, ${title}`) : null;
}

let help = null;
/** The hints and the solution of an exercise; the file with all of them is loaded once. */
async function helpWith(number) {
  help ??= fetch(new URL("hints.json", import.meta.url)).then((answer) => answer.json());
  help.catch(() => (help = null));
  return (await help)[number];
}

/** The buttons of an exercise, and what they have shown. */
function helpButtons(number) {
  const place = element("div", { className: "exercise-help", role: "status" });
  let seen = 0;
  const attempt = (act) => async () => {
    try {
      act(await helpWith(number));
    } catch {
      place.replaceChildren(element("p", {}, "The hints could not be loaded: is there a network?"));
    }
  };
  const hint = button("Hint", `A hint for exercise ${number}`, attempt(({ hints }) => {
    seen++;
    place.append(element("p", {}, element("strong", {}, `Hint ${seen} of ${hints.length}. `), hints[seen - 1]));
    noteHelp(number, { hints: seen });
    if (seen === hints.length) hint.remove();
    else hint.textContent = "Another hint";
  }));
  const solution = button("Solution", `A solution of exercise ${number}`, attempt((found) => {
    place.append(element("p", {}, element("strong", {}, "One way to do it:")), element("pre", { tabIndex: 0 }, element("code", {}, found.solution)));
    noteHelp(number, { solution: true });
    solution.remove();
  }));
  return [element("div", { className: "exercise-bar" }, element("span", { className: "exercise-state" }), hint, solution), place];
}

const shown = new Map(); // the bars of the exercises on this page, by number
/** Gives each exercise of a page its buttons, once. */
function decorate() {
  for (const title of document.querySelectorAll("article p > strong:first-child")) {
    const [number] = /^\d+\.\d+(?= )/.exec(title.textContent) ?? [];
    if (!number || shown.has(number)) continue;
    const parts = helpButtons(number);
    let last = title.parentElement; // the task may go on below its first paragraph, up to its cell
    while (last.nextElementSibling && !last.nextElementSibling.matches(".cell, .cell-recorded, h1, h2, h3, p:has(> strong:first-child), .exercise-bar")) last = last.nextElementSibling;
    last.after(...parts);
    if (LIST.test(location.pathname)) { // its last line is the link to the cell
      parts[0].append(last.firstElementChild);
      last.remove();
    }
    shown.set(number, { title, bar: parts[0] });
  }
}

function show() {
  for (const old of document.querySelectorAll(".progress, .progress-marks")) old.remove();
  if (!chapters.length) return;
  const known = entries();
  for (const [number, { title, bar }] of shown) {
    const state = stateOf(number, known);
    title.classList.toggle("exercise-done", state === "solved");
    bar.dataset.state = bar.querySelector(".exercise-state").textContent = state;
  }
  const here = CHAPTER.exec(location.pathname);
  if (here) showChapter(chapters.find(({ number }) => number === Number(here[1])), known);
  else showPath(known);
}

function showChapter(chapter, known) {
  if (!chapter) return;
  document.querySelector("article h1").after(element("p", { className: "progress" }, "Exercises of this chapter: ", marks(chapter, known)));
}

function showPath(known) {
  const all = chapters.flatMap(({ exercises }) => exercises);
  const count = all.filter(([number]) => known[number]?.right).length;
  const next = nextOne(known);
  const told = element("p", { className: "progress" }, `${count} of ${all.length} exercises are right`, next ? "; next: " : ". All done.");
  if (next) told.append(next, next.textContent.endsWith("?") ? " " : ". ");
  const isList = LIST.test(location.pathname);
  if (!isList) told.append(element("a", { href: "exercises.html" }, "All exercises"), " ");
  if (notes()) told.append(element("button", { type: "button", onclick: () => confirm("Forget all progress that is kept in this browser?") && keepNotes("") }, "Forget it"));
  const list = isList ? document.querySelector("article h2") : document.querySelector("article ol");
  list.before(told);
  const places = isList ? document.querySelectorAll("article h2") : document.querySelectorAll("article ol > li");
  for (const place of places) {
    const number = isList ? parseInt(place.textContent, 10) : Number(CHAPTER.exec(new URL(place.querySelector("a").href).pathname)?.[1]);
    const chapter = chapters.find((each) => each.number === number);
    if (chapter) place.append(" ", marks(chapter, known));
  }
}

if ([CHAPTER, INDEX, LIST].some((kind) => kind.test(location.pathname))) {
  addEventListener("storage", ({ key }) => (key === KEY || key === null) && show()); // another page has changed them
  addEventListener("notes", show);
  fetch(new URL("exercises.json", import.meta.url)).then((answer) => answer.json()).then((listed) => {
    chapters = listed;
    if (!INDEX.test(location.pathname)) decorate();
    if (LIST.test(location.pathname)) document.querySelector("article h1").after(element("div", { className: "cell-page-bar" }, ...workButtons()));
    show();
  }).catch(() => {});
}
