"use strict";
// The page has one graph and one number that says which step it is at. Everything shown follows from the two:
// draw() puts the visible items in place, refresh() puts the step's numbers, colours and words in.

const passes = JSON.parse(document.getElementById("data").textContent);
const { nodes, groups, primitives, root } = passes;
const find = (id) => document.getElementById(id);
const SMOOTH = 3000; // items at a time
const FEW = 300; // items, up to which those out of sight are kept, for screen readers to go through
const OPEN_UNASKED = 120; // items that are shown at first, at most

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

/** The first columns of a text in whole characters, wide ones counted twice. */
function cut(text, columns) {
  const parts = globalThis.Intl?.Segmenter ? [...new Intl.Segmenter().segment(text)].map((part) => part.segment) : [...text];
  let used = 0;
  let kept = "";
  for (const part of parts) {
    used += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|\p{Extended_Pictographic}/u.test(part) ? 2 : 1;
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

/** What a Value is called: its label, or what its module calls it, or its place in the program. */
function nameOf(index) {
  const node = nodes[index];
  if (node.label) return node.label;
  if (node.kind === "constant") return readable(node.data);
  return node.hint || (node.kind === "leaf" ? `leaf ${node.ordinal}` : `v${node.ordinal}`);
}
const rootName = nameOf(root);

// ---- The evaluator: the primitives on floats, and formulas made of them ------------------------------------

/** erf by its series of positive terms, erfc beyond 2 by its continued fraction (Abramowitz and Stegun 7.1.6, 7.1.14). */
function erfc(x) {
  if (x < 0) return 2 - erfc(-x);
  if (x > 27) return 0;
  if (x > 2) {
    let fraction = x;
    for (let term = 120; term > 0; term--) fraction = x + term / 2 / fraction;
    return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
  }
  return 1 - erf(x);
}
function erf(x) {
  if (Math.abs(x) > 2) return Math.sign(x) * (1 - erfc(Math.abs(x)));
  let term = x;
  let sum = x;
  for (let n = 1; n < 60; n++) sum += term *= (2 * x * x) / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** What is left of x, with the sign of the divisor, as in Python. */
function remainder(x, y) {
  const left = x % y;
  return left !== 0 && left < 0 !== y < 0 ? left + y : left;
}

const FORWARD = {
  identity: (x) => x, detach: (x) => x, is_zero: (x) => Number(x === 0),
  equal: (x, y) => Number(x === y), less: (x, y) => Number(x < y), less_equal: (x, y) => Number(x <= y),
  where: (condition, x, y) => (condition !== 0 ? x : y),
  neg: (x) => -x, add: (x, y) => x + y, sub: (x, y) => x - y, mul: (x, y) => x * y, div: (x, y) => x / y,
  pow: (x, y) => (x === 1 ? 1 : x ** y),
  exp: Math.exp, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, sqrt: Math.sqrt,
  sin: Math.sin, cos: Math.cos, tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan,
  sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh, asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh,
  exp2: (x) => 2 ** x, log2: Math.log2, log10: Math.log10, atan2: Math.atan2, hypot: Math.hypot,
  remainder, floor_divide: (x, y) => Math.round((x - remainder(x, y)) / y), floor: Math.floor,
  relu: (x) => (x <= 0 ? 0 : x), erf, erfc, abs: Math.abs, maximum: Math.max, minimum: Math.min,
};
const COMPARE = {
  "<": (x, y) => Number(x < y), "<=": (x, y) => Number(x <= y),
  ">": (x, y) => Number(x > y), ">=": (x, y) => Number(x >= y),
};

/** The number of a formula; see formulas.py for how one is written. */
function evaluate(formula, g, out, inputs) {
  if (typeof formula === "number") return formula;
  if (formula === "g") return g;
  if (formula === "out") return out;
  if (typeof formula === "string") return inputs[formula];
  const [name, ...operands] = formula;
  if (name === "where") return evaluate(operands[evaluate(operands[0], g, out, inputs) !== 0 ? 1 : 2], g, out, inputs);
  return (COMPARE[name] ?? FORWARD[name])(...operands.map((operand) => evaluate(operand, g, out, inputs)));
}

/** A formula as a function of the operands. */
const functionOf = (formula) => (...inputs) => evaluate(formula, undefined, undefined, inputs);
for (const [name, formula] of Object.entries(passes.composites)) FORWARD[name] = functionOf(formula);

const isKnown = (formula) =>
  !Array.isArray(formula) || ((formula[0] in COMPARE || formula[0] in FORWARD) && formula.slice(1).every(isKnown));
const forwardOf = (primitive) =>
  primitive.library ? FORWARD[primitive.name] : primitive.forward && isKnown(primitive.forward) ? functionOf(primitive.forward) : undefined;
const computable = (primitive) => forwardOf(primitive) !== undefined && primitive.rules.every(isKnown);
const unknown = primitives.filter((primitive) => !computable(primitive)).map((primitive) => primitive.symbol);
const inputsOf = (node, data) => node.operands.map((operand) => data[operand]);

/** Compute all results from the numbers of the leaves. */
const program = nodes.filter((node) => node.primitive !== null).map((node) => ({ ...node, forward: forwardOf(primitives[node.primitive]) }));
function computeAll(data) {
  for (const { index, operands, forward } of program) {
    data[index] = operands.length < 3 ? forward(data[operands[0]], data[operands[1]]) : forward(...operands.map((operand) => data[operand]));
  }
}

/** Compute all results, and throw where the engine would raise. */
function forwardPass(data) {
  computeAll(data);
  for (const node of nodes) {
    if (node.primitive === null) continue;
    const inputs = inputsOf(node, data);
    refuse(data[node.index], inputs, () => `${render([primitives[node.primitive].name, ...inputs], {}).text} has no finite value`);
  }
}

/** The shares and local derivatives of every turn, from the rules. */
function backwardPass(data) {
  const gradients = new Float64Array(nodes.length);
  gradients[root] = 1;
  return passes.turns.map((turn) => {
    const node = nodes[turn.node];
    const inputs = inputsOf(node, data);
    const { rules, symbol } = primitives[node.primitive];
    const shares = turn.shares.map(() => null);
    const locals = turn.shares.map(() => null);
    turn.shares.forEach((share, place) => {
      if (share === null) return;
      shares[place] = evaluate(rules[place], gradients[node.index], data[node.index], inputs);
      locals[place] = evaluate(rules[place], 1, data[node.index], inputs);
      refuse(shares[place], [...inputs, gradients[node.index]], () => `the derivative of ${symbol} at ${inputs.map(readable).join(", ")} is not finite`);
      gradients[node.operands[place]] += shares[place];
    });
    return { node: turn.node, shares, locals };
  });
}

function refuse(number, inputs, reason) {
  if (!Number.isFinite(number) && inputs.every(Number.isFinite)) throw new RangeError(reason());
}

// ---- Formulas in words ---------------------------------------------------------------------------------

const INFIX = { add: ["+", 1], sub: ["−", 1], mul: ["×", 2], div: ["/", 2], pow: ["**", 4] };
const ATOM = 5;

/** A formula as text, with its precedence; where the rule chooses, what it chose, and why. */
function render(formula, names) {
  if (typeof formula === "number") return { text: readable(formula), precedence: formula < 0 ? 3 : ATOM, reasons: [], number: formula };
  if (formula === "g") return { text: "1", precedence: ATOM, reasons: [] };
  if (typeof formula === "string") return { text: names[formula], precedence: ATOM, reasons: [], number: names.constants?.[formula] };
  const [name, ...operands] = formula;
  if (name === "where") {
    const holds = evaluate(operands[0], 1, names.numbers.out, names.numbers) !== 0;
    const chosen = render(operands[holds ? 1 : 2], names);
    if (operands[0][0] in COMPARE) chosen.reasons = [...chosen.reasons, condition(operands[0], holds, names)];
    return chosen;
  }
  const parts = operands.map((operand) => render(operand, names));
  const reasons = parts.flatMap((part) => part.reasons);
  const wrap = (part, least) => (part.precedence < least ? `(${part.text})` : part.text);
  if (name === "sub" && parts.every((part) => part.number !== undefined)) return render(parts[0].number - parts[1].number, names);
  if (name === "lower_power") return render(["pow", operands[0], ["sub", operands[1], operands[2]]], names); // but for its last digits
  if (name === "pow" && parts[1].number === 1) return { ...parts[0], reasons };
  if (name === "neg") return { text: `−${wrap(parts[0], 3)}`, precedence: 3, reasons };
  if (name === "mul" && parts[0].text === "1") return { ...parts[1], reasons };
  if (name === "mul" && parts[1].text === "1") return { ...parts[0], reasons };
  if (name === "mul" && parts[0].text === "−1") return { text: `−${wrap(parts[1], 3)}`, precedence: 3, reasons };
  if (name in INFIX) {
    const [symbol, precedence] = INFIX[name];
    const left = name === "pow" ? ATOM : precedence;
    const right = name === "add" || name === "mul" ? precedence : precedence + 1;
    const second = parts[1].text.startsWith("−") ? `(${parts[1].text})` : wrap(parts[1], right);
    return { text: `${wrap(parts[0], left)} ${symbol} ${second}`, precedence, reasons };
  }
  return { text: `${name}(${parts.map((part) => part.text).join(", ")})`, precedence: ATOM, reasons };
}

const OPPOSITE = { "<": "≥", "<=": ">", ">": "≤", ">=": "<" };
const SHOWN = { "<": "<", "<=": "≤", ">": ">", ">=": "≥" };
function condition([comparison, x, y], holds, names) {
  return `${render(x, names).text} ${(holds ? SHOWN : OPPOSITE)[comparison]} ${render(y, names).text}`;
}

/** How a result is computed from operands that have these names. */
function call(node, names) {
  const { name, symbol, library } = primitives[node.primitive];
  const shown = names.length > 6 ? [...names.slice(0, 5), `… ${names.length - 5} more`] : names;
  if (library && name === "where") return `${names[1]} if ${names[0]} else ${names[2]}`;
  if (!library) return `${symbol || name}(${shown.join(", ")})`;
  return render([name, ...names.keys()].map((part) => (typeof part === "number" ? String(part) : part)), names).text;
}

function localFormula(node, place) {
  const rule = primitives[node.primitive].rules[place];
  if (rule === undefined || rule === null) return { text: "", reasons: [] };
  const names = { out: nameOf(node.index), ...node.operands.map(nameOf) };
  names.numbers = { out: node.data, ...node.operands.map((operand) => nodes[operand].data) };
  names.constants = node.operands.map((operand) => (nodes[operand].kind === "constant" && !nodes[operand].label ? nodes[operand].data : undefined));
  return isKnown(rule) ? render(rule, names) : { text: "", reasons: [] };
}

// ---- Steps ---------------------------------------------------------------------------------------------

const steps = [{ phase: "given" }];
nodes.forEach((node) => {
  node.forward = node.kind === "result" ? steps.push({ phase: "forward", node: node.index }) - 1 : 0;
});
const forwardSteps = steps.length - 1;
const seed = passes.backward ? steps.push({ phase: "seed", node: root }) - 1 : Infinity;
let turns = passes.turns.map((turn) => ({
  ...turn,
  shares: turn.shares.map((share) => share && Number(share)),
  locals: turn.locals.map((local) => local && Number(local)),
}));
const expected = new Int32Array(nodes.length); // shares that a Value gets
turns.forEach((turn, index) => {
  nodes[turn.node].backward = steps.push({ phase: "backward", node: turn.node, turn: index }) - 1;
  turn.shares.forEach((share, place) => {
    if (share === null) return;
    const operand = nodes[turn.node].operands[place];
    expected[operand]++;
    nodes[operand].complete = steps.length - 1;
  });
});
nodes[root].complete = seed;

let at = 0;
const gradients = new Float64Array(nodes.length);
const heard = new Int32Array(nodes.length);

/** The gradients as they are after the step, added up in the engine's order. */
function replay() {
  gradients.fill(0);
  heard.fill(0);
  if (at < seed) return;
  gradients[root] = 1;
  for (let index = 0; index < at - seed; index++) add(turns[index], () => true);
}
function add(turn, each) {
  turn.shares.forEach((share, place) => {
    if (share === null) return;
    const operand = nodes[turn.node].operands[place];
    each(place, operand, gradients[operand], share);
    gradients[operand] += share;
    heard[operand]++;
  });
}
const isComputed = (index) => nodes[index].forward <= at;
const hasGradient = (index) => at >= seed && (index === root || heard[index] > 0);
const isComplete = (index) => hasGradient(index) && heard[index] === expected[index];

// ---- Arrangement: which groups are open, and the room they take ------------------------------------------

const TITLE = 30;
const MARGIN = 16;
const open = new Set();
groups.forEach((group, index) => {
  group.index = index;
  group.members = [];
});
nodes.forEach((node) => {
  for (let group = node.group; group !== null; group = groups[group].parent) groups[group].members.push(node.index);
});
groups.forEach((group) => {
  const inside = new Set(group.members);
  group.outputs = group.members.filter((index) => index === root || nodes[index].users.some((user) => !inside.has(user)));
});
if (nodes.length <= OPEN_UNASKED && !passes.film) groups.forEach((group) => open.add(group.index));
else openOuter();

/** Open the groups that hold other groups, a layer with its neurons, if what is then seen is not too much. */
function openOuter() {
  const outer = new Set(groups.map((group) => group.parent).filter((parent) => parent !== null));
  for (const group of outer) open.add(group);
  if (new Set(nodes.map((node) => itemOf(node.index))).size > OPEN_UNASKED) open.clear();
}

/** The outermost closed group around a Value, or the Value itself. */
function itemOf(index) {
  let item = `n${index}`;
  for (let group = nodes[index].group; group !== null; group = groups[group].parent) if (!open.has(group)) item = `g${group}`;
  return item;
}
const groupOf = (item) => (item[0] === "g" ? groups[item.slice(1)] : null);

/** A map of one axis that keeps the order and gives each interval [start, end] at least the length it needs. */
function stretched(intervals) {
  const marks = [...new Set(intervals.flatMap(([start, end]) => [start, end]))].sort((one, other) => one - other);
  const rank = new Map(marks.map((mark, index) => [mark, index]));
  const lengths = marks.slice(1).map((mark, index) => mark - marks[index]);
  for (const [start, end, needed] of intervals) {
    const [first, last] = [rank.get(start), rank.get(end)];
    const length = lengths.slice(first, last).reduce((sum, part) => sum + part, 0);
    for (let index = first; needed > length && index < last; index++) lengths[index] *= needed / length;
  }
  const places = [marks[0]];
  for (const length of lengths) places.push(places[places.length - 1] + length);
  return (x) => {
    let low = 0;
    let high = marks.length - 1;
    if (x <= marks[0]) return x;
    if (x >= marks[high]) return x - marks[high] + places[high];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (marks[middle] <= x) low = middle;
      else high = middle;
    }
    return places[low] + ((x - marks[low]) / (marks[high] - marks[low])) * (places[high] - places[low]);
  };
}

/** Place what is right inside a container (0 is the whole, then the groups), and in it what is open. */
function arrange(container) {
  const { shape, items } = passes.contents[container];
  const { places, routes, width, height } = passes.shapes[shape];
  const inner = items.map((item) => (item[0] === "g" && open.has(Number(item.slice(1))) ? arrange(Number(item.slice(1)) + 1) : null));
  const sizes = places.map(([, , w, h], index) =>
    inner[index] ? [inner[index].width + 2 * MARGIN, inner[index].height + 2 * MARGIN + TITLE] : [w, h]);
  let [right, down] = [(x) => x, (y) => y];
  if (inner.some(Boolean)) {
    right = stretched(places.map(([x, , w], index) => [x - w / 2, x + w / 2, sizes[index][0]]));
    down = stretched(places.map(([, y, , h], index) => [y - h / 2, y + h / 2, sizes[index][1]]));
  }
  const placed = places.map(([x, y, w, h], index) => ({
    item: items[index], inner: inner[index], w: sizes[index][0], h: sizes[index][1],
    x: (right(x - w / 2) + right(x + w / 2)) / 2, y: (down(y - h / 2) + down(y + h / 2)) / 2,
  }));
  const moved = routes.filter(([tail, head]) => !inner[tail] && !inner[head]).map(([tail, head, points]) => {
    const path = points.map((value, index) => (index % 2 ? down(value) : right(value)));
    const last = path.length - 2; // the ends stay on their cards' borders
    for (const [end, card] of [[0, tail], [last, head]]) {
      path[end] = points[end] - places[card][0] + placed[card].x;
      path[end + 1] = points[end + 1] - places[card][1] + placed[card].y;
    }
    return { tail: items[tail], head: items[head], path };
  });
  return { placed, routes: moved, width: right(width), height: down(height) };
}

// ---- Drawing -------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
const bdi = (text) => html("bdi", {}, text);

const graph = find("graph");
const visible = new Map(); // by item: its element, place, size and the texts that change
const edges = []; // element, and the pairs of Values that it stands for
const edgesOf = new Map(); // by pair
let size = { width: 1, height: 1 };

function draw() {
  const focused = document.activeElement?.dataset?.item;
  for (const id of ["boxes", "edges", "nodes"]) find(id).replaceChildren();
  visible.clear();
  edges.length = 0;
  edgesOf.clear();
  for (const kind of Object.keys(marked)) marked[kind].clear();
  const whole = arrange(0);
  size = { width: whole.width, height: whole.height };
  const routes = new Map();
  place(whole, 0, 0, routes);
  connect(routes);
  graph.classList.toggle("many", visible.size > 600);
  const few = visible.size <= FEW;
  for (const shown of [...visible.values(), ...edges]) {
    shown.away = !few;
    if (few) shown.home.append(shown.element);
  }
  look();
  find("expand").disabled = open.size === groups.length;
  find("collapse").disabled = open.size === 0;
  setTabStop(visible.has(focused) ? focused : itemOf(steps[at].node ?? root));
  if (focused) (visible.get(focused) ?? visible.get(tabStop))?.element.focus({ preventScroll: true });
}

function place(arrangement, dx, dy, routes) {
  for (const { tail, head, path } of arrangement.routes) {
    const key = `${tail}>${head}`;
    if (!routes.has(key)) routes.set(key, []);
    routes.get(key).push(path.map((value, index) => value + (index % 2 ? dy : dx)));
  }
  for (const { item, inner, x, y, w, h } of arrangement.placed) {
    const shown = { item, x: x + dx, y: y + dy, w, h, group: groupOf(item) };
    if (inner) {
      shown.element = openBox(shown);
      shown.home = find("boxes");
      place(inner, shown.x - w / 2 + MARGIN, shown.y - h / 2 + MARGIN + TITLE, routes);
    } else {
      shown.element = shown.group ? closedBox(shown) : card(shown);
      shown.home = find("nodes");
    }
    visible.set(item, shown);
  }
}

function connect(routes) {
  const between = new Map();
  for (const node of nodes) {
    for (const operand of node.operands) {
      const [tail, head] = [itemOf(operand), itemOf(node.index)];
      if (tail === head) continue;
      const key = `${tail}>${head}`;
      if (!between.has(key)) between.set(key, { tail, head, pairs: [] });
      between.get(key).pairs.push([operand, node.index]);
    }
  }
  for (const [key, { tail, head, pairs }] of between) {
    const dashed = tail[0] === "n" && nodes[tail.slice(1)].kind === "constant";
    for (const path of routes.get(key) ?? [straight(visible.get(tail), visible.get(head))]) {
      const [x, y, ...rest] = path.map((value) => Math.round(value * 10) / 10);
      const edge = { pairs, element: svg("path", { class: dashed ? "edge dashed" : "edge", d: `M${x} ${y}C${rest.join(" ")}` }), home: find("edges"), ...extent(path) };
      edges.push(edge);
      for (const [operand, user] of pairs) {
        const name = `${operand}>${user}`;
        edgesOf.set(name, [...(edgesOf.get(name) ?? []), edge]);
      }
    }
  }
}

function extent(path) {
  const [xs, ys] = [path.filter((_, index) => index % 2 === 0), path.filter((_, index) => index % 2)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { x: (left + right) / 2, y: (top + bottom) / 2, w: right - left, h: bottom - top };
}

function straight(from, to) {
  const [x, y, u, v] = [from.x + from.w / 2, from.y, to.x - to.w / 2, to.y];
  const bend = Math.max(30, Math.abs(u - x) * 0.45);
  return [x, y, x + bend, y, u - bend, v, u, v];
}

function itemElement(shown, kind, ...children) {
  const { item, x, y, w, h } = shown;
  const ring = svg("rect", { class: "ring", x: -4, y: -4, width: w + 8, height: h + 8, rx: 12 });
  const attributes = { class: `item ${kind}`, transform: `translate(${x - w / 2} ${y - h / 2})`, role: "button", tabindex: "-1", "data-item": item };
  return svg("g", attributes, ring, ...children);
}

const BADGE = { "*": "×", "-": "−", "/": "÷" };

function card(shown) {
  const { w, h, item } = shown;
  const node = nodes[item.slice(1)];
  const frame = svg("rect", { class: "frame", width: w, height: h, rx: node.kind === "constant" ? 14 : 8 });
  if (node.kind === "constant") {
    shown.data = svg("text", { x: w / 2, y: 18, "text-anchor": "middle" });
    return itemElement(shown, "constant", frame, shown.data);
  }
  const parts = [frame];
  let start = 10;
  let columns = 15;
  if (node.kind === "result") {
    const { symbol: typed } = primitives[node.primitive];
    const symbol = BADGE[typed] ?? cut(typed, 9);
    const width = Math.max(24, 10 + 7 * symbol.length);
    parts.push(svg("rect", { class: "badge", x: 5, y: 5, width, height: 17, rx: 5 }));
    parts.push(svg("text", { class: "symbol", x: 5 + width / 2, y: 18 }, symbol));
    start = width + 12;
    columns = Math.floor((w - start - 8) / 7.4);
  }
  const name = cut(nameOf(node.index), columns);
  parts.push(svg("text", { class: node.label ? "name" : "name unnamed", x: start, y: 18 }, name));
  return itemElement(shown, node.kind, ...parts, ...rows(shown));
}

/** The rows data and grad of a card or a closed group. */
function rows(shown) {
  const { w, h } = shown;
  shown.tint = svg("rect", { class: "tint", x: 1.5, y: 45, width: w - 3, height: h - 46.5, rx: 6 });
  shown.data = svg("text", { class: "number", x: w - 10, y: 40 });
  shown.grad = svg("text", { class: "number", x: w - 10, y: 60 });
  return [
    shown.tint, svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }),
    svg("text", { class: "key", x: 10, y: 40 }, "data"), shown.data,
    svg("text", { class: "key", x: 10, y: 60 }, "grad"), shown.grad,
  ];
}

function closedBox(shown) {
  const { w, h, group } = shown;
  const parts = [
    svg("rect", { class: "behind", x: 4, y: -4, width: w, height: h, rx: 8 }),
    svg("rect", { class: "frame", width: w, height: h, rx: 8 }),
    svg("text", { class: "name", x: 10, y: 18 }, `▸ ${group.name}`),
  ];
  if (group.outputs.length === 1) return itemElement(shown, "closed", ...parts, ...rows(shown));
  parts.push(svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }));
  parts.push(svg("text", { class: "key", x: 10, y: 43 }, `${group.outputs.length} outputs`));
  parts.push(svg("text", { class: "key", x: 10, y: 59 }, `${group.members.length} Values`));
  return itemElement(shown, "closed", ...parts);
}

