
// ---- Stacks: which of its members is on top, or all side by side -------------------------------------------------

const MOST_STACKS = 6; // beside the graph

/** Show another member of a stack; a Value in the one before that is looked at gives way to its like in the other. */
function turn(group, by) {
  const { children, shown } = groups[group];
  const next = (shown + by + children.length) % children.length;
  const [from, to] = [shown, next].map((place) => groups[children[place]].members);
  const place = selected === null || from.length !== to.length ? -1 : from.indexOf(selected);
  changeInPlace(group, () => {
    groups[group].shown = next;
    openAlike(children[shown], children[next]);
    if (place >= 0) selected = to[place];
  });
  say(`${groups[group].name} ${groups[group].shown + 1} of ${children.length}`);
}

/** Open in one member of a stack what is open in another. */
function openAlike(from, to) {
  groups[from].children.forEach((child, place) => {
    const other = groups[to].children[place];
    if (other === undefined) return;
    if (open.has(child)) open.add(other);
    else open.delete(other);
    openAlike(child, other);
  });
}

/** Show the members of a stack side by side, or one by one. */
function spreadOut(group) {
  if (groups[group].children.length > MOST_SPREAD) return say("There are too many of these to stand side by side.");
  changeInPlace(group, () => spread.delete(group) || spread.add(group));
}

const rowsOfStacks = new Map(); // by group
const ACTIONS = { previous: (group) => turn(group, -1), next: (group) => turn(group, 1), spread: spreadOut };

/** The stacks of the drawing beside it, with buttons that are as large on every scale. */
function showStacks() {
  const drawn = [...visible.values()].filter(({ group }) => group?.kind === "stack").map(({ group }) => group);
  const stacks = drawn.slice(0, MOST_STACKS);
  if (stacks.some(({ index }) => !rowsOfStacks.has(index)) || stacks.length !== rowsOfStacks.size) {
    rowsOfStacks.clear();
    for (const group of stacks) rowsOfStacks.set(group.index, rowOfStack(group));
    find("stacks").replaceChildren(...[...rowsOfStacks.values()].map(({ element }) => element));
    if (drawn.length > stacks.length) find("stacks").append(html("p", { class: "soft" }, `and ${drawn.length - stacks.length} more stacks`));
  }
  for (const { update } of rowsOfStacks.values()) update();
  find("stacks").hidden = !stacks.length || document.body.dataset.mode === "blocks";
}

function rowOfStack(group) {
  const text = html("span", { dir: "auto" });
  const button = (action, sign, words) => html("button", { type: "button", class: "link", "aria-label": `${words} ${group.name}`, onclick: () => ACTIONS[action](group.index) }, sign);
  const [previous, next, all] = [button("previous", "‹", "Previous"), button("next", "›", "Next"), button("spread", "all", "All side by side:")];
  all.hidden = group.children.length > MOST_SPREAD;
  const update = () => {
    const isSpread = spread.has(group.index);
    text.textContent = isSpread ? `${group.name} × ${group.children.length}` : `${group.name} ${group.shown + 1} of ${group.children.length}`;
    all.textContent = isSpread ? "one" : "all";
    all.setAttribute("aria-pressed", String(isSpread));
    for (const each of [previous, next]) each.disabled = isSpread;
  };
  return { element: html("div", { class: "stack", role: "group", "aria-label": group.name }, text, previous, next, all), update };
}
