
// ---- Shares: where the gradient of a Value comes from, the largest first ----------------------------------------

const MOST_LISTED = 6;

/** What was added to the gradient of a Value so far: each share with the step in which it was. */
function sharesOf(index) {
  const found = [];
  for (const [place, { node, shares, locals }] of turns.slice(0, Math.max(0, at - seed)).entries()) {
    nodes[node].operands.forEach((operand, which) => {
      if (operand === index && shares[which] !== null) found.push({ node, share: shares[which], local: locals[which], step: seed + 1 + place });
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

/** The shares by the samples that they come from, if there are several samples and more shares than can be listed. */
function bySample(shares) {
  const sums = new Map();
  for (const { node, share, step } of shares) {
    const member = memberOf(node);
    const known = sums.get(member) ?? { share: 0, count: 0, step, name: member === null ? "the rest" : groups[member].name };
    sums.set(member, { ...known, share: known.share + share, count: known.count + 1, step });
  }
  return shares.length > MOST_LISTED && sums.size > 1 ? [...sums.values()] : null;
}

/** A Value as one looks at it from a group: with its sample or step of a loop, or its kernel, if it is of another. */
function placedName(index, from) {
  const [member, scope, known] = [memberOf(index), scopeOf(nodes[index].group), scopesAround(from)];
  if (member !== null) return `${groups[member].name}, ${nameOf(index)}`;
  return scope !== null && groups[scope].kernel && !known.includes(scope) ? `${groups[scope].name}, ${nameOf(index)}` : nameOf(index);
}

const sizeOf = ({ share }) => (Number.isNaN(share) ? Infinity : Math.abs(share));

/** Where the gradient of a Value comes from, in words and numbers. */
function explainShares(index) {
  const shares = sharesOf(index);
  if (!shares.length) return [];
  const row = ({ node, name, count, share, local, step }) => {
    const from = name ?? placedName(node, nodes[index].group);
    const made = count > 1 ? `${count} shares, together ` : local === undefined || local === null || isWrong ? "" : `${inBrackets(gradients[node])} × ${inBrackets(local)} = `;
    return [html("dt", {}, html("button", { type: "button", class: "link", onclick: () => goToShare(step, index) }, bdi(from))), html("dd", { class: "math" }, made, readable(share))];
  };
  const listed = (bySample(shares) ?? shares).sort((one, other) => sizeOf(other) - sizeOf(one));
  const rows = listed.slice(0, MOST_LISTED).flatMap(row);
  const rest = listed.slice(MOST_LISTED);
  if (rest.length) rows.push(html("dt", {}, `${rest.length} more`), html("dd", { class: "math" }, readable(rest.reduce((sum, { share }) => sum + share, 0))));
  if (listed.length > 1) rows.push(html("dt", {}, "sum"), html("dd", { class: "math outcome" }, readable(gradients[index])));
  return [html("h3", {}, listed.length > 1 ? "Its gradient comes from, the largest first" : "Its gradient comes from"), html("dl", {}, ...rows)];
}

/** Go to the step in which a share was given, and look at who got it. */
function goToShare(step, index) {
  play(false);
  if (reveal(steps[step].node)) draw();
  go(step);
  selected = index;
  show();
}
