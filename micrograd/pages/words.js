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
  if (isEntry(node)) return `${madeBy(node) === "maximum" ? "the largest" : "the sum"} of its terms`;
  if (!library) return `${symbol || name}(${shown.join(", ")})`;
  return render([name, ...names.keys()].map((part) => (typeof part === "number" ? String(part) : part)), names).text;
}

function localFormula(node, place) {
  const { rules, reading } = primitives[node.primitive];
  const rule = reading[place] ?? rules[place];
  if (rule === undefined || rule === null) return { text: "", reasons: [] };
  const names = { out: nameOf(node.index), ...operandNames(node) };
  names.numbers = { out: node.data, ...node.operands.map((operand) => nodes[operand].data) };
  names.constants = node.operands.map((operand) => (nodes[operand].kind === "constant" && !nodes[operand].label ? nodes[operand].data : undefined));
  return isKnown(rule) ? render(rule, names) : { text: "", reasons: [] };
}

