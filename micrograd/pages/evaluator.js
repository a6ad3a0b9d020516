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

/** What is left of x, with the sign of the divisor, as in Python: so is a 0. */
function remainder(x, y) {
  const left = x % y;
  if (left === 0) return y < 0 ? -0 : 0;
  return left < 0 !== y < 0 ? left + y : left;
}

/** x * y + z, rounded once: exactly, as an integer times a power of two, whose last digits are then rounded to even. */
function fma(x, y, z) {
  if (!x || !y || !Number.isFinite(x) || !Number.isFinite(y)) return x * y + z;
  if (!Number.isFinite(z)) return z;
  const parts = [x, y, z].map((number) => {
    const bits = new BigUint64Array(Float64Array.of(number).buffer)[0];
    const exponent = Number((bits >> 52n) & 2047n);
    const digits = (bits & (2n ** 52n - 1n)) + (exponent ? 2n ** 52n : 0n);
    return [bits >> 63n ? -digits : digits, Math.max(exponent, 1) - 1075];
  });
  const low = Math.min(parts[0][1] + parts[1][1], parts[2][1]);
  const sum = (parts[0][0] * parts[1][0] << BigInt(parts[0][1] + parts[1][1] - low)) + (parts[2][0] << BigInt(parts[2][1] - low));
  const size = sum < 0n ? -sum : sum;
  const cut = Math.max(size.toString(2).length - 53, -1074 - low, 0);
  const half = cut ? 1n << BigInt(cut - 1) : 0n;
  const left = size >> BigInt(cut);
  const rest = size - (left << BigInt(cut));
  const rounded = Number(cut && (rest > half || (rest === half && left & 1n)) ? left + 1n : left);
  const power = Math.max(Math.min(low + cut, 1024), -1074);
  const found = power > 900 ? rounded * 2 ** 900 * 2 ** (power - 900) : rounded * 2 ** power;
  return sum < 0n ? -found : found;
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
  exp2: (x) => 2 ** x, log2: Math.log2, log10: Math.log10, atan2: Math.atan2, hypot: Math.hypot, fma,
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

/** A formula as a function of g, out and the operands: the same numbers, some ten times as fast. */
function compiled(formula) {
  if (typeof formula === "number") return () => formula;
  if (formula === "g") return (g) => g;
  if (formula === "out") return (g, out) => out;
  if (typeof formula === "string") return (g, out, inputs) => inputs[formula];
  const [name, ...operands] = formula;
  const [a, b, c] = operands.map(compiled);
  if (name === "where") return (g, out, x) => (a(g, out, x) !== 0 ? b(g, out, x) : c(g, out, x));
  if (name === "mul") return (g, out, x) => a(g, out, x) * b(g, out, x);
  if (name === "add") return (g, out, x) => a(g, out, x) + b(g, out, x);
  const functions = name in COMPARE ? COMPARE : FORWARD; // a composite may be made of others that are not there yet
  if (operands.length === 1) return (g, out, x) => functions[name](a(g, out, x));
  if (operands.length === 2) return (g, out, x) => functions[name](a(g, out, x), b(g, out, x));
  return (g, out, x) => functions[name](a(g, out, x), b(g, out, x), c(g, out, x));
}

/** A formula as a function of the operands. */
function functionOf(formula) {
  const function_ = compiled(formula);
  return (...inputs) => function_(undefined, undefined, inputs);
}
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
for (const { index, operands, forward } of program) {
  const node = nodes[index];
  if (node.isLeftOut) node.data = node.recorded = forward(...operands.map((operand) => nodes[operand].data));
}
function computeAll(data) {
  for (const { index, operands, forward } of program) {
    data[index] = operands.length < 3 ? forward(data[operands[0]], data[operands[1]]) : forward(...operands.map((operand) => data[operand]));
  }
}

/** Compute all results; where the engine would raise, refused throws. */
function forwardPass(data, refused = refuse) {
  computeAll(data);
  for (const node of nodes) {
    if (node.primitive === null) continue;
    const inputs = inputsOf(node, data);
    refused(data[node.index], inputs, () => `${render([primitives[node.primitive].name, ...inputs], {}).text} has no finite value`);
  }
}

/** The contributions and local derivatives of every visit, from the rules. */
function backwardPass(data, refused = refuse) {
  const gradients = new Float64Array(nodes.length);
  gradients[root] = 1;
  return passes.visits.map((visit) => {
    const node = nodes[visit.node];
    const inputs = inputsOf(node, data);
    const { rules, symbol } = primitives[node.primitive];
    const contributions = visit.contributions.map(() => null);
    const locals = visit.contributions.map(() => null);
    visit.contributions.forEach((contribution, place) => {
      if (contribution === null) return;
      contributions[place] = evaluate(rules[place], gradients[node.index], data[node.index], inputs);
      locals[place] = evaluate(rules[place], 1, data[node.index], inputs);
      refused(contributions[place], [...inputs, gradients[node.index]], () => `the derivative of ${symbol} at ${inputs.map(readable).join(", ")} is not finite`);
      gradients[node.operands[place]] += contributions[place];
    });
    return { node: visit.node, contributions, locals };
  });
}

/** Whether a number is the first of those that are not finite: all that it was computed from is. */
const isBorn = (number, inputs) => !Number.isFinite(number) && inputs.every(Number.isFinite);

/** The first of the operations that are sought, in their order, at which a number that is not finite is born. */
const firstBorn = (operations, data, isSought = () => true) =>
  operations.find((operation) => !Number.isFinite(data[operation.index]) && isSought(operation) && isBorn(data[operation.index], inputsOf(operation, data)));

function refuse(number, inputs, reason) {
  if (isBorn(number, inputs)) throw new RangeError(reason());
}