function openBox(shown) {
  const { w, h, group } = shown;
  const frame = svg("rect", { class: "frame", width: w, height: h, rx: 12 });
  return itemElement(shown, "open", frame, svg("text", { class: "name", x: 14, y: 22 }, `▾ ${group.name}`));
}

// ---- What the step changes in the drawing ------------------------------------------------------------------

let hovered = null; // an item
let selected = null; // a Value that was chosen to be looked at

function tint(gradient, largest) {
  if (Number.isNaN(gradient)) return "rgb(var(--not-a-number) / 0.6)";
  if (gradient === 0) return "";
  const decades = Number.isFinite(gradient) ? Math.log10(largest / Math.abs(gradient)) : 0;
  const share = 0.5 - 0.38 * Math.min(decades / 3, 1);
  return `rgb(var(${gradient > 0 ? "--positive" : "--negative"}) / ${share.toFixed(2)})`;
}

let present = { receiving: new Set() }; // what the step says about items, for paint
let version = 0;

function refresh() {
  const step = steps[at];
  present = {
    largest: gradients.reduce((most, gradient) => (Number.isFinite(gradient) ? Math.max(most, Math.abs(gradient)) : most), 0),
    active: step.node === undefined ? null : itemOf(step.node),
    receiving: new Set(step.phase === "backward" ? receivers(turns[step.turn]).map(itemOf) : []),
  };
  version++;
  for (const shown of visible.values()) if (!shown.away) paint(shown);
  mark("active", activePairs(step).flatMap((pair) => edgesOf.get(pair) ?? []));
  showPaths();
}

