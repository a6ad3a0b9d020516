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

/** The first columns of a text in whole characters; wide ones are counted twice, and those without a width not at all. */
function cut(text, columns) {
  const parts = globalThis.Intl?.Segmenter ? [...new Intl.Segmenter().segment(text)].map((part) => part.segment) : [...text];
  let used = 0;
  let kept = "";
  for (const part of parts) {
    used += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|\p{Extended_Pictographic}/u.test(part) ? 2 : /^\p{Cf}+$/u.test(part) ? 0 : 1;
    if (used > columns) return `${kept}…`;
    kept += part === "\n" ? " ⏎ " : part;
  }
  return kept;
}

let results = 0;
let leaves = 0;
nodes.forEach((node, index) => {
  node.index = index;
  node.data = Number(node.data);
  node.recorded = node.data;
  node.users = [];
  node.ordinal = node.kind === "result" ? ++results : node.kind === "leaf" && !node.label && !node.hint ? ++leaves : 0;
});
for (const node of nodes) for (const operand of new Set(node.operands)) nodes[operand].users.push(node.index);

/** Where a parameter is in its network, in full: layer 1, neuron 3, w2. */
const fullNameOf = (index) => (nodes[index].label ? nodes[index].label : nodes[index].path || nameOf(index));

/** What a Value is called: its label, or what its module calls it, or its place in the program. */
function nameOf(index) {
  const node = nodes[index];
  if (node.label) return node.label;
  if (node.kind === "constant") return readable(node.data);
  return node.hint || (node.kind === "leaf" ? `leaf ${node.ordinal}` : `v${node.ordinal}`);
}
const rootName = nameOf(root);

