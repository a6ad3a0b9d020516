// ---- Births: where a number is not finite although all that it was computed from is ---------------------------

const MOST_NAMED = 4; // that are named in words

/** The first number that was given so, the first result, and the first contribution or sum of a gradient, each with its step. */
function findBirths() {
  const found = [];
  const given = nodes.find((node) => node.primitive === null && !Number.isFinite(node.data) && (node.kind === "leaf" || node.label || isHarmed()));
  if (given) found.push({ node: given.index, step: 0, words: `${given.kind === "constant" && !given.label ? "A constant" : fullNameOf(given.index)} is given as ${readable(given.data)}.` });
  const born = nodes[firstBorn(program, nodes.map((node) => node.data))?.index];
  if (born) found.push({ node: born.index, step: born.forward, words: `Forward: ${nameOf(born.index)} = ${computation(born)} is ${readable(born.data)}, and what it is computed from is finite.` });
  const backward = passes.backward && backwardBirth();
  if (backward) found.push(backward);
  return found;
}

/** Whether the result or a gradient is not finite: else a constant that is not, as the −∞ of a mask, does no harm. */
const isHarmed = () => !Number.isFinite(nodes[root].data) || visits.some(({ contributions }) => contributions.some((contribution) => contribution !== null && !Number.isFinite(contribution)));

/** A result with its numbers in the place of its operands. */
function computation(node) {
  const inputs = node.operands.map((operand) => inBrackets(nodes[operand].data));
  return call(node, inputs.length > MOST_NAMED ? [...inputs.slice(0, MOST_INPUTS), "…"] : inputs);
}

/** The first visit in which a contribution is not finite, or a sum of contributions, although all that it was computed from is. */
function backwardBirth() {
  const sums = new Float64Array(nodes.length);
  sums[root] = 1;
  for (const [index, { node, contributions, locals }] of visits.entries()) {
    const made = nodes[node];
    const inputs = [sums[node], made.data, ...made.operands.map((operand) => nodes[operand].data)];
    for (const [place, contribution] of contributions.entries()) {
      if (contribution === null) continue;
      const operand = made.operands[place];
      const [before, name] = [sums[operand], partial(rootName, nameOf(operand))];
      sums[operand] += contribution;
      const step = seed + 1 + index;
      const product = locals[place] === null ? "" : `${inBrackets(sums[node])} × ${inBrackets(locals[place])} = `;
      if (isBorn(contribution, inputs)) return { node, step, words: `Backward: ${nameOf(node)} adds ${product}${readable(contribution)} to ${name}, and what this is computed from is finite.` };
      if (isBorn(sums[operand], [before, contribution])) return { node, step, words: `Backward: ${nameOf(node)} adds ${readable(contribution)} to ${name}, which was ${readable(before)}. The sum is ${readable(sums[operand])}.` };
    }
  }
  return null;
}

let births = [];

/** Find the births again, after the numbers have changed, and say them beside the graph. */
function noteBirths() {
  births = findBirths();
  const parts = births.map((birth) => html("p", {}, bdi(birth.words), " ", html("button", { type: "button", class: "link", onclick: () => goToBirth(birth) }, "Go there")));
  find("births").replaceChildren(...(parts.length ? [html("h2", {}, "Where numbers stop being finite"), ...parts] : []));
  find("births").hidden = !births.length;
}

function goToBirth({ node, step }) {
  play(false);
  if (reveal(node)) draw();
  go(step);
  select(node, true);
}