/** Put the present numbers and colours into an item. */
function paint(shown) {
  const { element, item, group } = shown;
  const index = group ? (group.outputs.length === 1 ? group.outputs[0] : null) : Number(item.slice(1));
  shown.version = version;
  element.classList.toggle("active", item === present.active);
  element.classList.toggle("receiving", present.receiving.has(item) && item !== present.active);
  if (index !== null && shown.data) write(shown, index, present.largest);
  const label = group ? groupLabel(group) : nodeLabel(index);
  if (shown.label !== label) element.setAttribute("aria-label", (shown.label = label));
  if (group) element.setAttribute("aria-expanded", String(open.has(group.index)));
}

const marked = { active: new Set(), path: new Set(), found: new Set() };
/** Give a class to these items and edges, and take it from those that had it. */
function mark(kind, those) {
  const before = marked[kind];
  marked[kind] = new Set(those);
  for (const { element } of before) element.classList.remove(kind);
  for (const { element } of marked[kind]) element.classList.add(kind);
}

function write(shown, index, largest) {
  const data = isComputed(index) ? readable(nodes[index].data) : "";
  if (shown.data.textContent !== data) shown.data.textContent = data;
  if (!shown.grad) {
    if (nodes[index].label) shown.data.textContent = cut(`${nodes[index].label} = ${data}`, 9);
    return;
  }
  const grad = hasGradient(index) ? readable(gradients[index]) : "";
  if (shown.grad.textContent !== grad) shown.grad.textContent = grad;
  shown.grad.classList.toggle("growing", hasGradient(index) && !isComplete(index));
  const colour = hasGradient(index) ? tint(gradients[index], largest) : "";
  if (shown.colour !== colour) shown.tint.style.fill = shown.colour = colour;
}

