// ---- Another word: its letters take their rows of the table, its predictions their right classes ------------------------

/** The word that is shown, as rows: its tokens, and what follows the last. */
const wordNow = () => [...tokens.slice(0, used).map(({ row }) => row), ...(readsItself ? [predictionAt(used - 1).target] : [])];
const predictionAt = (position) => predictions.find((each) => each.position === position);

// Whether each token is the right class of the prediction before it; whether shorter words have the same program; and how
// many marks stand before each word and after it.
const { reads: readsItself = false, shorter: canBeShorter = false, before: marksBefore = 0, after: marksAfter = 0, first: firstWord = null } = sequence.word ?? {};
const separator = tokens.length && sequence.rows.some((_, row) => [...rowName(row)].length > 1) ? " " : "";
const markBefore = wordNow().slice(0, marksBefore);
const markAfter = marksAfter ? wordNow().slice(-marksAfter) : [];
const MOST_LETTERS = wordNow().length - marksBefore - marksAfter;
const lettersOf = (rows) => rows.slice(markBefore.length, rows.length - markAfter.length).map(rowName).join(separator);

const zero = canBeShorter ? sequence.total.zero : null;

/** The rows of a word that was typed; throws what is wrong with it. */
function rowsOf(text) {
  const letters = separator ? text.trim().split(/\s+/).filter(Boolean) : [...text.trim()];
  const rows = letters.map((letter) => {
    const row = sequence.rows.findIndex((_, index) => rowName(index) === letter);
    if (row < 0) throw new RangeError(`“${letter}” is none of the ${sequence.rows.length} that this program knows`);
    return row;
  });
  if (rows.length > MOST_LETTERS) throw new RangeError(`At most ${MOST_LETTERS} fit: the graph has ${tokens.length} places. For more, explore the loss of a longer word, and say which one to show: mg.explore(loss, tokens=${JSON.stringify(separator ? lettersOf(wordNow()).split(separator) : lettersOf(wordNow()))})`);
  if (rows.length < MOST_LETTERS && !canBeShorter) throw new RangeError(`It has to be ${MOST_LETTERS} long: shorter words have another graph`);
  return [...markBefore, ...rows, ...markAfter];
}

/** Let a Value be used in the place of another. */
function exchange(user, from, to) {
  const { operands } = nodes[user];
  operands.forEach((operand, place) => { if (operand === from) operands[place] = to; });
}

/** Let a token take another row of the table. */
function setRow(position, row) {
  const token = tokens[position];
  const [from, to] = [token.row, row].map((each) => sequence.rows[each]);
  token.takers.forEach((takers, column) => takers.forEach((taker) => exchange(taker, from[column], to[column])));
  token.row = row;
}

/** Let another class be the right one: in the loss, its score and that of the one before change places. */
function setTarget(prediction, target) {
  const [from, to] = [prediction.target, target].map((each) => prediction.scores[each]);
  prediction.target = target;
  if (from === to) return;
  for (const user of membersOf[cellOfLoss(prediction)]) {
    const { operands } = nodes[user];
    operands.forEach((operand, place) => (operands[place] = operand === from ? to : operand === to ? from : operand));
  }
}
const cellOfLoss = (prediction) => membersOf.findIndex((members) => members.includes(prediction.result));

/** Let the result be made of the first predictions alone. */
function setLength(count) {
  const { places, count: divisor } = sequence.total;
  predictions.forEach((prediction, index) => {
    const [user, place] = places[index];
    nodes[user].operands[place] = isUsed(prediction) ? prediction.result : zero;
  });
  if (divisor !== null) nodes[divisor].data = nodes[divisor].recorded < 1 ? 1 / count : count;
}

const engineVisits = [...passes.visits]; // in the engine's order, as it was recorded

/** Let each result come after its operands, and each visit after those of all that use the Value. */
function putInOrder() {
  const rank = new Int32Array(nodes.length).fill(-1);
  let next = 0;
  for (const { index } of nodes) {
    const stack = [index];
    while (stack.length) {
      const top = stack[stack.length - 1];
      const waiting = rank[top] < 0 ? nodes[top].operands.filter((operand) => rank[operand] < 0) : [];
      stack.push(...waiting);
      if (waiting.length) continue;
      stack.pop();
      if (rank[top] < 0) rank[top] = next++;
    }
  }
  program.sort((one, other) => rank[one.index] - rank[other.index]);
  passes.visits = isInOrder(engineVisits) ? engineVisits : [...engineVisits].sort((one, other) => rank[other.node] - rank[one.node]);
}

/** Whether no visit comes before that of one that uses the Value. */
function isInOrder(all) {
  const done = new Set();
  return all.every(({ node }) => {
    done.add(node);
    return nodes[node].operands.every((operand) => !done.has(operand));
  });
}

/** Show another word: the same program, and both passes computed again; or throw what is wrong, and show the one before. */
function setWord(rows) {
  const before = wordNow();
  put(rows);
  try {
    setNumbers(new Map());
  } catch (error) {
    put(before);
    setNumbers(new Map());
    throw error;
  } finally {
    for (const node of nodes) node.users = [];
    for (const node of nodes) for (const operand of new Set(node.operands)) nodes[operand].users.push(node.index);
    const table = groups[nodes[sequence.rows[0][0]].group];
    if (table) table.outputs = table.members.filter((index) => nodes[index].users.length);
    if (passes.backward) layVisits();
    layBlocks();
  }
}

/** Connect the graph as the program would have made it of these tokens. */
function put(rows) {
  used = readsItself ? rows.length - 1 : rows.length;
  rows.slice(0, used).forEach((row, position) => setRow(position, row));
  if (readsItself) for (let position = 0; position < used; position++) setTarget(predictionAt(position), rows[position + 1]);
  if (canBeShorter) setLength(used);
  putInOrder();
}
