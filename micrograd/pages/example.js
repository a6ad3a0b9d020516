// ---- One step of the training: the graph of the loss of one example, with the numbers of the moment ---------------------

let exampleChosen = null; // in the graph; null for one of the batch
let activationShown = null; // in the graph; null for the recorded one
const exampleInput = html("input", { type: "number", min: "1", step: "1", "aria-label": "The example in the graph", onchange: () => chooseExample(Number(exampleInput.value) - 1) });
const exampleWords = html("span", { class: "soft" });
const exampleRow = html("div", { id: "example", class: "row", hidden: "" }, html("span", {}, "Example"), exampleInput, exampleWords);

/** The example in the graph, by its number: the one that was chosen, or the first of the batch with a graph of this shape. */
function exampleNow() {
  const training = trainingNow();
  const fits = (index) => training.examples[index]?.[0] === 0; // the graph is that of the first program
  if (!training?.examples.length) return null;
  if (exampleChosen !== null && fits(exampleChosen)) return exampleChosen;
  const found = (stepAfter(snapshotNow())?.batch ?? []).find(fits) ?? training.examples.findIndex((_, index) => fits(index));
  return found < 0 ? null : found;
}

/** What the network is given at the example in the graph; where its inputs are not known, the first of the recording. */
function inputsNow() {
  const example = recording.inputs.length ? trainingNow()?.examples[exampleNow()] : undefined;
  return example?.slice(1) ?? recording.first;
}

/** Look at one step with this example. */
function chooseExample(index) {
  const example = trainingNow()?.examples[index];
  if (!example) say("There is no such example.");
  else if (example[0] !== 0) say(`The loss of example ${index + 1} has another shape than the graph.`);
  else {
    exampleChosen = index;
    setMode(false);
  }
}

/** Give the graph the numbers of the present snapshot, at the example that is shown. */
function showStep() {
  const { numbers } = snapshotNow();
  const leaves = new Map(recording.parameters.flatMap((node, place) => (node === null ? [] : [[node, numbers[place]]])));
  const training = trainingNow();
  const index = exampleNow();
  if (index !== null) {
    const [{ nodes: shape, varying }] = lessons.programs;
    const example = training.examples[index];
    shape.forEach(([kind, place], node) => kind === "x" && leaves.set(recording.nodes[node], example[1 + place]));
    varying.forEach((node, place) => leaves.set(recording.nodes[node], Number(example[example.length - varying.length + place])));
    showExample(index, training.examples.length);
  }
  exampleRow.hidden = index === null;
  if (!refusal) exchangeActivation();
  if (unknown.length) {
    for (const [node, number] of leaves) nodes[node].data = number;
    noteBirths();
  } else setNumbers(leaves, () => {}); // also numbers that the engine would refuse: they are what there is to see
  addUpdates();
  show();
}

function showExample(index, count) {
  const batch = stepAfter(snapshotNow())?.batch ?? [];
  exampleInput.max = String(count);
  exampleInput.value = String(index + 1);
  exampleWords.textContent = `of ${count}, ${batch.includes(index) ? "in" : "not in"} the batch of ${batch.length}`;
}

/** Give the neurons of the graph the activation that was chosen. */
function exchangeActivation() {
  const { activation } = trainingRun.settings;
  if (activation === activationShown) return;
  activationShown = activation;
  const [{ nodes: shape, activations }] = lessons.programs;
  for (const index of activations) {
    const node = nodes[recording.nodes[index]];
    node.primitive = activation === null ? shape[index][0] : lessons.activations[activation];
    program.find((each) => each.index === node.index).forward = forwardOf(primitives[node.primitive]);
  }
  draw();
}

/** Put the steps of the update after those of both passes, where the next numbers are known. */
function addUpdates() {
  const before = steps.findIndex(({ phase }) => phase === "batch");
  if (before >= 0) steps.length = before;
  const next = stepAfter(snapshotNow());
  const isKnown = Boolean(next?.numbers && passes.backward);
  if (isKnown) {
    steps.push({ phase: "batch" });
    for (const parameter of lessons.trained) steps.push({ phase: "update", parameter, node: recording.parameters[parameter] ?? undefined });
  }
  at = Math.min(at, steps.length - 1);
  find("slider").max = String(steps.length - 1);
  const label = find("passes").querySelector(".update");
  label.hidden = !isKnown;
  label.style.flex = String(1 + lessons.trained?.length);
}

/** The steps after both passes in words: the gradient of the batch, and the step of each parameter. */
function explainTrainingStep(step) {
  const next = stepAfter(snapshotNow());
  if (step.phase === "update") return explainParameter(step.parameter, next);
  const { batch, loss, snapshot, optimizer, rate } = next;
  const made = `Step ${snapshot.step + 1} is made from`;
  return [
    html("p", { class: "eyebrow" }, "Update"), html("h2", {}, "The gradient that trains"),
    html("p", {}, batch.length === 1 ? `${made} example ${batch[0] + 1} alone.` : `${made} a batch of ${batch.length} examples. The graph shows the loss of one; what trains is the mean of their gradients.`),
    math("mean loss = ", html("span", { class: "outcome" }, readable(loss))),
    html("p", {}, `Then ${optimizer.name} takes ${lessons.trained.length === 1 ? "the parameter" : `each of the ${lessons.trained.length} parameters`} a step down its gradient, with the rate ${readable(rate)}.`),
  ];
}
