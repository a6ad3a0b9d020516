
// ---- Find: Values by their labels, and boxes by their names -----------------------------------------------------------

let matches = []; // items
let match = -1;
/** What an item may be called: a parameter with a label also by the way to it. */
const namesOfItem = (item) => (groupOf(item) ? [groupOf(item).name] : [fullNameOf(item.slice(1)), nodes[item.slice(1)].path]).map((name) => name.toLowerCase());

function search() {
  const wanted = find("find-text").value.trim().toLowerCase();
  const isNamed = ({ kind, label }) => kind !== "constant" || label;
  const all = [...nodes.filter(isNamed).map(({ index }) => `n${index}`), ...groups.filter(({ kind }) => kind !== "stack").map(({ index }) => `g${index}`)];
  const exactly = (item) => namesOfItem(item).some((name) => name && `.${wanted}`.endsWith(`.${name}`)); // model.w[0] is w[0]
  matches = wanted ? all.filter((item) => exactly(item) || namesOfItem(item).some((name) => name.includes(wanted))) : [];
  matches.sort((one, other) => exactly(other) - exactly(one));
  match = -1;
  mark("found", [...new Set(matches.map(drawnFor))].map((item) => visible.get(item)).filter(Boolean));
  find("find-count").textContent = wanted ? `${matches.length}` : "";
}

/** The item that is drawn for another: itself, or the closed box around it. */
const drawnFor = (item) => (visible.has(item) ? item : itemsOf[groupOf(item)?.members[0] ?? item.slice(1)]);

/** Show a box, and the last of the present pass that it does. */
function showGroup(group) {
  if (reveal(group.members[0], group.index)) draw();
  const [phase, inside] = [at >= seed ? "backward" : "forward", new Set(group.members)];
  const doing = steps.findLastIndex((step) => step.phase === phase && inside.has(step.node));
  if (doing >= 0) go(doing);
  const item = drawnFor(`g${group.index}`);
  bringIntoView(item);
  setTabStop(item);
}

find("find-text").addEventListener("input", search);
find("find").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!matches.length) return say("Nothing has this label.");
  match = (match + 1) % matches.length;
  const item = matches[match];
  if (groupOf(item)) showGroup(groupOf(item));
  else select(Number(item.slice(1)), true);
  find("find-count").textContent = `${match + 1} of ${matches.length}`;
  say(groupOf(item) ? groupLabel(groupOf(item)) : nodeLabel(item.slice(1)));
});
