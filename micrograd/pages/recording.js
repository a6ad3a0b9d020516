// ---- A recorded training: one set of controls, for the time of training or for the passes of one step -------------------

const { network, points } = recording;
const canRun = network !== null && !unknown.length;
const chart = lossChart();
const board = canRun && points.length ? plane({ add: addPoint, pick: (point) => chooseExample(exampleOfPoint(point)) }) : null;
const picture = network?.layers.length > 0 && columnsOf(network).flat().length <= MOST_NEURONS ? networkView(network, chooseNeuron) : null;
const headline = html("h2", {});
const warning = html("p", { class: "warning", role: "alert", hidden: "" });
const neuronPanel = html("section", { id: "neuron", "aria-label": "This neuron", hidden: "" });
const modes = [html("button", { type: "button", onclick: () => setMode(true) }, "Training"), html("button", { type: "button", onclick: () => setMode(false) }, "One step")];
let laboratory = null;
let inTraining = true; // what the controls move
let neuron = null; // the one that was chosen

function startRecording() {
  verify();
  laboratory = laboratoryPanel(() => {
    pauseTraining();
    showTraining();
  });
  find("recording").append(html("p", { class: "eyebrow" }, "Training"), headline, warning, ...(board ? [board.figure] : []), chart.figure, laboratory.element);
  if (unknown.length) find("recording").append(html("p", { class: "soft" }, `Only the parameters move: this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}.`));
  find("recording").append(neuronPanel);
  find("step").before(exampleRow);
  find("transport").before(html("div", { id: "modes", role: "group", "aria-label": "What the controls move" }, ...modes));
  find("passes").append(html("span", { class: "update" }, "Update"));
  if (picture) find("stage").prepend(picture.element);
  PICTURES.seen = () => (inTraining && picture ? picture.asSvg() : graphPicture());
  darkness.addEventListener("change", () => inTraining && showTraining());
  find("theme").addEventListener("click", () => inTraining && showTraining());
  setMode(true);
}

/** Let the controls move the time of training, with the network beside it; or the passes of one step, with the graph. */
function setMode(training) {
  pauseTraining();
  play(false);
  inTraining = training;
  controls = training ? TIME : PASSES;
  document.body.dataset.mode = training ? "training" : "step";
  for (const [element, isShown] of [
    [find("recording"), training], [find("step"), !training], [find("node"), !training], [find("find"), !training], [find("save-whole"), !training], [exampleRow, !training],
    [find("tools"), !(training && picture)], [picture?.element, training],
  ]) element?.toggleAttribute("hidden", !isShown);
  graph.classList.toggle("behind", training && picture !== null); // it keeps its size, and so where it was zoomed to
  if (training) showTraining();
  else showStep();
  showControls();
  afterMode(training);
}

/** Show the present snapshot of the training. */
function showTraining() {
  const snapshot = snapshotNow();
  const next = stepAfter(snapshot);
  const last = trainingRun.snapshots[trainingRun.snapshots.length - 1].step;
  headline.textContent = trainingRun.isLive ? `Step ${snapshot.step}${snapshot.step === last ? "" : ` of ${last}`}, trained in this page` : `Step ${snapshot.step} of ${last}, recorded`;
  warning.textContent = troubleOf(snapshot, next);
  warning.hidden = !warning.textContent;
  showPoints();
  if (canRun) showNetwork(board, picture, snapshot.numbers, inputsNow());
  else picture?.paint(snapshot.numbers, null, null, []);
  if (!picture) showGraph();
  board?.ring((next?.batch ?? []).map(pointOfExample).filter((point) => point >= 0));
  chart.set(trainingRun.losses);
  chart.mark(snapshot.step, next?.loss ?? lossNear(snapshot.step));
  laboratory.update();
  showNeuron();
  showControls();
}

/** Where there is no picture of the network, show the graph with all that the passes give. */
function showGraph() {
  at = steps.length - 1;
  showStep();
  exampleRow.hidden = true;
}

/** The loss of the step after so many, or of the last before, where it was recorded. */
function lossNear(made) {
  return (trainingRun.losses.find(([step]) => step > made) ?? trainingRun.losses[trainingRun.losses.length - 1])?.[1] ?? null;
}

/** What is wrong with a snapshot, in words; "" where nothing is. */
function troubleOf({ step, numbers }, next) {
  const odd = numbers.findIndex((number) => !Number.isFinite(number));
  if (odd >= 0) return `After step ${step}, ${parameterName(odd)} is ${readable(numbers[odd])}: what is computed with it is no number either.`;
  return next?.trouble ? `Step ${step + 1} cannot be made: ${next.trouble.message}. mg.fit raises an error there. A smaller rate may help.` : "";
}

