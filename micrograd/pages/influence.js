// ---- Influence: what depends on a token, and from which losses its row gets its gradient --------------------------------

/** All that a token goes into. */
function dependentsOf(position) {
  const reached = new Set(tokens[position].takers.flat());
  for (const index of reached) for (const user of nodes[index].users) reached.add(user);
  return reached;
}

/** The gradient of the row of a token from one prediction alone, as the length of a vector: what its loss passes back. */
function gradientFrom({ result }, position) {
  const own = new Float64Array(nodes.length);
  own[result] = finalGradients()[result];
  const takers = new Set(tokens[position].takers.flat());
  const values = valuesOf(position);
  const row = new Float64Array(values.length);
  for (const { node, locals, contributions } of visits) {
    if (own[node] === 0) continue;
    const { primitive, operands, data } = nodes[node];
    const inputs = operands.map((operand) => nodes[operand].data);
    contributions.forEach((contribution, place) => {
      if (contribution === null) return;
      const passed = isKnown(primitives[primitive].rules[place]) ? evaluate(primitives[primitive].rules[place], own[node], data, inputs) : own[node] * locals[place];
      own[operands[place]] += passed;
      const column = takers.has(node) ? values.indexOf(operands[place]) : -1;
      if (column >= 0) row[column] += passed;
    });
  }
  return Math.hypot(...row);
}

/** The numbers of the row of a token. */
const valuesOf = (position) => sequence.rows[tokens[position].row];

let summed = { visits: null };
/** The gradients after the whole backward pass. */
function finalGradients() {
  if (summed.visits !== visits) summed = { visits, gradients: sumOf(visits) };
  return summed.gradients;
}

/** What is said of a token that is looked at. */
function explainToken(position) {
  const name = tokenName(position);
  const { row } = tokens[position];
  const parts = [html("p", { class: "eyebrow" }, `Token ${position + 1} of ${used}`), html("h2", {}, bdi(name)),
    html("p", {}, `Row ${row} of `, bdi(sequence.table), `: ${valuesOf(position).length} numbers.`)];
  const readers = readersOf(position);
  if (readers.length) {
    parts.push(html("h3", {}, "Forward: who reads it"), html("dl", {}, ...readers.flatMap(({ by, weights }) =>
      [html("dt", {}, bdi(by)), html("dd", {}, weights.map(([head, weight]) => `${head} ${percent(weight)}`).join(", "))])));
  }
  const dependents = dependentsOf(position);
  const reached = predictions.filter((prediction) => isUsed(prediction) && prediction.scores.some((score) => dependents.has(score)));
  const counted = predictions.filter(isUsed).length;
  parts.push(html("p", {}, reached.length ? `${reached.length === counted ? "Each prediction depends" : `${reached.length} of ${counted} predictions depend`} on it: the blocks that do are outlined.` : "No prediction depends on it."));
  if (!passes.backward || !reached.length) return parts;
  const pushes = reached.map((prediction) => [prediction, gradientFrom(prediction, position)]).sort(([, one], [, other]) => other - one);
  const largest = pushes[0][1];
  parts.push(html("h3", {}, "Backward: whose loss changes it"), html("p", { class: "soft" }, "The length of the gradient that each prediction passes back to this row, the largest first:"),
    html("ol", { class: "bars" }, ...pushes.map(([prediction, length]) => {
      const bar = html("span", { class: "bar" });
      bar.style.width = `${((100 * length) / largest || 0).toFixed(1)}%`;
      const of = prediction.target === null ? `prediction ${predictions.indexOf(prediction) + 1}` : className(prediction.target);
      return html("li", {}, html("span", { class: "class" }, bdi(of)), html("span", { class: "track" }, bar), html("span", { class: "number" }, readable(length)));
    })));
  return parts;
}

/** The positions that read a token by attention, with the weight of each head. */
function readersOf(position) {
  const readers = new Map();
  for (const head of sequence.heads) {
    const place = head.to.indexOf(position);
    if (head.from >= used || place < 0 || !isComputed(head.weights[place])) continue;
    if (!readers.has(head.from)) readers.set(head.from, []);
    readers.get(head.from).push([headName(head), nodes[head.weights[place]].data]);
  }
  return [...readers].map(([from, weights]) => ({ by: `${tokenName(from)}, token ${from + 1}`, weights }));
}