const receivers = (turn) => nodes[turn.node].operands.filter((_, place) => turn.shares[place] !== null);
function activePairs({ phase, node, turn }) {
  if (phase === "forward") return nodes[node].operands.map((operand) => `${operand}>${node}`);
  return phase === "backward" ? receivers(turns[turn]).map((operand) => `${operand}>${node}`) : [];
}

function nodeLabel(index) {
  const node = nodes[index];
  const made = node.kind === "result" ? `result of ${primitives[node.primitive].name}` : node.kind;
  const data = isComputed(index) ? `data ${readable(node.data)}` : "not computed yet";
  const grad = hasGradient(index) ? `, gradient ${readable(gradients[index])}${isComplete(index) ? "" : " so far"}` : "";
  return `${nameOf(index)}, ${made}, ${data}${grad}`;
}
const groupLabel = (group) => `${group.name}, group of ${group.members.length} Values`;

/** Mark the ways from the Value that is looked at to the root. */
function showPaths() {
  const start = hovered ? (groupOf(hovered) && open.has(groupOf(hovered).index) ? [] : inItem(hovered)) : selected === null ? [] : [selected];
  const onPath = new Set(start);
  for (const index of onPath) for (const user of nodes[index].users) onPath.add(user);
  const items = [...new Set([...onPath].map(itemOf))].map((item) => visible.get(item));
  const between = onPath.size ? edges.filter(({ pairs }) => pairs.some(([operand, user]) => onPath.has(operand) && onPath.has(user))) : [];
  mark("path", [...items, ...between]);
}
const inItem = (item) => groupOf(item)?.outputs ?? [Number(item.slice(1))];

// ---- The explanation -----------------------------------------------------------------------------------------

const math = (...parts) => html("p", { class: "math" }, ...parts);
const partial = (of, by) => `∂${of}/∂${by}`;

