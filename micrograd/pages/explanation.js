// ---- The explanation -----------------------------------------------------------------------------------------

const math = (...parts) => html("p", { class: "math" }, ...parts);
const partial = (of, by) => `∂${of}/∂${by}`;

function explainStep() {
  const step = steps[at];
  const panel = find("step");
  const sum = (text) => [html("p", { class: "eyebrow" }, text)];
  const parts = [];
  const group = step.node === undefined ? null : groupOf(itemsOf[step.node]);
  if (step.phase === "batch" || step.phase === "update") parts.push(...explainTrainingStep(step));
  else if (group && step.phase !== "seed") parts.push(...explainGroup(step, group));
  else if (step.phase === "given") {
    parts.push(...sum("Start"), html("h2", {}, "What is given"));
    const count = nodes.length - results;
    parts.push(html("p", {}, `${count} ${count === 1 ? "number is" : "numbers are"} given. The forward pass computes ${results} more from ${count === 1 ? "it" : "them"}, one a step${passes.backward ? `; then the backward pass finds how ${rootInWords} changes with each` : ""}.`));
  } else if (step.phase === "forward") {
    const node = nodes[step.node];
    const names = operandNames(node);
    parts.push(...sum(`Forward, ${at} of ${forwardSteps}`), html("h2", {}, bdi(nameOf(node.index)), " is computed"));
    parts.push(math(bdi(nameOf(node.index)), " = ", bdi(call(node, names))));
    const numbers = call(node, node.operands.map((operand) => inBrackets(nodes[operand].data)));
    if (node.terms) parts.push(html("p", {}, `It stands for all of them: ${node.terms}.`));
    else {
      if (numbers !== readable(node.data) && !isEntry(node)) parts.push(math("= ", numbers));
      parts.push(math("= ", html("span", { class: "outcome" }, readable(node.data))));
    }
  } else if (step.phase === "seed") {
    parts.push(...sum("Backward"), html("h2", {}, "Backpropagation starts at ", bdi(rootInWords)));
    parts.push(math(partial(rootName, rootName), " = ", html("span", { class: "outcome" }, "1")));
    parts.push(html("p", {}, "Anything changes with itself one to one. From here each Value passes its gradient on to its operands, " + (isWrong ? "and none waits for all that use it." : "once all that use it have passed theirs.")));
  } else parts.push(...explainVisit(step));
  panel.replaceChildren(...parts);
}

const MOST_NUMBERS = 6;
const listed = (indices, number) => indices.slice(0, MOST_NUMBERS).map((index) => math(bdi(number(index))))
  .concat(indices.length > MOST_NUMBERS ? [html("p", { class: "soft" }, `and ${indices.length - MOST_NUMBERS} more`)] : []);

/** What a closed group did in a step, or in several that were taken together. */
function explainGroup(step, group) {
  const backward = step.phase === "backward";
  const name = group.kind === "stack" ? `${group.name} ${group.shown + 1} of ${group.children.length}` : closedTitleOf(group);
  const outputs = outputsOf(group);
  const inside = new Set(group.members);
  const named = (index) => fullNameOf(index, group.kind === "stack" ? onTop(group.index) : group.index);
  const namedOutside = (index) => (outputs.some((output) => nameOf(output) === nameOf(index)) ? outerName(index, group.index) : named(index));
  const parts = [
    html("p", { class: "eyebrow" }, backward ? `Backward, ${step.visit + 1} of ${visits.length}` : `Forward, ${at} of ${forwardSteps}`),
    html("h2", {}, bdi(name), backward ? " passes gradients on" : " is computed"),
  ];
  if (isQuestion(group)) return [parts[0], html("h2", {}, bdi(name), " is asked"), ...explainQuestion(group), openIt(group)];
  if (group.about[0] || group.kernel) parts.push(math(group.about[0] || group.kernel));
  if (!backward) return [...parts, ...listed(outputs.filter(isComputed), (index) => `${named(index)} = ${readable(nodes[index].data)}`), openIt(group)];
  if (group.about[1]) parts.push(html("p", {}, group.about[1]));
  parts.push(html("p", { class: "soft" }, "What it computed, and the gradient of each:"), ...listed(outputs, (index) => `${named(index)} = ${readable(nodes[index].data)}, gradient ${hasGradient(index) ? readable(gradients[index]) + remark(index, readable) : "none"}`));
  const outside = [...new Set(group.members.flatMap((index) => nodes[index].operands))].filter((index) => (!inside.has(index) || nodes[index].kind === "leaf") && hasGradient(index));
  outside.sort((one, other) => Math.abs(gradients[other]) - Math.abs(gradients[one]));
  if (outside.length) parts.push(html("p", { class: "soft" }, "The gradients that it has added to, the largest first:"));
  return [...parts, ...listed(outside, (index) => `${partial(rootName, namedOutside(index))} = ${readable(gradients[index])}${remark(index, readable)}`), openIt(group)];
}
/** What the program has decided; the other path is not in the graph. */
function explainQuestion(group) {
  const [node] = outputsOf(group).map((index) => nodes[index]);
  const now = node.data === node.asked.answer ? "" : ` By now it would be ${answerOf(node, node.data)}.`;
  return [
    math(group.kernel), math("= ", html("span", { class: "outcome" }, answerOf(node, node.asked.answer))),
    html("p", {}, `So the program took this path. What it does for another answer is not in the graph.${now}`),
  ];
}
const openIt = (group) => html("button", { type: "button", class: "link", onclick: () => toggle(group.index) }, "Open it, to go through it step by step");

