// ---- The step of the optimiser, in words and numbers --------------------------------------------------------------------

/** A formula without what changes nothing, such as + 0 × w, its constants to twelve digits. */
function simplified(formula) {
  if (typeof formula === "number") return Number(formula.toPrecision(12));
  if (!Array.isArray(formula)) return formula;
  const [name, ...operands] = formula;
  const parts = operands.map(simplified);
  if (name === "mul" && parts.includes(0)) return 0;
  if (name === "add" && parts.includes(0)) return parts[0] === 0 ? parts[1] : parts[0];
  if (name === "sub" && parts[1] === 0) return parts[0];
  return [name, ...parts];
}

/** A formula with names for the parts of it that are named already. */
function abridged(formula, named) {
  const name = named.get(JSON.stringify(formula));
  if (name !== undefined) return name;
  return Array.isArray(formula) ? [formula[0], ...formula.slice(1).map((part) => abridged(part, named))] : formula;
}

/** The formulas of an update, line by line: the next numbers of the state, and then the parameter. */
function updateLines({ parameter, state, names }) {
  const named = new Map();
  const lines = state.map((formula, place) => {
    const line = { name: names[place], result: 1 + place, formula: abridged(simplified(formula), named) };
    if (Array.isArray(formula)) named.set(JSON.stringify(simplified(formula)), `next${place}`);
    return line;
  });
  lines.sort((one, other) => Number(other.name === "t") - Number(one.name === "t")); // the others use it
  const next = abridged(simplified(parameter), named);
  const isStep = next[0] === "sub" && next[1] === "0";
  return [...lines, { name: "w", result: 0, sign: isStep ? "−=" : "=", formula: isStep ? next[2] : next }];
}

/** The lines of an update for one parameter: with names, then with numbers. */
function explainUpdate(optimizer, inputs) {
  const results = (optimizer.update ??= updateOf(optimizer))(inputs);
  const words = { 0: "w", 1: "gradient", 2: "rate", numbers: {} };
  const numbers = { 0: inBrackets(inputs[0]), 1: inBrackets(inputs[1]), 2: readable(inputs[2]), numbers: {} };
  optimizer.names.forEach((name, place) => {
    words[3 + place] = words[`next${place}`] = name;
    numbers[3 + place] = inBrackets(inputs[3 + place]);
    numbers[`next${place}`] = inBrackets(results[1 + place]);
  });
  return updateLines(optimizer).map(({ name, sign = "=", result, formula }) => {
    const text = render(formula, numbers).text;
    const outcome = name === "w" && sign !== "=" ? inputs[0] - results[0] : results[result];
    const parts = [`${name} ${sign} `, render(formula, words).text, html("br"), `= ${text}`];
    if (text !== readable(outcome)) parts.push(html("br"), "= ", html("span", { class: "outcome" }, readable(outcome)));
    return math(...parts);
  });
}

/** The step of one parameter: the gradient that trains it, and what the optimiser makes of it. */
function explainParameter(parameter, next) {
  const { snapshot, rate, optimizer, gradients: all, numbers } = next;
  const inputs = [snapshot.numbers[parameter], all[parameter], rate, ...optimizer.state.map((_, place) => snapshot.states[place]?.[parameter] ?? 0)];
  return [
    html("p", { class: "eyebrow" }, `Update, ${lessons.trained.indexOf(parameter) + 1} of ${lessons.trained.length}`), html("h2", {}, bdi(parameterName(parameter)), " takes its step"),
    html("div", { class: "contribution" }, html("h3", {}, "Its gradient"), ...explainGradient(parameter, next)),
    html("div", { class: "contribution" }, html("h3", {}, optimizer.name), ...explainUpdate(optimizer, inputs)),
    math("w: ", readable(inputs[0]), " → ", html("span", { class: "outcome" }, readable(numbers[parameter]))),
  ];
}

/** Where the gradient of a parameter comes from: the mean over the batch, and who gives most of it. */
function explainGradient(parameter, { batch, contributions, gradients: all }) {
  const total = html("span", { class: "outcome" }, readable(all[parameter]));
  if (batch.length === 1) return [math("gradient = ", total)];
  const given = contributions(parameter);
  const largest = given.reduce((best, contribution, place) => (Math.abs(contribution) > Math.abs(given[best]) ? place : best), 0);
  return [
    math(`mean over ${batch.length} examples = `, total),
    html("p", { class: "soft left" }, `Example ${batch[largest] + 1} gives most: its own gradient is ${readable(given[largest])}, and 1/${batch.length} of it counts.`),
  ];
}