function explainStep() {
  const step = steps[at];
  const panel = find("step");
  const sum = (text) => [html("p", { class: "eyebrow" }, text)];
  const parts = [];
  if (step.phase === "given") {
    parts.push(...sum("Start"), html("h2", {}, "What is given"));
    const count = nodes.length - results;
    parts.push(html("p", {}, `${count} ${count === 1 ? "number is" : "numbers are"} given. The forward pass computes ${results} more from ${count === 1 ? "it" : "them"}, one a step${passes.backward ? `; then the backward pass finds how ${rootName} changes with each` : ""}.`));
  } else if (step.phase === "forward") {
    const node = nodes[step.node];
    const names = node.operands.map(nameOf);
    parts.push(...sum(`Forward, ${at} of ${forwardSteps}`), html("h2", {}, bdi(nameOf(node.index)), " is computed"));
    parts.push(math(bdi(nameOf(node.index)), " = ", bdi(call(node, names))));
    const numbers = call(node, node.operands.map((operand) => inBrackets(nodes[operand].data)));
    if (numbers !== readable(node.data)) parts.push(math("= ", numbers));
    parts.push(math("= ", html("span", { class: "outcome" }, readable(node.data))));
  } else if (step.phase === "seed") {
    parts.push(...sum("Backward"), html("h2", {}, "Backpropagation starts at ", bdi(rootName)));
    parts.push(math(partial(rootName, rootName), " = ", html("span", { class: "outcome" }, "1")));
    parts.push(html("p", {}, "Anything changes with itself one to one. From here each Value passes its gradient on to its operands, once all that use it have passed theirs."));
  } else parts.push(...explainTurn(step));
  panel.replaceChildren(...parts);
}

const MOST_SHARES = 12;

function explainTurn(step) {
  const turn = turns[step.turn];
  const node = nodes[turn.node];
  const name = nameOf(node.index);
  const gradient = gradientBefore(turn);
  const parts = [
    html("p", { class: "eyebrow" }, `Backward, ${step.turn + 1} of ${turns.length}`),
    html("h2", {}, bdi(name), " passes its gradient on"),
    math(bdi(name), " = ", bdi(call(node, node.operands.map(nameOf))), html("br"), bdi(partial(rootName, name)), " = ", html("span", { class: "outcome" }, readable(gradient))),
  ];
  const { before, after, left } = effects(turn);
  const places = turn.shares.flatMap((share, place) => (share === null ? [] : [place]));
  for (const place of places.slice(0, MOST_SHARES)) parts.push(explainShare(node, turn, place, gradient, before[place], after[place], left[place]));
  if (places.length > MOST_SHARES) parts.push(html("p", { class: "soft" }, `and ${places.length - MOST_SHARES} more operands in the same way`));
  const idle = node.operands.filter((_, place) => turn.shares[place] === null && nodes[node.operands[place]].kind !== "constant");
  if (idle.length && primitives[node.primitive].rules.length) parts.push(html("p", { class: "soft" }, "No gradient flows to ", bdi(idle.map(nameOf).join(", ")), "."));
  return parts;
}

function explainShare(node, turn, place, gradient, before, after, left) {
  const operand = node.operands[place];
  const [name, own] = [nameOf(operand), nameOf(node.index)];
  const local = turn.locals[place];
  const share = turn.shares[place];
  const rows = [];
  if (local !== null) {
    const { text, reasons } = localFormula(node, place);
    const value = readable(local);
    const middle = text && text !== value ? ["= ", bdi(text), ` = `] : ["= "];
    rows.push(html("dt", {}, "local derivative"), html("dd", { class: "math local" }, bdi(partial(own, name)), " ", ...middle, value,
      reasons.length ? html("span", { class: "soft" }, `, as ${reasons.join(", ")}`) : null));
    rows.push(html("dt", {}, "times gradient"), html("dd", { class: "math product" }, `${inBrackets(gradient)} × ${inBrackets(local)} = ${readable(share)}`));
  } else rows.push(html("dt", {}, "its own rule gives"), html("dd", { class: "math product" }, readable(share)));
  rows.push(html("dt", {}, "added to grad"), html("dd", { class: "math sum" }, `${readable(before)} + ${inBrackets(share)} = `, html("span", { class: "outcome" }, readable(after))));
  const more = left ? `${left} more ${left === 1 ? "share" : "shares"} to come.` : "Complete.";
  const again = node.operands.indexOf(operand) < place ? ", once more" : "";
  return html("div", { class: "share" }, html("h3", {}, "To ", bdi(name), again), html("dl", {}, ...rows), html("p", { class: "soft left" }, more));
}

/** What each operand had before and has after a turn, which is the one that was played last. */
function effects(turn) {
  const [before, after, left] = [[], [], []];
  const has = new Map(receivers(turn).map((operand) => [operand, 0]));
  const missing = new Map();
  turn.shares.forEach((share, place) => {
    if (share !== null) missing.set(nodes[turn.node].operands[place], (missing.get(nodes[turn.node].operands[place]) ?? 0) + 1);
  });
  for (const operand of has.keys()) has.set(operand, operand === root ? 1 : 0);
  for (let index = 0; index <= steps[at].turn; index++) {
    const earlier = turns[index];
    earlier.shares.forEach((share, place) => {
      const operand = nodes[earlier.node].operands[place];
      if (share === null || !has.has(operand)) return;
      if (earlier === turn) {
        before[place] = has.get(operand);
        missing.set(operand, missing.get(operand) - 1);
        left[place] = expected[operand] - heard[operand] + missing.get(operand);
        after[place] = has.get(operand) + share;
      }
      has.set(operand, has.get(operand) + share);
    });
  }
  return { before, after, left };
}
const gradientBefore = (turn) => gradients[turn.node]; // complete before its turn, and not changed by it

let panelOf = null; // the Value in the panel, and what refreshes its numbers

function explainNode() {
  const editing = find("edit")?.classList.contains("changed"); // what is being typed stays
  const item = hovered && !(groupOf(hovered)?.outputs.length > 1) ? inItem(hovered)[0] : null;
  const index = editing ? panelOf.index : (item ?? selected ?? steps[at].node ?? root);
  if (panelOf?.index !== index) panelOf = nodePanel(index);
  panelOf.update();
}

function nodePanel(index) {
  const node = nodes[index];
  const made = node.kind === "result" ? primitives[node.primitive].name : node.kind === "leaf" ? "none: a leaf" : "none: a constant";
  const data = html("dd", { class: "math data" });
  const grad = html("dd", { class: "math grad" });
  const path = [];
  for (let group = node.group; group !== null; group = groups[group].parent) path.unshift(groups[group].name);
  const rows = [
    ["label", html("dd", {}, node.label ? bdi(node.label) : html("span", { class: "soft" }, "none"))],
    ["operation", html("dd", {}, made)], ["data", data], ["grad", grad],
    ["operands", links(node.operands, "none")], ["used by", links(node.users, index === root ? "nothing: it is the result" : "nothing")],
  ];
  if (path.length) rows.push(["in", html("dd", {}, path.join(" › "))]);
  const title = html("h2", { dir: "auto" }, nameOf(index));
  const buttons = [
    node.kind === "result" ? html("button", { type: "button", class: "link", onclick: () => go(node.forward) }, "Its forward step") : null,
    node.backward ? html("button", { type: "button", class: "link", onclick: () => go(node.backward) }, "Its backward step") : null,
  ];
  find("node").replaceChildren(
    html("p", { class: "eyebrow" }, "Value"), title, ...(node.operands.length ? [] : [editor(node)]),
    html("dl", {}, ...rows.flatMap(([key, value]) => [html("dt", {}, key), value])), ...buttons.filter(Boolean));
  const update = () => {
    title.textContent = nameOf(index);
    data.textContent = isComputed(index) ? exact(node.data) : "not computed yet";
    grad.textContent = hasGradient(index) ? exact(gradients[index]) + (isComplete(index) ? "" : " so far")
      : node.kind === "constant" ? "none: no gradient flows to it" : !passes.backward ? "none" : at < seed || expected[index] ? "not yet" : "0: none flows here";
  };
  return { index, update };
}

