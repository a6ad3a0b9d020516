// ---- The order of visits: the engine's, or one in which nobody waits, and gradients go wrong -------------------------

let rightVisits = visits;
let isWrong = false; // whether the visits that are played are in the wrong order
let rightGradients = null; // in the end; while the order is wrong

/** Results that hear more than one contribution: each has to wait for the last, or it passes on too little. */
const waiting = nodes.filter((node) => node.backward && expected[node.index] > 1);
const canGoWrong = waiting.length > 0 && !passes.recording && !unknown.length;

/** The visits where each result passes on what it has as soon as it hears a first contribution, in the midst of a visit. */
function hastyVisits() {
  const right = new Map(rightVisits.map((visit) => [visit.node, visit]));
  const sums = new Float64Array(nodes.length);
  sums[root] = 1;
  const made = [];
  const begun = new Set([root]);
  const stack = [{ index: root, place: 0, visit: null }];
  while (stack.length) {
    const top = stack[stack.length - 1];
    const { contributions, locals } = right.get(top.index);
    if (top.place === contributions.length) {
      stack.pop();
      continue;
    }
    const place = top.place++;
    if (contributions[place] === null) continue;
    const node = nodes[top.index];
    if (top.visit === null) made.push((top.visit = { node: top.index, contributions: contributions.map(() => null), locals }));
    const contribution = evaluate(primitives[node.primitive].rules[place], sums[top.index], node.data, node.operands.map((operand) => nodes[operand].data));
    const operand = node.operands[place];
    top.visit.contributions[place] = contribution;
    sums[operand] += contribution;
    if (begun.has(operand) || !right.has(operand)) continue;
    begun.add(operand);
    stack.push({ index: operand, place: 0, visit: null });
    top.visit = null; // what is left of this visit comes after that of the operand
  }
  return made;
}

/** Take other numbers for the visits, which stay in their order. */
function setVisits(next) {
  rightVisits = next;
  visits = isWrong ? hastyVisits() : next;
  rightGradients = isWrong ? sumOf(next) : null;
}

/** The gradients after all visits. */
function sumOf(all) {
  const sums = new Float64Array(nodes.length);
  sums[root] = 1;
  for (const { node, contributions } of all) contributions.forEach((contribution, place) => contribution !== null && (sums[nodes[node].operands[place]] += contribution));
  return sums;
}

/** Let visits wait for all contributions, or not; the page stays at what it shows. */
function setOrder(wrong) {
  play(false);
  const [{ node, phase }, isLast] = [steps[at], at === steps.length - 1];
  isWrong = wrong;
  setVisits(rightVisits);
  layVisits();
  if (isLast) at = steps.length - 1;
  else if (phase === "backward") at = nodes[node].backward ?? seed;
  noteBirths();
  showLength();
  show();
  say(orderWords());
}

/** Whether a Value has all its contributions, and together they are not the gradient that it ought to have. */
function isOff(index) {
  if (!isWrong || !isComplete(index)) return false;
  const [found, right] = [gradients[index], rightGradients[index]];
  return !Object.is(found, right) && !(Math.abs(found - right) <= 1e-9 * Math.max(Math.abs(found), Math.abs(right)));
}
/** What is to be said after a gradient: that it is wrong, or not complete. */
const remark = (index, write) => (isOff(index) ? `, wrong: ${write(rightGradients[index])} is right` : isComplete(index) ? "" : " so far");
const isHasty = (index) => isWrong && heard[index] < expected[index];

function orderWords() {
  if (!isWrong) return "Each Value waits until all that use it have passed their gradients on to it.";
  const off = nodes.filter(({ index }) => isOff(index)).length;
  const count = off ? `${off} ${off === 1 ? "gradient is" : "gradients are"} wrong so far.` : at === steps.length - 1 ? "By chance, no gradient is wrong." : "No gradient is wrong so far.";
  return `Wrong order: each Value passes on what it has when it hears its first contribution, and never again. ${count}`;
}

const orderButton = html("button", { type: "button", "aria-pressed": "false", onclick: () => setOrder(!isWrong) }, "Wrong order");
const orderText = html("p", {});
function showOrder() {
  orderButton.setAttribute("aria-pressed", String(isWrong));
  orderText.textContent = orderWords();
  orderText.className = isWrong ? "warning" : "soft";
}

/** What is wrong with a visit, in words. */
function explainHaste(visit) {
  const [name, gradient] = [partial(rootName, nameOf(visit.node)), gradients[visit.node]];
  if (isHasty(visit.node)) {
    const left = expected[visit.node] - heard[visit.node];
    return [html("p", { class: "warning" }, "Too early: ", bdi(nameOf(visit.node)), ` has heard ${heard[visit.node]} of its ${expected[visit.node]} contributions. It passes ${readable(gradient)} on as `, bdi(name),
      `, where ${readable(rightGradients[visit.node])} is right. The ${left === 1 ? "contribution" : `${left} contributions`} to come will change its own gradient, and go no further.`)];
  }
  if (!isOff(visit.node)) return [];
  return [html("p", { class: "warning" }, `It passes on ${readable(gradient)}, where ${readable(rightGradients[visit.node])} is right: one that uses it did not wait.`)];
}

/** What is wrong with what an operand has after a contribution. */
function explainWrongSum(operand, after, left) {
  const parts = [];
  if (isWrong && nodes[operand].backward < at) parts.push("It has been visited, and does not pass this contribution on.");
  if (!left && isOff(operand)) parts.push(`${readable(after)} is wrong, ${readable(rightGradients[operand])} is right.`);
  return parts.length ? html("p", { class: "off left" }, parts.join(" ")) : null;
}
