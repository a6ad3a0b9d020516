// ---- Steps ---------------------------------------------------------------------------------------------

const steps = [{ phase: "given" }];
nodes.forEach((node) => {
  node.forward = node.kind === "result" ? steps.push({ phase: "forward", node: node.index }) - 1 : 0;
});
const forwardSteps = steps.length - 1;
const seed = passes.backward ? steps.push({ phase: "seed", node: root }) - 1 : Infinity;
const allData = nodes.map(({ data }) => data);
let visits = withContributions(passes.visits);
/** The visits with all their numbers: of a large page, contributions that follow from the rules to the last bit were left out. */
function withContributions(given) {
  const sums = new Float64Array(nodes.length);
  sums[root] = 1;
  return given.map(({ node, contributions, locals }) => {
    const computed = (gradient) => contributions.map((contribution, place) => contribution && evaluate(primitives[nodes[node].primitive].rules[place], gradient, nodes[node].data, inputsOf(nodes[node], allData)));
    const numbers = (values) => values.map((value) => value && Number(value));
    const visit = { node, contributions: locals ? numbers(contributions) : computed(sums[node]), locals: locals ? numbers(locals) : computed(1) };
    visit.contributions.forEach((contribution, place) => (sums[nodes[node].operands[place]] += contribution ?? 0));
    return visit;
  });
}
const expected = new Int32Array(nodes.length); // contributions that a Value gets
/** Put a step for each visit after those of the forward pass. */
function layVisits() {
  steps.length = Math.min(steps.length, seed + 1);
  expected.fill(0);
  for (const node of nodes) node.backward = undefined;
  visits.forEach((visit, index) => {
    const step = steps.push({ phase: "backward", node: visit.node, visit: index }) - 1;
    nodes[visit.node].backward ??= step;
    visit.contributions.forEach((contribution, place) => {
      if (contribution === null) return;
      const operand = nodes[visit.node].operands[place];
      expected[operand]++;
      nodes[operand].complete = step;
    });
  });
  nodes[root].complete = seed;
}
layVisits();

let at = 0;
const gradients = new Float64Array(nodes.length);
const heard = new Int32Array(nodes.length);

/** The gradients as they are after the step, added up in the engine's order. */
function replay() {
  gradients.fill(0);
  heard.fill(0);
  if (at < seed) return;
  gradients[root] = 1;
  for (let index = 0; index < Math.min(at - seed, visits.length); index++) add(visits[index], () => true);
}
function add(visit, each) {
  visit.contributions.forEach((contribution, place) => {
    if (contribution === null) return;
    const operand = nodes[visit.node].operands[place];
    each(place, operand, gradients[operand], contribution);
    gradients[operand] += contribution;
    heard[operand]++;
  });
}
const isComputed = (index) => nodes[index].forward <= at;
const hasGradient = (index) => at >= seed && (index === root || heard[index] > 0);
const isComplete = (index) => hasGradient(index) && heard[index] === expected[index];

