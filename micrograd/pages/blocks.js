// ---- The blocks of the program, token by token, and the steps through both passes by blocks ------------------------------

const { blocks = [], cells: blockCells = [] } = sequence;
const membersOf = blockCells.map(() => []); // the Values of each cell
{
  let index = 0;
  for (const [cell, count] of sequence.cell_of ?? []) for (let end = index + count; index < end; index++) if (cell >= 0) membersOf[cell].push(index);
}
const resultsOf = membersOf.map((members) => {
  const own = new Set(members);
  return members.filter((index) => index === root || nodes[index].users.some((user) => !own.has(user)));
});
const cellNamed = (cell) => `${blocks[blockCells[cell][0]].name} at ${tokenName(blockCells[cell][1])}, token ${blockCells[cell][1] + 1}`;

// A step by blocks is a number: 0 is the start; then each cell in the order of the program; then the whole result, where
// the backward pass begins; then each cell in the reverse order.
let block = 0;
let running = []; // the cells of the word that is shown, in their order
let stepOfBlock = [0]; // the step of the passes at which each step by blocks is done
let lastBlock = 0;
const cellAt = (number) => (number >= 1 && number <= running.length ? running[number - 1] : number > running.length + 1 ? running[2 * running.length + 1 - number] : null);
const isBackAt = (number) => number > running.length;
/** The step that computes a cell, and the one in which it passes its gradients back. */
const stepForward = (cell) => running.indexOf(cell) + 1;
const stepBackward = (cell) => 2 * running.length + 1 - running.indexOf(cell);

/** Put a step for each cell, in both passes. */
function layBlocks() {
  running = blockCells.flatMap(([, position], cell) => (position < used ? [cell] : []));
  lastBlock = passes.backward ? 2 * running.length + 1 : running.length;
  stepOfBlock = [0];
  const end = () => stepOfBlock[stepOfBlock.length - 1];
  for (const cell of running) stepOfBlock.push(membersOf[cell].reduce((last, index) => Math.max(last, nodes[index].forward), end()));
  if (!passes.backward) return;
  stepOfBlock.push(seed);
  for (const cell of [...running].reverse()) stepOfBlock.push(membersOf[cell].reduce((last, index) => Math.max(last, nodes[index].backward ?? 0), end()));
  stepOfBlock[lastBlock] = steps.length - 1;
}

