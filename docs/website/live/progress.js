// What a learner has done: kept in this browser, shown on the pages of the path, and sent nowhere.
const KEY = "micrograd-progress";
const CHAPTER = /\/learn\/(\d\d)-[^/]*$/;
const INDEX = /\/learn\/(index\.html)?$/;
let unkept = ""; // where the browser keeps nothing

/** The notes as micrograd.learn writes them; "" for none. */
export function notes() {
  try {
    return localStorage.getItem(KEY) ?? unkept;
  } catch {
    return unkept;
  }
}

/** Keeps other notes; "" forgets them. */
export function keepNotes(text) {
  unkept = text;
  try {
    if (text) localStorage.setItem(KEY, text);
    else localStorage.removeItem(KEY);
  } catch {
    // they last as long as this page
  }
  show();
}

/** The numbers of the exercises that are right. */
function done() {
  try {
    return new Set(Object.entries(JSON.parse(notes()).exercises).flatMap(([number, note]) => (note.right ? [number] : [])));
  } catch {
    return new Set(); // there are none, or they are damaged: mg.learn.progress() says so
  }
}

let chapters = []; // each with its number, title, page, and its exercises: [number, title]

function element(name, attributes, ...parts) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...parts);
  return made;
}

/** A mark for each exercise of a chapter, and how many are right. */
function marks({ exercises }, right) {
  const count = exercises.filter(([number]) => right.has(number)).length;
  const dots = element("span", { className: "progress-dots", ariaHidden: "true" }, exercises.map(([number]) => (right.has(number) ? "●" : "○")).join(""));
  return element("span", { className: "progress-marks" }, dots, ` ${count} of ${exercises.length} right`);
}

function show() {
  for (const old of document.querySelectorAll(".progress, .progress-marks")) old.remove();
  if (!chapters.length) return;
  const right = done();
  const here = CHAPTER.exec(location.pathname);
  if (here) showChapter(chapters.find(({ number }) => number === Number(here[1])), right);
  else showPath(right);
}

function showChapter(chapter, right) {
  if (!chapter) return;
  document.querySelector("article h1").after(element("p", { className: "progress" }, "Exercises of this chapter: ", marks(chapter, right)));
  for (const name of document.querySelectorAll("article p > strong:first-child")) {
    const [number] = /^\d+\.\d+(?= )/.exec(name.textContent) ?? [];
    name.classList.toggle("exercise-done", right.has(number));
  }
}

function showPath(right) {
  const all = chapters.flatMap(({ exercises }) => exercises);
  const next = all.find(([number]) => !right.has(number));
  const page = next && chapters.find(({ exercises }) => exercises.includes(next)).page;
  const count = all.filter(([number]) => right.has(number)).length;
  const told = element("p", { className: "progress" }, `${count} of ${all.length} exercises are right`, next ? "; next: " : ". All done.");
  if (next) told.append(element("a", { href: page }, `${next[0]}, ${next[1]}`), next[1].endsWith("?") ? " " : ". ");
  if (notes()) told.append(element("button", { type: "button", onclick: () => confirm("Forget all progress that is kept in this browser?") && keepNotes("") }, "Forget it"));
  const list = document.querySelector("article ol");
  list.before(told);
  for (const link of list.querySelectorAll("li > a")) {
    const number = Number(CHAPTER.exec(new URL(link.href).pathname)?.[1]);
    const chapter = chapters.find((each) => each.number === number);
    if (chapter) link.parentElement.append(" ", marks(chapter, right));
  }
}

if (CHAPTER.test(location.pathname) || INDEX.test(location.pathname)) {
  addEventListener("storage", ({ key }) => (key === KEY || key === null) && show()); // another page has changed them
  fetch(new URL("exercises.json", import.meta.url)).then((answer) => answer.json()).then((listed) => {
    chapters = listed;
    show();
  }).catch(() => {});
}