const placeOf = (numbers) => numbers.slice(0, 2).join(" ");
const pointAt = new Map(points.map((place, index) => [placeOf(place), index]));
const exampleAt = new Map((lessons.examples ?? []).map((example, index) => [placeOf(example.slice(1)), index]));
/** The recording's points may be others than its examples, or in another order: they belong together where they lie together. */
const pointOfExample = (index) => (trainingRun.settings.data === "recorded" ? pointAt.get(placeOf(lessons.examples[index].slice(1))) ?? -1 : index);
const exampleOfPoint = (index) => (trainingRun.settings.data === "recorded" ? exampleAt.get(placeOf(points[index])) : index);

let pointsShown = "";
/** Put the points of the present settings into the plane. */
function showPoints() {
  const { data, noise, seed } = trainingRun.settings;
  const key = JSON.stringify([data, noise, seed, trainingRun.own.points.length]);
  if (!board || key === pointsShown) return;
  pointsShown = key;
  const several = network.outputs.length > 1;
  const kindOf = (target) => (several ? target : Number(target > threshold));
  const drawn = pointsNow();
  const kinds = drawn ? drawn.kinds.map((kind) => (several ? classOf(kind).target : kind)) : points.map((_, index) => (recording.targets.length ? kindOf(recording.targets[index]) : null));
  const places = drawn ? drawn.points : points;
  board.set({ points: places, kinds, own: data === "own" }, data === "own" ? [-1.6, 1.6, -1.6, 1.6] : square(places));
}

/** Put a point of one's own where the plane was clicked: it is trained on from the next step. */
function addPoint(place) {
  trainingRun.own.points.push(place);
  trainingRun.own.kinds.push(laboratory.kind());
  branch({});
  showTraining();
  say(`${trainingRun.own.points.length} points`);
}

function sayTraining() {
  say(`${headline.textContent}. ${chart.figure.textContent}. ${warning.textContent}`);
}

/** The controls as they are for what they move. */
function showControls() {
  modes.forEach((button, place) => button.setAttribute("aria-pressed", String(inTraining === (place === 0))));
  const what = inTraining ? "training step" : "step";
  for (const [id, name] of [["first", "First"], ["previous", "Previous"], ["next", "Next"], ["last", "Last"]]) {
    find(id).setAttribute("aria-label", `${name} ${what}`);
    find(id).title = `${name} ${what}`;
  }
  find("slider").setAttribute("aria-label", inTraining ? "Training step" : "Step");
  find("passes").hidden = inTraining;
  if (!inTraining) return;
  const last = trainingRun.snapshots.length - 1;
  find("play").setAttribute("aria-label", rolling ? "Pause the training" : "Play the training");
  find("slider").max = String(Math.max(1, last));
  find("slider").value = String(trainingRun.now);
  find("slider").setAttribute("aria-valuetext", headline.textContent);
  find("count").textContent = `step ${snapshotNow().step}`;
  for (const id of ["first", "previous"]) find(id).disabled = trainingRun.now === 0;
  find("last").disabled = trainingRun.now === last;
  find("next").disabled = trainingRun.now === last && !canTrainOn();
}

/** Look at a neuron, or no longer. */
function chooseNeuron(cell) {
  neuron = neuron === cell ? null : cell;
  picture.mark(neuron);
  showNeuron();
  if (neuron) neuronPanel.scrollIntoView({ block: "nearest" });
}

function showNeuron() {
  neuronPanel.hidden = neuron === null;
  if (neuron === null) return;
  const { numbers } = snapshotNow();
  const next = stepAfter(snapshotNow());
  const shown = (from, parameter) => (from ? readable(from[parameter]) : "unknown");
  const ownName = (parameter) => html("th", { scope: "row", title: recording.names[parameter] }, recording.names[parameter].split(".").pop());
  const row = (parameter) => html("tr", {}, ownName(parameter), ...[numbers, next?.gradients, next?.numbers].map((from) => html("td", {}, shown(from, parameter))));
  const rows = neuron.weights.map(([, parameter]) => row(parameter));
  if (neuron.bias !== null) rows.push(row(neuron.bias));
  const head = html("tr", {}, ...["parameter", "now", "gradient", "next"].map((name) => html("th", { scope: "col" }, name)));
  const inGraph = neuron.weights.map(([, parameter]) => recording.parameters[parameter]).find((index) => index !== null);
  const show = () => {
    setMode(false);
    select(inGraph, true);
  };
  neuronPanel.replaceChildren(
    html("h3", {}, neuron.name), html("p", {}, `It says ${neuron.said} at ${recording.inputs.length && exampleNow() !== null ? `example ${exampleNow() + 1}` : "the first of the inputs"}.`),
    ...(rows.length ? [html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows))] : []),
    ...(inGraph === undefined ? [] : [html("button", { type: "button", onclick: show }, "Show it in the graph")]));
}