function links(indices, none) {
  const distinct = [...new Set(indices)];
  const shown = distinct.slice(0, 24).map((index) => html("button", { type: "button", class: "link", onclick: () => select(index, true) }, bdi(nameOf(index))));
  const more = distinct.length > 24 ? [html("span", { class: "soft" }, `and ${distinct.length - 24} more`)] : [];
  return html("dd", {}, ...(shown.length ? [...shown, ...more] : [html("span", { class: "soft" }, none)]));
}

// ---- Editing a leaf ---------------------------------------------------------------------------------------

function editor(node) {
  if (unknown.length) {
    return html("p", { class: "soft" }, `Numbers cannot be changed here: this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}.`);
  }
  const input = html("input", { type: "text", inputmode: "text", "aria-label": `A new number for ${nameOf(node.index)}`, value: String(node.data), autocomplete: "off" });
  const problem = html("p", { class: "warning", role: "alert", hidden: "" });
  const apply = (number) => {
    try {
      setLeaf(node, number);
      problem.hidden = true;
      form.classList.remove("changed");
    } catch (error) {
      problem.textContent = `${error.message}. Nothing was changed.`;
      problem.hidden = false;
    }
  };
  const submit = (event) => {
    event.preventDefault();
    const text = input.value.trim().replace("−", "-");
    apply(text === "" ? NaN : Number(text));
  };
  const restore = () => {
    input.value = String(node.recorded);
    apply(node.recorded);
  };
  const form = html("form", { id: "edit", onsubmit: submit, oninput: () => form.classList.add("changed") }, input, html("button", { type: "submit", class: "primary" }, "Set"),
    html("button", { type: "button", onclick: restore }, "Restore"));
  return html("div", {}, form, problem);
}

/** Give a leaf another number and compute both passes anew, or change nothing and throw. */
function setLeaf(node, number) {
  if (!Number.isFinite(number) && !Object.is(number, node.recorded)) throw new RangeError("A finite number is needed, such as 2.5 or -1e-3");
  setNumbers(new Map([[node.index, number]]));
  selected = node.index;
  show();
  say(`${nameOf(node.index)} is ${readable(number)} now; ${rootName} is ${readable(nodes[root].data)}.`);
}

function setNumbers(numbers) {
  const data = Float64Array.from(nodes, (node) => node.data);
  for (const [index, number] of numbers) data[index] = number;
  forwardPass(data);
  if (passes.backward) turns = backwardPass(data);
  nodes.forEach((node) => (node.data = data[node.index]));
}

// ---- Going from step to step --------------------------------------------------------------------------------

function go(step) {
  at = Math.max(0, Math.min(steps.length - 1, step));
  selected = null;
  find("edit")?.classList.remove("changed");
  show();
  const { node } = steps[at];
  if (node !== undefined) bringIntoView(itemOf(node));
  if (!playing) say([...find("step").querySelectorAll("p, h2, h3, dt, dd")].map((part) => part.textContent).join(". "));
}

/** Show everything anew. */
function show() {
  replay();
  refresh();
  explainStep();
  explainNode();
  find("slider").value = String(at);
  const { phase, turn } = steps[at];
  const words = { given: "start", forward: `forward ${at}/${forwardSteps}`, seed: "backward", backward: `backward ${turn + 1}/${turns.length}` }[phase];
  find("count").textContent = words;
  find("slider").setAttribute("aria-valuetext", words);
  for (const id of ["first", "previous"]) find(id).disabled = at === 0;
  for (const id of ["next", "last"]) find(id).disabled = at === steps.length - 1;
  find("passes").firstElementChild.classList.toggle("on", phase === "forward" || phase === "given");
  find("passes").lastElementChild.classList.toggle("on", phase === "seed" || phase === "backward");
}

function say(text) {
  find("said").textContent = text;
}

let playing = 0;
function play(on) {
  clearTimeout(playing);
  playing = 0;
  if (on) {
    if (at === steps.length - 1) go(0);
    const tick = () => {
      const stride = find("speed").value === "16" ? Math.ceil(steps.length / 600) : 1;
      go(at + stride);
      playing = at < steps.length - 1 ? setTimeout(tick, Number(find("speed").value)) : 0;
      if (!playing) play(false);
    };
    playing = setTimeout(tick, 100);
  }
  document.body.classList.toggle("playing", on);
  find("play").setAttribute("aria-label", on ? "Pause" : "Play");
}

/** Look at a Value; opens the groups around it where asked. */
function select(index, reveal) {
  if (reveal) {
    let closed = false;
    for (let group = nodes[index].group; group !== null; group = groups[group].parent) {
      closed ||= !open.has(group);
      open.add(group);
    }
    if (closed) draw();
    bringIntoView(itemOf(index));
    setTabStop(itemOf(index));
  }
  selected = index;
  show();
}

function jumpTo(item) {
  play(false);
  const group = groupOf(item);
  if (group) return toggle(group.index);
  const index = Number(item.slice(1));
  const node = nodes[index];
  const step = at >= seed ? (node.backward ?? node.complete ?? at) : node.kind === "result" ? node.forward : at;
  go(step);
  selected = index;
  show();
}

function toggle(group) {
  const anchor = visible.get(`g${group}`);
  const before = { x: anchor.x - anchor.w / 2, y: anchor.y - anchor.h / 2 };
  if (!open.delete(group)) open.add(group);
  hovered = null;
  draw();
  const after = visible.get(`g${group}`);
  view.x += (before.x - after.x + after.w / 2) * view.scale; // what was clicked stays where it is
  view.y += (before.y - after.y + after.h / 2) * view.scale;
  look();
  show();
}

function setAll(on) {
  open.clear();
  if (on) groups.forEach((group) => open.add(group.index));
  hovered = null;
  draw();
  fit();
  show();
}

// ---- View: pan, zoom, fit -------------------------------------------------------------------------------------

const view = { x: 0, y: 0, scale: 1 };
const bounds = () => graph.getBoundingClientRect();