const MOST_IN_TILE = 64;
/** Numbers as colours, in rows of at most sixteen. */
function tileOf(count) {
  const shown = { length: Math.min(count, MOST_IN_TILE) };
  const columns = Math.min(16, Math.max(1, shown.length > 16 ? Math.ceil(shown.length / Math.ceil(shown.length / 16)) : shown.length));
  const rows = Math.max(1, Math.ceil(shown.length / columns));
  const [width, height] = [64, rows === 1 ? 12 : Math.max(12, 5 * rows)];
  const drawn = cells(rows, columns, 0, 0, width, height);
  const element = svg("svg", { class: "tile", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", preserveAspectRatio: "none" }, drawn.element);
  return { element, show: drawn.show };
}

/** The table of blocks: a column for each token, a row for each block. choose is called with a cell, look with a position. */
function blockTable(choose, look) {
  const heads = tokens.map((_, position) => {
    const tile = tileOf(valuesOf(position).length);
    const letter = html("span", { class: "letter" });
    const button = html("button", { type: "button", class: "token", "aria-pressed": "false", onclick: () => look(position) }, letter, tile.element);
    return { button, tile, letter, position };
  });
  const shown = new Map();
  const row = (kind) => html("tr", {}, html("th", { scope: "row" }, blocks[kind].name), ...tokens.map((_, position) => {
    const cell = blockCells.findIndex(([of, at]) => of === kind && at === position);
    if (cell < 0) return html("td", {});
    const prediction = blocks[kind].kind === "loss" ? predictions.findIndex(({ result }) => membersOf[cell].includes(result)) : -1;
    const tile = prediction < 0 ? tileOf(resultsOf[cell].length) : null;
    const text = html("span", { class: "guess" });
    const button = html("button", { type: "button", class: "cell-of-block", onclick: () => choose(cell) }, tile ? tile.element : text);
    shown.set(cell, { button, tile, text, prediction });
    return html("td", {}, button);
  }));
  const element = html("table", { class: "blocks", "aria-label": "The blocks of the program, for each token" },
    html("thead", {}, html("tr", {}, html("td", {}), ...heads.map(({ button }) => html("th", { scope: "col" }, button)))), html("tbody", {}, ...blocks.map((_, kind) => row(kind))));

  function paint(looked) {
    const reached = looked === null ? null : dependentsOf(looked);
    const ofToken = (index) => (hasGradient(index) ? gradients[index] : isBackAt(block) ? null : nodes[index].data);
    const row = (position) => valuesOf(position).slice(0, MOST_IN_TILE).map(ofToken);
    const largest = largestOf(heads.slice(0, used).flatMap(({ position }) => row(position))); // tokens are compared with each other
    for (const { button, tile, letter, position } of heads) {
      letter.textContent = tokenName(position);
      tile.show(row(position), largest);
      button.parentElement.hidden = position >= used;
      const length = Math.hypot(...valuesOf(position).map((index) => gradients[index]));
      button.setAttribute("aria-pressed", String(position === looked));
      button.setAttribute("aria-label", `${tokenName(position)}, token ${position + 1} of ${used}${valuesOf(position).some(hasGradient) ? `, gradient of its row of length ${readable(length)}` : ""}`);
    }
    const isDoneAt = (cell) => stepForward(cell) <= block;
    const isPassedAt = (cell) => isBackAt(block) && stepBackward(cell) <= block;
    const numbersIn = (cell) => resultsOf[cell].slice(0, MOST_IN_TILE).map((index) => (isBackAt(block) ? (isPassedAt(cell) ? gradients[index] : null) : isDoneAt(cell) ? nodes[index].data : null));
    const largestIn = blocks.map(() => 0); // so are the cells of a row
    for (const cell of running) if (shown.get(cell).tile) largestIn[blockCells[cell][0]] = Math.max(largestIn[blockCells[cell][0]], largestOf(numbersIn(cell)));
    for (const [cell, { button, tile, text, prediction }] of shown) {
      button.parentElement.hidden = blockCells[cell][1] >= used;
      const [isDone, isPassed] = [isDoneAt(cell), isPassedAt(cell)];
      button.classList.toggle("active", cellAt(block) === cell && !isTraining());
      button.classList.toggle("waiting", !isDone);
      button.classList.toggle("passed", isPassed);
      button.classList.toggle("depends", reached !== null && membersOf[cell].some((index) => reached.has(index)));
      tile?.show(numbersIn(cell), largestIn[blockCells[cell][0]]);
      let said = `${resultsOf[cell].length} ${resultsOf[cell].length === 1 ? "number" : "numbers"}`;
      if (prediction >= 0) {
        const { target, scores } = predictions[prediction];
        const probability = isDone && scores.every(isComputed) && target !== null ? percent(probabilitiesOf(predictions[prediction])[target]) : "";
        text.replaceChildren(...(target === null ? [] : [html("b", {}, bdi(className(target)))]), html("span", {}, probability));
        said = probability ? `${className(target)} has probability ${probability}` : said;
      }
      button.setAttribute("aria-label", `${cellNamed(cell)}: ${isDone ? said : "not computed yet"}${isPassed ? ", with gradients" : ""}${button.classList.contains("depends") ? ", depends on the token" : ""}`);
    }
  }
  return { element, paint };
}

/** A step by blocks in words. */
function explainBlock(open) {
  const cell = cellAt(block);
  const isBack = isBackAt(block);
  const eyebrow = html("p", { class: "eyebrow" }, block === 0 ? "Start" : isBack ? `Backward, block ${block - running.length} of ${running.length + 1}` : `Forward, block ${block} of ${running.length}`);
  if (block === 0) return [eyebrow, html("h2", {}, "A program that reads ", bdi(tokens.slice(0, used).map((_, position) => tokenName(position)).join(" "))), html("p", {}, `Each column is a token, each row a block. ${nodes.length - results} numbers are given; the forward pass computes ${results} more, block by block${passes.backward ? ", and the backward pass their gradients" : ""}.`)];
  if (cell === null) return [eyebrow, html("h2", {}, "Backpropagation starts at ", bdi(rootInWords)), math(rootName, " = ", html("span", { class: "outcome" }, readable(nodes[root].data)))];
  const [kind, position] = blockCells[cell];
  const parts = [eyebrow, html("h2", {}, bdi(blocks[kind].name), isBack ? " passes gradients back" : " is computed"), html("p", { class: "soft" }, "for ", bdi(tokenName(position)), `, token ${position + 1}`), ...wordsOf(cell)];
  if (isBack) {
    const largest = [...resultsOf[cell]].sort((one, other) => Math.abs(gradients[other]) - Math.abs(gradients[one]))[0];
    parts.push(html("p", {}, `Its ${resultsOf[cell].length === 1 ? "number has" : `${resultsOf[cell].length} numbers have`} their gradients, of length ${readable(Math.hypot(...resultsOf[cell].map((index) => gradients[index])))}. The largest is ${readable(gradients[largest])}.`));
  }
  return [...parts, html("button", { type: "button", class: "link", onclick: () => open(cell) }, `Open it: ${membersOf[cell].length} scalars`)];
}

/** What a block does, in words. */
function wordsOf(cell) {
  const [kind, position] = blockCells[cell];
  const { name } = blocks[kind];
  const count = resultsOf[cell].length;
  if (name === "embedding") return [html("p", {}, bdi(tokenName(position)), ` is row ${tokens[position].row} of `, bdi(sequence.table), ` and becomes ${count} numbers.`)];
  if (blocks[kind].kind === "head") {
    const head = sequence.heads.find(({ weights }) => membersOf[cell].includes(weights[0]));
    const read = head.to.map((to, place) => [to, nodes[head.weights[place]].data]).sort(([, one], [, other]) => other - one);
    return [html("p", {}, "It takes a part of the values of each token that it reads:"), html("dl", {}, ...read.flatMap(([to, weight]) => [html("dt", {}, bdi(tokenName(to)), ` (${to + 1})`), html("dd", {}, percent(weight))]))];
  }
  if (blocks[kind].kind === "before") return [html("p", {}, `${count} numbers: what this token asks for, what it is found by, and what it gives to those that read it.`)];
  if (blocks[kind].kind === "scores") return [html("p", {}, `${count} scores, one for each class. Their softmax are the probabilities.`)];
  if (blocks[kind].kind === "loss") {
    const { target, result } = predictions.find((prediction) => membersOf[cell].includes(prediction.result));
    return [html("p", {}, ...(target === null ? [] : ["What follows is ", bdi(className(target)), ". "]), `${readable(nodes[result].data)} comes out.`)];
  }
  return [html("p", {}, `${count} ${count === 1 ? "number comes" : "numbers come"} out.`)];
}
