
// ---- Contributions: where the gradient of a Value comes from, the largest first ----------------------------------------

const MOST_LISTED = 6;

/** What was added to the gradient of a Value so far: each contribution with the step in which it was. */
function contributionsOf(index) {
  const found = [];
  for (const [place, { node, contributions, locals }] of visits.slice(0, Math.max(0, at - seed)).entries()) {
    nodes[node].operands.forEach((operand, which) => {
      if (operand === index && contributions[which] !== null) found.push({ node, contribution: contributions[which], local: locals[which], step: seed + 1 + place });
    });
  }
  return found;
}

/** The member of the outermost stack around a Value: its sample, or its step of a loop; null where it is in none. */
function memberOf(index) {
  let member = null;
  for (let group = nodes[index].group; group !== null; group = groups[group].parent) {
    if (groups[group].parent !== null && isStack(groups[group].parent)) member = group;
  }
  return member;
}

/** The contributions by the samples that they come from, if there are several samples and more contributions than can be listed. */
function bySample(contributions) {
  const sums = new Map();
  for (const { node, contribution, step } of contributions) {
    const member = memberOf(node);
    const known = sums.get(member) ?? { contribution: 0, count: 0, step, name: member === null ? "the rest" : groups[member].name };
    sums.set(member, { ...known, contribution: known.contribution + contribution, count: known.count + 1, step });
  }
  return contributions.length > MOST_LISTED && sums.size > 1 ? [...sums.values()] : null;
}

/** A Value as one looks at it from a group: with its sample or step of a loop, or its kernel, if it is of another. */
function placedName(index, from) {
  const [member, scope, known] = [memberOf(index), scopeOf(nodes[index].group), scopesAround(from)];
  if (member !== null) return `${groups[member].name}, ${nameOf(index)}`;
  return scope !== null && groups[scope].kernel && !known.includes(scope) ? `${groups[scope].name}, ${nameOf(index)}` : nameOf(index);
}

const sizeOf = ({ contribution }) => (Number.isNaN(contribution) ? Infinity : Math.abs(contribution));

/** Where the gradient of a Value comes from, in words and numbers. */
function explainContributions(index) {
  const contributions = contributionsOf(index);
  if (!contributions.length) return [];
  const row = ({ node, name, count, contribution, local, step }) => {
    const from = name ?? placedName(node, nodes[index].group);
    const made = count > 1 ? `${count} contributions, together ` : local === undefined || local === null || isWrong ? "" : `${inBrackets(gradients[node])} × ${inBrackets(local)} = `;
    return [html("dt", {}, html("button", { type: "button", class: "link", onclick: () => goToContribution(step, index) }, bdi(from))), html("dd", { class: "math" }, made, readable(contribution))];
  };
  const listed = (bySample(contributions) ?? contributions).sort((one, other) => sizeOf(other) - sizeOf(one));
  const rows = listed.slice(0, MOST_LISTED).flatMap(row);
  const rest = listed.slice(MOST_LISTED);
  if (rest.length) rows.push(html("dt", {}, `${rest.length} more`), html("dd", { class: "math" }, readable(rest.reduce((sum, { contribution }) => sum + contribution, 0))));
  if (listed.length > 1) rows.push(html("dt", {}, "sum"), html("dd", { class: "math outcome" }, readable(gradients[index])));
  return [html("h3", {}, listed.length > 1 ? "Its gradient comes from, the largest first" : "Its gradient comes from"), html("dl", {}, ...rows)];
}

/** Go to the step in which a contribution was given, and look at who got it. */
function goToContribution(step, index) {
  play(false);
  if (reveal(steps[step].node)) draw();
  go(step);
  selected = index;
  show();
}