function look() {
  find("world").setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.scale.toFixed(4)})`);
  graph.classList.toggle("far", view.scale < 0.3);
  graph.classList.toggle("farther", view.scale < 0.12);
  if (visible.size > FEW) cull();
}

/** Leave out what is out of sight: of thousands of cards, the browser then handles some dozens. */
function cull() {
  const { width, height } = bounds();
  const [left, top, right, bottom] = [-view.x, -view.y, width - view.x, height - view.y].map((edge) => edge / view.scale);
  const isAway = ({ x, y, w, h }) => x + w / 2 < left || x - w / 2 > right || y + h / 2 < top || y - h / 2 > bottom;
  for (const shown of [...visible.values(), ...edges]) {
    const away = shown.item !== tabStop && shown.home !== find("boxes") && isAway(shown); // boxes lie in each other, in order
    if (away === shown.away) continue;
    shown.away = away;
    if (away) shown.element.remove();
    else shown.home.append(shown.element);
    if (!away && shown.item && shown.version !== version) paint(shown);
  }
}

function zoom(factor, x = bounds().width / 2, y = bounds().height / 2) {
  const scale = Math.max(0.004, Math.min(4, view.scale * factor));
  view.x = x - ((x - view.x) / view.scale) * scale;
  view.y = y - ((y - view.y) / view.scale) * scale;
  view.scale = scale;
  look();
}

function fit() {
  const { width, height } = bounds();
  const room = 24;
  const tools = 64;
  view.scale = Math.max(0.004, Math.min(1.35, (width - 2 * room) / size.width, (height - room - tools) / size.height));
  view.x = (width - size.width * view.scale) / 2;
  view.y = (height - tools + room - size.height * view.scale) / 2;
  look();
}

/** The first view: everything where that can be read, else the place of the step at a readable size. */
function firstView() {
  fit();
  if (view.scale >= 0.45 || passes.film) return;
  const shown = visible.get(itemOf(steps[Math.min(1, steps.length - 1)].node ?? root));
  view.scale = 0.8;
  centre(shown);
}

function centre(shown) {
  const { width, height } = bounds();
  view.x = width / 2 - shown.x * view.scale;
  view.y = height / 2 - shown.y * view.scale;
  look();
}

function bringIntoView(item) {
  const shown = visible.get(item);
  const { width, height } = bounds();
  const [x, y] = [shown.x * view.scale + view.x, shown.y * view.scale + view.y];
  const [w, h] = [Math.min((shown.w / 2) * view.scale + 12, width / 2), Math.min((shown.h / 2) * view.scale + 12, height / 2)];
  if (x < w || y < h || x > width - w || y > height - h - 40) centre(shown);
}

const pointers = new Map();
let dragged = false;
graph.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY });
  if (pointers.size === 1) dragged = false;
});
graph.addEventListener("pointermove", (event) => {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) return;
  if (Math.hypot(event.clientX - pointer.startX, event.clientY - pointer.startY) > 5 && !dragged) {
    dragged = true;
    graph.setPointerCapture(event.pointerId);
    graph.classList.add("dragged");
  }
  const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
  if (others.length) {
    const [other] = others;
    const gap = (x, y) => Math.max(10, Math.hypot(x - other.x, y - other.y));
    const { left, top } = bounds();
    zoom(gap(event.clientX, event.clientY) / gap(pointer.x, pointer.y), (pointer.x + other.x) / 2 - left, (pointer.y + other.y) / 2 - top);
  }
  if (dragged) {
    view.x += (event.clientX - pointer.x) / (others.length + 1);
    view.y += (event.clientY - pointer.y) / (others.length + 1);
    look();
  }
  pointer.x = event.clientX;
  pointer.y = event.clientY;
});
for (const name of ["pointerup", "pointercancel"]) {
  graph.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    graph.classList.remove("dragged");
  });
}
graph.addEventListener("wheel", (event) => {
  event.preventDefault();
  const { left, top } = bounds();
  const lines = event.deltaMode === 1 ? 30 : 1;
  zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - left, event.clientY - top);
}, { passive: false });

// ---- Events -----------------------------------------------------------------------------------------------------

const itemAt = (event) => event.target.closest?.(".item")?.dataset.item ?? null;
graph.addEventListener("click", (event) => {
  const item = itemAt(event);
  if (dragged) return;
  const group = item && groupOf(item);
  if (group && open.has(group.index) && !event.target.closest("text")) return; // the room inside a group is for panning
  if (item) jumpTo(item);
  else if (selected !== null) {
    selected = null;
    show();
  }
});
function hover(item) {
  if (item === hovered || pointers.size) return;
  hovered = item;
  showPaths();
  explainNode();
}
graph.addEventListener("pointerover", (event) => event.pointerType === "mouse" && hover(itemAt(event)));
graph.addEventListener("pointerleave", () => hover(null));
graph.addEventListener("focusin", (event) => {
  const item = itemAt(event);
  if (!item) return;
  setTabStop(item);
  if (event.target.matches(":focus-visible")) {
    bringIntoView(item);
    hover(item);
  }
});
graph.addEventListener("focusout", () => hover(null));

let tabStop = null;
function setTabStop(item) {
  visible.get(tabStop)?.element.setAttribute("tabindex", "-1");
  tabStop = item;
  const shown = visible.get(item);
  shown.element.setAttribute("tabindex", "0");
  if (shown.away) shown.home.append(shown.element);
  shown.away = false;
  paint(shown);
}

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** The item next to another in a direction: near, and rather ahead than aside. */
function neighbour(item, [dx, dy]) {
  const from = visible.get(item);
  let best = null;
  let least = Infinity;
  for (const shown of visible.values()) {
    const ahead = (shown.x - from.x) * dx + (shown.y - from.y) * dy;
    const aside = Math.abs((shown.x - from.x) * dy) + Math.abs((shown.y - from.y) * dx);
    if (shown !== from && ahead > 1 && ahead + 2.5 * aside < least) [best, least] = [shown, ahead + 2.5 * aside];
  }
  return best;
}
function goTo(shown) {
  if (!shown) return;
  bringIntoView(shown.item);
  shown.element.focus({ preventScroll: true });
}
graph.addEventListener("keydown", (event) => {
  const item = itemAt(event);
  if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key in DIRECTIONS) goTo(neighbour(item, DIRECTIONS[event.key]));
  else if (event.key === "Enter") jumpTo(item);
  else return;
  event.preventDefault();
  event.stopPropagation();
});

const KEYS = {
  ArrowRight: () => manual(at + 1), ArrowLeft: () => manual(at - 1), Home: () => manual(0), End: () => manual(steps.length - 1),
  " ": () => play(!playing), "/": () => find("find-text").focus(),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
};
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  if (event.key === " " && event.target.closest("button, summary")) return; // Space presses what has the focus
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

function manual(step) {
  play(false);
  go(step);
}
const BUTTONS = {
  first: () => manual(0), previous: () => manual(at - 1), next: () => manual(at + 1), last: () => manual(steps.length - 1),
  play: () => play(!playing), "zoom-in": () => zoom(1.25), "zoom-out": () => zoom(0.8), fit,
  expand: () => setAll(true), collapse: () => setAll(false),
  theme: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
};
for (const [id, action] of Object.entries(BUTTONS)) find(id).addEventListener("click", () => action());
find("slider").addEventListener("input", () => manual(Number(find("slider").value)));

const darkness = matchMedia("(prefers-color-scheme: dark)");
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}
darkness.addEventListener("change", () => setTheme(darkness.matches ? "dark" : "light"));

// ---- Find --------------------------------------------------------------------------------------------------------

let matches = [];
let match = -1;
function search() {
  const wanted = find("find-text").value.trim().toLowerCase();
  const named = (index) => (nodes[index].kind === "constant" && !nodes[index].label ? "" : nameOf(index).toLowerCase());
  matches = wanted ? nodes.map((node) => node.index).filter((index) => named(index).includes(wanted)) : [];
  matches.sort((one, other) => (named(other) === wanted) - (named(one) === wanted));
  match = -1;
  mark("found", [...new Set(matches.map(itemOf))].map((item) => visible.get(item)));
  find("find-count").textContent = wanted ? `${matches.length}` : "";
}
find("find-text").addEventListener("input", search);
find("find").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!matches.length) return say("Nothing has this label.");
  match = (match + 1) % matches.length;
  select(matches[match], true);
  find("find-count").textContent = `${match + 1} of ${matches.length}`;
  say(nodeLabel(matches[match]));
});

// ---- Training, as a film -------------------------------------------------------------------------------------------

const SIDE = 48; // places of the boundary's map, each way
const CLASSES = ["--negative", "--positive", "--class-2", "--class-3", "--class-4", "--class-5", "--class-6"];

function startFilm() {
  const { film } = passes;
  const plane = film.points.length && !unknown.length && film.inputs.every((index) => index !== null) ? boundary(film) : null;
  const chart = lossChart(film);
  const slider = html("input", { type: "range", min: "0", max: String(film.frames.length - 1), value: "0", "aria-label": "Training step", oninput: () => turnTo(Number(slider.value)) });
  const button = html("button", { type: "button", class: "primary", onclick: () => roll(!rolling) }, "Play");
  const words = html("span", { class: "soft" });
  let rolling = 0;
  function turnTo(frame) {
    const { step, numbers } = film.frames[frame];
    slider.value = String(frame);
    const leaves = new Map(film.parameters.map((node, place) => [node, numbers[place]]));
    if (unknown.length) for (const [index, number] of leaves) nodes[index].data = number;
    else setNumbers(leaves);
    words.textContent = `step ${step}`;
    slider.setAttribute("aria-valuetext", `step ${step}`);
    chart.mark(step);
    plane?.paint();
    show();
  }
  function roll(on) {
    clearTimeout(rolling);
    rolling = 0;
    button.textContent = on ? "Pause" : "Play";
    if (!on) return;
    if (Number(slider.value) === film.frames.length - 1) turnTo(0);
    const tick = () => {
      turnTo(Number(slider.value) + 1);
      if (Number(slider.value) === film.frames.length - 1) roll(false);
      else rolling = setTimeout(tick, Math.max(30, Math.min(150, 6000 / film.frames.length)));
    };
    rolling = setTimeout(tick, 30);
  }
  find("film").append(html("p", { class: "eyebrow" }, "Training"), html("div", { class: "row" }, button, slider, words), ...(plane ? [plane.figure] : []), chart.figure);
  if (unknown.length) find("film").append(html("p", { class: "soft" }, `Only the parameters move: this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}.`));
  find("film").hidden = false;
  at = steps.length - 1;
  turnTo(0);
}

/** The loss of each step as a curve, on a logarithmic scale where it spans decades. */
function lossChart({ losses }) {
  const [width, height, left, bottom] = [340, 130, 44, 18];
  const numbers = losses.map(([, loss]) => loss);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const logarithmic = least > 0 && most / least > 30;
  const scale = logarithmic ? Math.log : (loss) => loss;
  const span = scale(most) - scale(least) || 1;
  const last = losses[losses.length - 1][0];
  const x = (step) => left + (step / Math.max(last, 1)) * (width - left - 6);
  const y = (loss) => 6 + ((scale(most) - scale(loss)) / span) * (height - bottom - 12);
  const path = losses.map(([step, loss], index) => `${index ? "L" : "M"}${x(step).toFixed(1)} ${y(loss).toFixed(1)}`).join("");
  const line = svg("line", { class: "then", y1: 4, y2: height - bottom });
  const dot = svg("circle", { class: "now", r: 5 });
  const drawing = svg("svg", { id: "loss", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Loss, from ${readable(numbers[0])} at first to ${readable(numbers[numbers.length - 1])} at last` },
    svg("path", { class: "axis", d: `M${left} 4V${height - bottom}H${width}`, fill: "none" }),
    svg("text", { x: left - 6, y: 12, "text-anchor": "end" }, readable(most)), svg("text", { x: left - 6, y: height - bottom, "text-anchor": "end" }, readable(least)),
    svg("text", { x: width, y: height - 4, "text-anchor": "end" }, `step ${last}`), svg("path", { class: "curve", d: path }), line, dot);
  const caption = html("figcaption", {});
  const mark = (step) => {
    const [, loss] = losses.reduce((best, each) => (Math.abs(each[0] - step) < Math.abs(best[0] - step) ? each : best));
    for (const [key, value] of [["x1", x(step)], ["x2", x(step)]]) line.setAttribute(key, value);
    dot.setAttribute("cx", x(step));
    dot.setAttribute("cy", y(loss));
    caption.textContent = `Loss ${readable(loss)}${logarithmic ? ", on a logarithmic scale" : ""}`;
  };
  return { figure: html("figure", {}, drawing, caption), mark };
}

