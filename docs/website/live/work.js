// What a learner has typed: kept in this browser by page and cell, written to one file and read from it, put into links.
import { entries, keep, keepNotes, kept, merged, names, notes } from "./notes.js";

const PREFIX = "micrograd-cells:";
const SITE = new URL("..", import.meta.url).pathname;
const PAGE = decodeURIComponent(location.pathname).slice(SITE.length) || "index.html";

/** A short mark of a text: cells are found by it after a page has been written again (FNV-1a). */
function markOf(text) {
  let hash = 0x811c9dc5;
  for (const character of new TextEncoder().encode(text)) hash = Math.imul(hash ^ character, 0x01000193) >>> 0;
  return hash.toString(36);
}

/** The texts of a page: for each cell its number, the mark of its original, and what was typed. */
function textsOf(page) {
  try {
    const found = JSON.parse(kept(PREFIX + page));
    return Array.isArray(found) ? found.filter(isText) : [];
  } catch {
    return [];
  }
}
const isText = (entry) => entry && Number.isInteger(entry.number) && typeof entry.of === "string" && typeof entry.code === "string";

/** What was typed into a cell; null for nothing. A cell that moved is found by its original, a changed one by its number. */
export function textOf({ number, original }, cells) {
  const texts = textsOf(PAGE);
  const mark = markOf(original);
  const own = texts.filter(({ of }) => of === mark);
  const marks = new Set(cells.map((cell) => markOf(cell.original)));
  const found = own.find((entry) => entry.number === number) ?? (own.length === 1 ? own[0] : texts.find((entry) => entry.number === number && !marks.has(entry.of)));
  return found?.code ?? null;
}

/** Keeps what was typed into a cell; its original is nothing to keep. Gives whether it will be there tomorrow. */
export function keepText({ number, original }, code) {
  const texts = textsOf(PAGE).filter((entry) => entry.number !== number);
  if (code !== original) texts.push({ number, of: markOf(original), code });
  return keep(PREFIX + PAGE, texts.length ? JSON.stringify(texts) : "");
}

/** All work as a file, which `python -m micrograd.learn report` reads, too. */
export function exported() {
  const cells = Object.fromEntries(names().filter((name) => name.startsWith(PREFIX)).map((name) => [name.slice(PREFIX.length), textsOf(name.slice(PREFIX.length))]));
  return JSON.stringify({ version: 1, exercises: entries(), cells }, null, 1);
}

/**
 * Reads a file of work: what is there stays, unless agree() allows that so many cells get another text.
 * Gives what was done, in words. Throws an Error if the text is no such file.
 */
export function imported(text, agree) {
  let work;
  try {
    work = JSON.parse(text);
  } catch {
    work = null;
  }
  const { exercises, cells = {} } = work ?? {};
  if (!exercises || typeof exercises !== "object" || typeof cells !== "object") throw new Error("This is no file of exported work. Nothing was changed.");
  const pages = Object.entries(cells).map(([page, texts]) => [page, Array.isArray(texts) ? texts.filter(isText) : []]);
  const differs = (page) => (entry) => textsOf(page).some(({ number, code }) => number === entry.number && code !== entry.code);
  const different = pages.reduce((count, [page, texts]) => count + texts.filter(differs(page)).length, 0);
  if (different && !agree(different)) return "Nothing was changed.";
  for (const [page, texts] of pages) {
    const others = textsOf(page).filter(({ number }) => !texts.some((entry) => entry.number === number));
    if (texts.length) keep(PREFIX + page, JSON.stringify([...others, ...texts]));
  }
  keepNotes(notes() ? merged(notes(), text) : merged("", text));
  dispatchEvent(new Event("work"));
  const count = pages.reduce((sum, [, texts]) => sum + texts.length, 0);
  return `Imported ${count} ${count === 1 ? "cell" : "cells"} and the notes on ${Object.keys(entries(text)).length} exercises.`;
}

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

/** The address of this page with the code of a cell in it. */
export async function linkTo(number, code) {
  const packed = await through(new TextEncoder().encode(code), new CompressionStream("deflate-raw"));
  const text = btoa(String.fromCharCode(...packed)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `${location.href.split("#")[0]}#cell-${number}=${text}`;
}

/** The number of a cell and the code that the address of this page has for it; null for none. */
export async function linked() {
  const [, number, text] = /^#cell-(\d+)=([\w-]+)$/.exec(location.hash) ?? [];
  if (!number) return null;
  try {
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
    return { number: Number(number), code: new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"))) };
  } catch {
    return { number: Number(number), code: null };
  }
}