const MOST_CONTRIBUTIONS = 12;

function explainVisit(step) {
  const visit = visits[step.visit];
  const node = nodes[visit.node];
  const name = nameOf(node.index);
  const gradient = gradientBefore(visit);
  const parts = [
    html("p", { class: "eyebrow" }, `Backward, ${step.visit + 1} of ${visits.length}`),
    html("h2", {}, bdi(name), " passes its gradient on"),
    math(bdi(name), " = ", bdi(call(node, operandNames(node))), html("br"), bdi(partial(rootName, name)), " = ", html("span", { class: "outcome" }, readable(gradient))),
  ];
  parts.push(...explainHaste(visit));
  const { before, after, left } = effects(visit);
  const places = visit.contributions.flatMap((contribution, place) => (contribution === null ? [] : [place]));
  for (const place of places.slice(0, MOST_CONTRIBUTIONS)) parts.push(explainContribution(node, visit, place, gradient, before[place], after[place], left[place]));
  if (places.length > MOST_CONTRIBUTIONS) parts.push(html("p", { class: "soft" }, `and ${places.length - MOST_CONTRIBUTIONS} more operands in the same way`));
  const whole = isWrong ? rightVisits.find((each) => each.node === visit.node) : visit; // the wrong order may cut a visit in two
  const idle = node.operands.filter((_, place) => whole.contributions[place] === null && nodes[node.operands[place]].kind !== "constant");
  if (idle.length && primitives[node.primitive].rules.length) parts.push(html("p", { class: "soft" }, "No gradient flows to ", bdi(idle.map(nameOf).join(", ")), "."));
  return parts;
}

function explainContribution(node, visit, place, gradient, before, after, left) {
  const operand = node.operands[place];
  const [name, own] = [operandNames(node)[place], nameOf(node.index)];
  const local = visit.locals[place];
  const contribution = visit.contributions[place];
  const rows = [];
  if (local !== null) {
    const { text, reasons } = localFormula(node, place);
    const value = readable(local);
    const middle = text && text !== value ? ["= ", bdi(text), ` = `] : ["= "];
    rows.push(html("dt", {}, "local derivative"), html("dd", { class: "math local" }, bdi(partial(own, name)), " ", ...middle, value,
      reasons.length ? html("span", { class: "soft" }, `, as ${reasons.join(", ")}`) : null));
    rows.push(html("dt", {}, "times gradient"), html("dd", { class: "math product" }, `${inBrackets(gradient)} × ${inBrackets(local)} = ${readable(contribution)}`));
  } else rows.push(html("dt", {}, "its own rule gives"), html("dd", { class: "math product" }, readable(contribution)));
  rows.push(html("dt", {}, "added to grad"), html("dd", { class: "math sum" }, `${readable(before)} + ${inBrackets(contribution)} = `, html("span", { class: "outcome" }, readable(after))));
  const more = left ? `${left} more ${left === 1 ? "contribution" : "contributions"} to come.` : "Complete.";
  const again = node.operands.indexOf(operand) < place ? ", once more" : "";
  return html("div", { class: "contribution" }, html("h3", {}, "To ", bdi(name), again), html("dl", {}, ...rows), html("p", { class: "soft left" }, more), explainWrongSum(operand, after, left));
}