/** What the network says of each place in the plane of its two inputs. */
function boundary({ inputs, outputs, points, targets }) {
  const [left, right, low, high] = square(points);
  const threshold = primitives[nodes[outputs[0]].primitive]?.name === "sigmoid" ? 0.5 : 0;
  const canvas = html("canvas", { width: String(SIDE), height: String(SIDE), role: "img", "aria-label": "The plane of the two inputs, coloured by what the network says there" });
  const overlay = svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
  const sideOf = (target) => (outputs.length > 1 ? target : Number(target > threshold));
  points.forEach(([x, y], index) => {
    const kind = targets.length ? sideOf(targets[index]) : null;
    const [u, v] = [((x - left) / (right - left)) * 100, ((high - y) / (high - low)) * 100];
    const dot = kind === 0 ? svg("rect", { class: "point", x: u - 1.3, y: v - 1.3, width: 2.6, height: 2.6 }) : svg("circle", { class: "point", cx: u, cy: v, r: 1.5 });
    dot.style.fill = kind === null ? "var(--ink)" : `rgb(var(${CLASSES[kind] ?? "--ink"}))`;
    overlay.append(dot);
  });
  function paint() {
    const style = getComputedStyle(document.documentElement);
    const colours = CLASSES.map((name) => style.getPropertyValue(name).split(" ").map(Number));
    const data = Float64Array.from(nodes, (node) => node.data);
    const image = new ImageData(SIDE, SIDE);
    for (let row = 0; row < SIDE; row++) {
      for (let column = 0; column < SIDE; column++) {
        data[inputs[0]] = left + ((column + 0.5) / SIDE) * (right - left);
        data[inputs[1]] = high - ((row + 0.5) / SIDE) * (high - low);
        computeAll(data);
        const scores = outputs.map((output) => data[output]);
        const best = outputs.length > 1 ? scores.indexOf(Math.max(...scores)) : Number(scores[0] > threshold);
        const sure = outputs.length > 1 ? 0.5 : 0.2 + 0.45 * Math.tanh(Math.abs(scores[0] - threshold) * (threshold ? 4 : 1));
        image.data.set([...(colours[best] ?? [128, 128, 128]), 255 * sure], 4 * (row * SIDE + column));
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
  const figure = html("figure", {}, html("div", { id: "boundary" }, canvas, overlay), html("figcaption", {}, "What the network says of each place; the points are the examples"));
  return { figure, paint };
}

/** A square around the points, with a margin. */
function square(points) {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  const reach = 0.58 * Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys), 1e-9);
  return [middle(xs) - reach, middle(xs) + reach, middle(ys) - reach, middle(ys) + reach];
}

// ---- Start -----------------------------------------------------------------------------------------------------

function start() {
  setTheme(darkness.matches ? "dark" : "light");
  find("slider").max = String(steps.length - 1);
  find("passes").firstElementChild.style.flex = String(forwardSteps + 1);
  find("passes").lastElementChild.style.flex = String(Math.max(0, steps.length - forwardSteps - 1));
  find("passes").lastElementChild.hidden = !passes.backward;
  find("notes").replaceChildren(...passes.notes.map((note) => html("li", {}, note)));
  find("notes").hidden = !passes.notes.length;
  for (const id of ["expand", "collapse"]) find(id).hidden = !groups.length;
  find("expand").hidden ||= nodes.length > SMOOTH;
  document.body.prepend(svg("svg", { width: 0, height: 0, "aria-hidden": "true", class: "tips" }, ...["", "path", "active"].map((kind) =>
    svg("marker", { id: `tip${kind && "-"}${kind}`, viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
      svg("path", { class: `tip ${kind}`, d: "M0 0.5 8 4 0 7.5z" })))));
  replay();
  draw();
  show();
  if (passes.film) startFilm();
  firstView();
  new ResizeObserver(firstView).observe(graph);
}
start();
