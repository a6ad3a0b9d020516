// ---- What a large page leaves out: numbers that it computes to the last bit as the engine does --------------------------

for (const { index, operands, forward } of program) {
  const node = nodes[index];
  if (node.isDerived) node.data = node.recorded = forward(...operands.map((operand) => nodes[operand].data));
}
{
  const sums = new Float64Array(nodes.length);
  sums[root] = 1;
  for (const turn of passes.turns) {
    const { operands, primitive, data } = nodes[turn.node];
    if (turn.locals === null) {
      const inputs = operands.map((operand) => nodes[operand].data);
      const of = (gradient) => turn.shares.map((share, place) => (share === null ? null : evaluate(primitives[primitive].rules[place], gradient, data, inputs)));
      [turn.locals, turn.shares] = [of(1), of(sums[turn.node])];
    }
    turn.shares.forEach((share, place) => share !== null && (sums[operands[place]] += Number(share)));
  }
}