/** What each operand had before and has after a visit, which is the one that was played last. */
function effects(visit) {
  const [before, after, left] = [[], [], []];
  const has = new Map(receivers(visit).map((operand) => [operand, 0]));
  const missing = new Map();
  visit.contributions.forEach((contribution, place) => {
    if (contribution !== null) missing.set(nodes[visit.node].operands[place], (missing.get(nodes[visit.node].operands[place]) ?? 0) + 1);
  });
  for (const operand of has.keys()) has.set(operand, operand === root ? 1 : 0);
  for (let index = 0; index <= steps[at].visit; index++) {
    const earlier = visits[index];
    earlier.contributions.forEach((contribution, place) => {
      const operand = nodes[earlier.node].operands[place];
      if (contribution === null || !has.has(operand)) return;
      if (earlier === visit) {
        before[place] = has.get(operand);
        missing.set(operand, missing.get(operand) - 1);
        left[place] = expected[operand] - heard[operand] + missing.get(operand);
        after[place] = has.get(operand) + contribution;
      }
      has.set(operand, has.get(operand) + contribution);
    });
  }
  return { before, after, left };
}
const gradientBefore = (visit) => gradients[visit.node]; // complete before its visit, and not changed by it

let panelOf = null; // the Value in the panel, and what refreshes its numbers

function explainNode() {
  const editing = find("edit")?.classList.contains("changed"); // what is being typed stays
  const item = hovered && inItem(hovered).length === 1 ? inItem(hovered)[0] : null;
  const index = editing ? panelOf.index : (item ?? selected ?? (steps[at].node === undefined ? root : inItem(itemsOf[steps[at].node])[0]));
  if (panelOf?.index !== index) panelOf = nodePanel(index);
  panelOf.update();
}

function nodePanel(index) {
  const node = nodes[index];
  const made = node.kind === "result" ? madeBy(node) : node.kind === "leaf" ? "none: a leaf" : "none: a constant";
  const data = html("dd", { class: "math data" });
  const grad = html("dd", { class: "math grad" });
  const path = [];
  for (let group = node.group; group !== null; group = groups[group].parent) if (!isStack(group)) path.unshift(groups[group].name);
  const rows = [
    ["label", html("dd", {}, node.label ? bdi(node.label) : html("span", { class: "soft" }, "none"))],
    ["operation", html("dd", {}, made)], ["data", data], ["grad", grad],
    ["operands", links(node.operands, "none", node.group)], ["used by", links(node.users, index === root ? "nothing: it is the result" : "nothing", node.group)],
  ];
  if (node.label && node.path) rows.splice(1, 0, ["attribute", html("dd", {}, bdi(node.path))]);
  if (path.length) rows.push(["in", html("dd", {}, path.join(" › "))]);
  const title = html("h2", { dir: "auto" }, fullNameOf(index));
  const buttons = [
    node.kind === "result" ? html("button", { type: "button", class: "link", onclick: () => go(node.forward) }, "Its forward step") : null,
    node.backward ? html("button", { type: "button", class: "link", onclick: () => go(node.backward) }, "Its backward step") : null,
  ];
  const contributions = html("div", { id: "contributions" });
  find("node").replaceChildren(
    html("p", { class: "eyebrow" }, "Value"), title, ...(node.operands.length ? [] : [editor(node)]),
    html("dl", {}, ...rows.flatMap(([key, value]) => [html("dt", {}, key), value])), contributions, ...buttons.filter(Boolean));
  const update = () => {
    title.textContent = fullNameOf(index);
    contributions.replaceChildren(...explainContributions(index));
    data.textContent = node.terms || (isComputed(index) ? exact(node.data) : "not computed yet");
    if (node.terms) return (grad.textContent = "those of its results");
    grad.textContent = hasGradient(index) ? exact(gradients[index]) + remark(index, exact)
      : node.kind === "constant" ? "none: no gradient flows to it" : !passes.backward ? "none" : at < seed || expected[index] ? "not yet" : "0: none flows here";
  };
  return { index, update };
}

/** The names of some Values as one looks at them from a group: with where they are, if some have the same name. */
function distinctNames(indices, from) {
  const names = indices.map(nameOf);
  return new Map(indices.map((index, place) => [index, names.indexOf(names[place]) === names.lastIndexOf(names[place]) ? names[place] : placedName(index, from)]));
}

function links(indices, none, from) {
  const distinct = [...new Set(indices)];
  const names = distinctNames(distinct.slice(0, 24), from);
  const shown = distinct.slice(0, 24).map((index) => html("button", { type: "button", class: "link", onclick: () => select(index, true) }, bdi(names.get(index))));
  const more = distinct.length > 24 ? [html("span", { class: "soft" }, `and ${distinct.length - 24} more`)] : [];
  return html("dd", {}, ...(shown.length ? [...shown, ...more] : [html("span", { class: "soft" }, none)]));
}

