// ---- What the step changes in the drawing ------------------------------------------------------------------

let hovered = null; // an item
let selected = null; // a Value that was chosen to be looked at

function tint(gradient, largest) {
  if (Number.isNaN(gradient)) return "rgb(var(--not-a-number) / 0.6)";
  if (gradient === 0) return "";
  const decades = Number.isFinite(gradient) ? Math.log10(largest / Math.abs(gradient)) : 0;
  const opacity = 0.5 - 0.38 * Math.min(decades / 3, 1);
  return `rgb(var(${gradient > 0 ? "--positive" : "--negative"}) / ${opacity.toFixed(2)})`;
}

let present = { receiving: new Set(), born: new Set(), off: new Set() }; // what the step says about items, for paint
let version = 0;

function refresh() {
  const step = steps[at];
  present = {
    largest: gradients.reduce((most, gradient) => (Number.isFinite(gradient) ? Math.max(most, Math.abs(gradient)) : most), 0),
    active: step.node === undefined ? null : itemsOf[step.node],
    born: new Set(births.map(({ node }) => itemsOf[node])),
    off: new Set(isWrong ? nodes.filter(({ index }) => isOff(index)).map(({ index }) => itemsOf[index]) : []),
    receiving: new Set(step.phase === "backward" ? receivers(visits[step.visit]).map((operand) => itemsOf[operand]) : []),
  };
  version++;
  for (const shown of visible.values()) if (!shown.away) paint(shown);
  mark("active", activePairs(step).flatMap(([operand, user]) => edgesBetween(operand, user)));
  graph.classList.toggle("backwards", at >= seed);
  showPaths();
}

/** Put the present numbers and colours into an item. */
function paint(shown) {
  const { element, item, group } = shown;
  const index = group ? (outputsOf(group).length === 1 ? outputsOf(group)[0] : null) : Number(item.slice(1));
  shown.version = version;
  element.classList.toggle("active", item === present.active);
  element.classList.toggle("receiving", present.receiving.has(item) && item !== present.active);
  element.classList.toggle("off", present.off.has(item));
  flag(shown, present.born.has(item));
  if (index !== null && shown.data) write(shown, index, present.largest);
  if (shown.cells) paintCells(shown);
  const label = `${group ? groupLabel(group) : nodeLabel(index)}${group && present.off.has(item) ? ", with wrong gradients" : ""}${present.born.has(item) ? ", where a number that is not finite comes from" : ""}`;
  if (shown.label !== label) element.setAttribute("aria-label", (shown.label = label));
  if (group) element.setAttribute("aria-expanded", String(isOpen(group.index)));
}

/** Put a flag on an item in which a number that is not finite is born, or take it away. */
function flag(shown, isBirthplace) {
  shown.element.classList.toggle("born", isBirthplace);
  if (isBirthplace === Boolean(shown.flag)) return;
  shown.flag?.remove();
  shown.flag = isBirthplace ? svg("g", { class: "flag", transform: `translate(${shown.w - 2} 2)` }, svg("circle", { r: 10 }), svg("text", { y: 5 }, "!")) : null;
  if (shown.flag) shown.element.append(shown.flag);
}

const marked = { active: new Set(), path: new Set(), found: new Set() };
/** Give a class to these items and edges, and take it from those that had it. */
function mark(kind, those) {
  const before = marked[kind];
  marked[kind] = new Set(those);
  for (const { element } of before) element.classList.remove(kind);
  for (const { element } of marked[kind]) element.classList.add(kind);
}

/** An answer in words. */
const answerOf = ({ asked }, number) => (!asked.isTruth ? readable(number) : number ? "yes" : "no");
/** What the answer would be on the other path; or what it is by now, where a number was changed so that it is another. */
const otherAnswerOf = (node) => (node.data !== node.asked.answer ? `${answerOf(node, node.data)}, by now` : node.asked.isTruth ? answerOf(node, !node.data) : "any other");

function write(shown, index, largest) {
  if (shown.group && isQuestion(shown.group)) {
    shown.data.textContent = isComputed(index) ? answerOf(nodes[index], nodes[index].asked.answer) : "";
    shown.grad.textContent = isComputed(index) ? otherAnswerOf(nodes[index]) : "";
    return;
  }
  const data = isComputed(index) ? readable(nodes[index].data) : "";
  if (shown.data.textContent !== data) shown.data.textContent = data;
  if (!shown.grad) {
    if (nodes[index].label) shown.data.textContent = cut(`${nodes[index].label} = ${data}`, shown.w - 6, 400, 12);
    return;
  }
  const grad = hasGradient(index) ? gradientText(index) : "";
  if (shown.grad.textContent !== grad) shown.grad.textContent = grad;
  shown.grad.classList.toggle("growing", hasGradient(index) && !isComplete(index));
  shown.grad.classList.toggle("off", isOff(index));
  const colour = hasGradient(index) && !isOff(index) ? tint(gradients[index], largest) : "";
  if (shown.colour !== colour) shown.tint.style.fill = shown.colour = colour;
}

const MOST_COMPARED = 13; // characters of a wrong gradient and the right one, beside each other
/** A gradient; where it is wrong, beside the right one, with as many digits as there is room for. */
function gradientText(index) {
  if (!isOff(index)) return readable(gradients[index]);
  const pair = [gradients[index], rightGradients[index]];
  const texts = [readable, (number) => minus(String(Number(number.toPrecision(2))))].map((write) => pair.map(write).join(" ≠ "));
  return texts.find((text) => text.length <= MOST_COMPARED && new Set(text.split(" ≠ ")).size === 2) ?? `≠ ${readable(pair[1])}`;
}

const receivers = (visit) => nodes[visit.node].operands.filter((_, place) => visit.contributions[place] !== null);
function activePairs({ phase, node, visit }) {
  if (phase === "forward") return nodes[node].operands.map((operand) => [operand, node]);
  return phase === "backward" ? receivers(visits[visit]).map((operand) => [operand, node]) : [];
}

function nodeLabel(index) {
  const node = nodes[index];
  const made = node.kind === "result" ? `result of ${madeBy(node)}` : node.kind;
  if (node.terms) return `${fullNameOf(index)}, all terms of a kernel: ${node.terms}`;
  const data = isComputed(index) ? `data ${readable(node.data)}` : "not computed yet";
  const grad = hasGradient(index) ? `, gradient ${readable(gradients[index])}${remark(index, readable)}` : "";
  return `${fullNameOf(index)}, ${made}, ${data}${grad}`;
}
const groupLabel = (group) => {
  const many = group.kind === "stack" ? `, ${group.shown + 1} of ${group.children.length}` : "";
  return `${group.name}${many}, group of ${group.members.length} Values`;
};

/** Mark the ways from the Value that is looked at to the root. */
function showPaths() {
  const start = hovered ? (groupOf(hovered) && isOpen(groupOf(hovered).index) ? [] : inItem(hovered)) : selected === null ? [] : [selected];
  const onPath = new Set(start);
  for (const index of onPath) for (const user of nodes[index].users) onPath.add(user);
  const items = [...new Set([...onPath].map((index) => itemsOf[index]))].map((item) => visible.get(item));
  const between = new Set();
  for (const index of onPath) for (const user of nodes[index].users) for (const edge of edgesBetween(index, user)) between.add(edge);
  mark("path", [...items, ...between]);
}
const inItem = (item) => (groupOf(item) ? outputsOf(groupOf(item)) : [Number(item.slice(1))]);

