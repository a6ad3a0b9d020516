// A chapter as slides: the same page, of which one idea is shown at a time. Nothing is copied, so cells run on a slide.
import { button, element } from "./elements.js";

const HASH = /^#slide-(\d+)$/;
const article = document.querySelector("article");
const TEXT = "p, ul, ol, table, blockquote, details, h1, h2, h3";
const heading = (part) => part?.matches("h1, h2, h3");
const isTask = (part) => /^\d+\.\d+ /.test(part.querySelector(":scope > strong:first-child")?.textContent ?? "");

/** The parts of each slide: it begins at a heading, at the task of an exercise, and at a text that follows a cell. */
function slides() {
  const found = [];
  let afterCell = false;
  let before = null;
  for (const part of article.children) {
    const isText = part.matches(TEXT) && !part.matches(".progress");
    if (!found.length || (isText && !heading(before) && (heading(part) || afterCell || isTask(part)))) found.push([]);
    found[found.length - 1].push(part);
    if (isText || part.matches(".cell, .cell-recorded")) [before, afterCell] = [part, !isText];
  }
  return found;
}

let at = null; // the slide that is shown; null for the whole page
const count = element("span", { role: "status" });
const back = button("Back", "The slide before", () => show(at - 1));
const next = button("Next", "The next slide", () => show(at + 1));
const bar = element("nav", { className: "slide-bar", ariaLabel: "Slides", hidden: true },
  back, count, next, button("All of the chapter", "Leave the slides: all of the chapter", () => leave()));

/** Hide the parts of all other slides, also those that came after this one was shown, such as the buttons of exercises. */
function hideOthers(all) {
  all.forEach((parts, number) => parts.forEach((part) => part.classList.toggle("slide-away", number !== at)));
}

function show(wanted) {
  const all = slides();
  at = Math.max(0, Math.min(all.length - 1, wanted));
  document.body.classList.add("slides");
  bar.hidden = false;
  hideOthers(all);
  count.textContent = `Slide ${at + 1} of ${all.length}`;
  back.disabled = at === 0;
  next.disabled = at === all.length - 1;
  history.replaceState(null, "", `#slide-${at + 1}`);
  scrollTo(0, 0);
}

function leave() {
  const place = slides()[at]?.find((part) => part.id) ?? slides()[at]?.[0];
  at = null;
  document.body.classList.remove("slides");
  bar.hidden = true;
  for (const part of article.querySelectorAll(":scope > .slide-away")) part.classList.remove("slide-away");
  history.replaceState(null, "", place?.id ? `#${place.id}` : location.pathname);
  place?.scrollIntoView();
}

const STEPS = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1, Home: -Infinity, End: Infinity };
/** Keys turn the slides, but where somebody writes, or space presses what has the focus. */
function turn(event) {
  if (at === null || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  if (event.target.closest("input, select, textarea, [contenteditable=true]")) return;
  if (event.key === "Escape") return leave();
  if (!(event.key in STEPS) || (event.key === " " && event.target.closest("button, a, summary"))) return;
  if (["ArrowLeft", "ArrowRight"].includes(event.key) && event.target.closest("pre, figure")) return; // it scrolls
  event.preventDefault();
  show(at + STEPS[event.key]);
}

/** The button that begins, for the bar above the first cell. */
export function slidesButton() {
  document.body.append(bar);
  addEventListener("keydown", turn);
  new MutationObserver(() => at !== null && hideOthers(slides())).observe(article, { childList: true });
  addEventListener("hashchange", () => HASH.test(location.hash) && show(HASH.exec(location.hash)[1] - 1));
  if (HASH.test(location.hash)) show(HASH.exec(location.hash)[1] - 1);
  return button("Slides", "This chapter as slides: the arrow keys turn them, Escape leaves", () => show(0));
}
