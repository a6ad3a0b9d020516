// ---- Numbers and names ---------------------------------------------------------------------------------

const minus = (text) => text.replace("-", "−");
const exact = (number) => minus(Object.is(number, -0) ? "-0" : String(number)).replace("Infinity", "∞");

/** A number as it is where that is short, else to about four digits. */
function readable(number) {
  const text = exact(number);
  const size = Math.abs(number);
  if (text.length <= 6 || !Number.isFinite(number)) return text;
  if (size >= 1e6 || size < 1e-4) return minus(number.toExponential(3).replace("e+", "e").replace("e-", "e−"));
  return minus(size >= 1000 ? number.toFixed(1) : number.toPrecision(4));
}

const inBrackets = (number) => (number < 0 || Object.is(number, -0) ? `(${readable(number)})` : readable(number));

const pen = document.createElement("canvas").getContext("2d");
const LETTERS = getComputedStyle(document.body).fontFamily;
/** How wide a text is, in pixels of the plane. */
function widthOf(text, weight, size) {
  pen.font = `${weight} ${size}px ${LETTERS}`;
  return pen.measureText(text).width;
}
/** As much of a text as there is room for, in whole characters: of one that is cut, an ellipsis says so. */
function cut(text, room, weight = 400, size = 13) {
  const line = text.replaceAll("\n", " ⏎ ");
  if (widthOf(line, weight, size) <= room) return line;
  let kept = "";
  for (const part of globalThis.Intl?.Segmenter ? new Intl.Segmenter().segment(line) : line) {
    const longer = kept + (part.segment ?? part);
    if (widthOf(`${longer}…`, weight, size) > room) break;
    kept = longer;
  }
  return `${kept}…`;
}

let results = 0;
let leaves = 0;
const WORDS = { add: "sum", sub: "difference", mul: "product", div: "quotient", pow: "power", neg: "negative" };
const THROUGH = ["vector", "dot", "sum", "part", "stack"]; // groups that do not count as places in the program
/** The innermost place in the program that a Value or a group is in. */
function scopeOf(group) {
  while (group !== null && THROUGH.includes(groups[group].kind)) group = groups[group].parent;
  return group;
}
/** Whether a result is one of a kernel, all of whose terms are one Value. */
const isEntry = ({ operands }) => operands.length === 1 && nodes[operands[0]].terms !== "";
/** What made a result: its primitive, or the kernel that it is a number of. */
function madeBy(node) {
  if (isEntry(node)) return madeBy(nodes[node.operands[0]]);
  const { name, symbol } = primitives[node.primitive];
  return node.terms ? symbol : name;
}
const isNameless = ({ kind, label, hint }) => kind === "result" && !label && !hint;
/** What made a result, in a word: sum, tanh; and of a kernel with several results, which of them it is: tanh[3]. */
function wordOf(node) {
  const { name, symbol, library } = primitives[node.primitive];
  if (node.terms) return "terms";
  const word = isEntry(node) ? madeBy(node) : library ? (WORDS[name] ?? name) : symbol || name;
  const shape = node.indices.length ? (groups[scopeOf(node.group)]?.size ?? []) : [];
  return word + node.indices.filter((_, axis) => shape[axis] !== 1).map((index) => `[${index}]`).join("");
}
const twins = new Map(); // how many scopes of one name there are in another so far
groups.forEach((group, index) => {
  if (scopeOf(index) !== index) return;
  const key = `${scopeOf(group.parent)} ${group.name}`;
  twins.set(key, (group.twin = (twins.get(key) ?? 0) + 1));
});
const alike = new Map(); // results that have the same word in the same place: by both
nodes.forEach((node, index) => {
  node.index = index;
  node.isLeftOut = node.data === null; // as it follows from its operands, to the last bit
  node.data = Number(node.data);
  node.recorded = node.data;
  node.users = [];
  if (node.kind === "result") results++;
  if (node.kind === "leaf" && !node.label && !node.hint) node.ordinal = ++leaves;
  if (!isNameless(node) || index === root) return;
  node.word = wordOf(node);
  const key = `${scopeOf(node.group)} ${node.word}`;
  if (!alike.has(key)) alike.set(key, []);
  node.ordinal = alike.get(key).push(index);
  node.alike = alike.get(key);
});
for (const node of nodes) for (const operand of new Set(node.operands)) nodes[operand].users.push(node.index);

/** The places in the program around a group, the innermost first. */
function scopesAround(group) {
  const found = [];
  for (let scope = scopeOf(group); scope !== null; scope = scopeOf(groups[scope].parent)) found.push(scope);
  return found;
}

/** What a Value is called in full, with where it is, or where it is from another group: layers[0].neurons[2].w[1]; or layer 1, neuron 3, tanh. */
function fullNameOf(index, from = null) {
  const node = nodes[index];
  if (node.label || !node.word) return node.label || node.path || nameOf(index);
  const path = [nameOf(index)];
  const known = scopesAround(from);
  for (const scope of scopesAround(node.group).filter((each) => !known.includes(each))) {
    const { name, kind, twin } = groups[scope];
    path.unshift((["layer", "neuron", "network"].includes(kind) ? name.toLowerCase() : name) + (twin > 1 ? ` (${twin})` : ""));
  }
  return path.join(", ");
}

/** What a Value is called: its label, or what its module calls it, or what made it, counted where it is: product 2. */
function nameOf(index) {
  const node = nodes[index];
  if (node.label) return node.label;
  if (node.kind === "constant") return readable(node.data);
  if (node.hint || node.kind === "leaf") return node.hint || `leaf ${node.ordinal}`;
  return node.index === root ? "result" : node.alike.length > 1 ? `${node.word} ${node.ordinal}` : node.word;
}
/** What the operands of a result are called beside it: with where they are, if it or another of them has the same name. */
function operandNames(node) {
  const names = [node.index, ...new Set(node.operands)].map(nameOf);
  return node.operands.map((operand) => (names.filter((name) => name === nameOf(operand)).length > 1 ? outerName(operand, node.group) : nameOf(operand)));
}
/** The name of a Value beside one in a group that has the same name. */
function outerName(index, group) {
  const scope = scopeOf(nodes[index].group);
  const [inFull, name] = [fullNameOf(index, group), nameOf(index)];
  if (inFull !== name || nodes[index].kind !== "result" || nodes[index].label || scope === scopeOf(group)) return inFull;
  return scope === null ? `outer ${name}` : `${groups[scope].name}, ${name}`;
}
const rootName = nameOf(root);
const rootInWords = rootName === "result" ? "the result" : rootName;

