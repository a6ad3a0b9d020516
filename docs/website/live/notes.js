// What a learner has done, as micrograd.learn writes it: kept in this browser, and sent nowhere.
export const KEY = "micrograd-progress";
const unkept = new Map(); // where the browser keeps nothing, it lasts as long as this page

/** What is kept under a name; "" for nothing. */
export function kept(name) {
  try {
    return localStorage.getItem(name) ?? unkept.get(name) ?? "";
  } catch {
    return unkept.get(name) ?? "";
  }
}

/** Keeps a text under a name; "" forgets it. Gives whether it will be there tomorrow. */
export function keep(name, text) {
  try {
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
    unkept.delete(name);
    return true;
  } catch {
    unkept.set(name, text);
    return false;
  }
}

/** All names under which something is kept. */
export function names() {
  try {
    return [...new Set([...Object.keys(localStorage), ...unkept.keys()])];
  } catch {
    return [...unkept.keys()];
  }
}

export const notes = () => kept(KEY);

/** Keeps other notes; "" forgets them. */
export function keepNotes(text) {
  keep(KEY, text);
  dispatchEvent(new Event("notes"));
}

/** What is known of each exercise, by its number; of damaged notes nothing: mg.learn.progress() says what to do. */
export function entries(text = notes()) {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text).exercises).filter(([, entry]) => entry !== null && typeof entry === "object"));
  } catch {
    return {};
  }
}

/** Notes as micrograd.learn writes them. */
export const written = (exercises) => JSON.stringify({ version: 1, exercises });

/** Two notes as one: what either knows, is known. */
export function merged(one, other) {
  const both = entries(one);
  for (const [number, entry] of Object.entries(entries(other))) {
    const known = (both[number] ??= {});
    for (const [key, value] of Object.entries(entry)) known[key] = typeof value === "boolean" ? value || known[key] === true : Math.max(value, known[key] ?? 0);
  }
  return written(both);
}

/** Notes a hint or the solution that a page has shown. */
export function noteHelp(number, help) {
  const all = entries();
  const entry = (all[number] ??= { tries: 0, hints: 0, right: false, solution: false });
  if (help.hints) entry.hints = Math.max(entry.hints, help.hints);
  if (help.solution && !entry.right) entry.solution = true;
  keepNotes(written(all));
}
