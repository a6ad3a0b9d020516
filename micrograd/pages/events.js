// ---- Events -----------------------------------------------------------------------------------------------------

const ACTION_KEYS = { "]": "next", "[": "previous", s: "spread" };
const itemAt = (event) => event.target.closest?.(".item")?.dataset.item ?? null;
graph.addEventListener("click", (event) => {
  if (dragged) return;
  const target = event.pointerType === "touch" ? touched(event.target, lifted) : event.target;
  const item = itemAt({ target });
  const group = item && groupOf(item);
  const action = target.closest(".turn")?.dataset.action;
  if (action) return ACTIONS[action](group.index);
  if (group && isOpen(group.index) && !target.closest("text")) return; // the room inside a group is for panning
  if (item) jumpTo(item);
  else if (selected !== null) {
    selected = null;
    show();
  }
});

const FINGER = 44; // pixels that a target is to have; smaller ones are reached from half of that around them
/** What a finger means that was lifted here: what it hits, or else the nearest of the small things around. */
function touched(target, { x, y }) {
  const { left, top } = bounds();
  const known = [...visible.values()].filter((shown) => !shown.away).flatMap((shown) => targetsOf(shown).map((element) => {
    if (element !== shown.element) return { element, ...element.getBoundingClientRect().toJSON() };
    const [width, height] = [shown.w * view.scale, shown.h * view.scale];
    return { element, width, height, x: left + view.x + shown.x * view.scale - width / 2, y: top + view.y + shown.y * view.scale - height / 2 };
  }));
  let [nearest, least] = [target, Infinity];
  for (const each of known) {
    if (each.width === 0) continue; // too small to be drawn
    const gap = Math.hypot(Math.max(each.x - x, 0, x - each.x - each.width), Math.max(each.y - y, 0, y - each.y - each.height));
    const reach = Math.min(each.width, each.height) < FINGER ? FINGER / 2 : 0;
    if (gap <= reach && gap < least) [nearest, least] = [each.element, gap];
  }
  return nearest;
}
/** What can be tapped of an item: a card or a closed box; of an open one, its title and its buttons. */
const targetsOf = ({ element, group }) => (group && isOpen(group.index) ? [...element.querySelectorAll(".turn"), element.querySelector(".name")] : [element]);

function hover(item) {
  if (item === hovered || pointers.size) return;
  hovered = item;
  showPaths();
  explainNode();
}
graph.addEventListener("pointerover", (event) => event.pointerType === "mouse" && hover(itemAt(event)));
graph.addEventListener("pointerleave", () => hover(null));
graph.addEventListener("focusin", (event) => {
  const item = itemAt(event);
  if (!item) return;
  setTabStop(item);
  if (event.target.matches(":focus-visible")) {
    bringIntoView(item);
    hover(item);
  }
});
graph.addEventListener("focusout", (event) => event.relatedTarget?.closest("aside") || hover(null)); // beside it, one reads on about it

let tabStop = null;
function setTabStop(item) {
  visible.get(tabStop)?.element.setAttribute("tabindex", "-1");
  tabStop = item;
  const shown = visible.get(item);
  shown.element.setAttribute("tabindex", "0");
  if (shown.away) shown.home.append(shown.element);
  shown.away = false;
  paint(shown);
}

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** The item next to another in a direction: near, and rather ahead than aside. */
function neighbour(item, [dx, dy]) {
  const from = visible.get(item);
  let best = null;
  let least = Infinity;
  for (const shown of visible.values()) {
    const ahead = (shown.x - from.x) * dx + (shown.y - from.y) * dy;
    const aside = Math.abs((shown.x - from.x) * dy) + Math.abs((shown.y - from.y) * dx);
    if (shown !== from && ahead > 1 && ahead + 2.5 * aside < least) [best, least] = [shown, ahead + 2.5 * aside];
  }
  return best;
}
function goTo(shown) {
  if (!shown) return;
  bringIntoView(shown.item);
  shown.element.focus({ preventScroll: true });
}
graph.addEventListener("keydown", (event) => {
  const item = itemAt(event);
  if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key in DIRECTIONS) goTo(neighbour(item, DIRECTIONS[event.key]));
  else if (event.key === "Enter") jumpTo(item);
  else if (event.key in ACTION_KEYS && groupOf(item)?.kind === "stack") ACTIONS[ACTION_KEYS[event.key]](groupOf(item).index);
  else return;
  event.preventDefault();
  event.stopPropagation();
});

const KEYS = {
  ArrowRight: () => controls.next(), ArrowLeft: () => controls.previous(),
  Home: () => controls.go(0), End: () => controls.go(controls.last()), " ": () => controls.play(), "/": () => find("find-text").focus(),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
};
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  if (event.key === " " && event.target.closest("button, summary")) return; // Space presses what has the focus
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

const BUTTONS = {
  first: () => controls.go(0), previous: () => controls.previous(), next: () => controls.next(),
  last: () => controls.go(controls.last()), play: () => controls.play(), "zoom-in": () => zoom(1.25), "zoom-out": () => zoom(0.8), fit,
  expand: () => setAll(true), collapse: () => setAll(false),
  theme: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
};
for (const [id, action] of Object.entries(BUTTONS)) find(id).addEventListener("click", () => action());
find("slider").addEventListener("input", () => controls.go(Number(find("slider").value)));

const darkness = matchMedia("(prefers-color-scheme: dark)");
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}
darkness.addEventListener("change", () => setTheme(darkness.matches ? "dark" : "light"));
// In a frame of another page, it is that page's choice: {theme: "dark"} or {theme: "light"}
addEventListener("message", ({ data, source }) => {
  const wanted = source === parent && parent !== window && ["light", "dark"].includes(data?.theme);
  if (wanted && data.theme !== document.documentElement.dataset.theme) find("theme").click();
});

