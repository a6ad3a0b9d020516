// ---- The moons: a small network that trains on the home page, and the chain rule of one of its neurons in words ---------
// It stands below the scripts of explore that train: see home.py. They, and this, are the inside of a function.

const { network, points } = recording;
const say = () => {}; // the page says what it has to say beside the controls
const LAST = 600; // steps: then the moons are told apart, and the page comes to rest
const board = plane({ add: () => {}, pick: choose });
const picture = networkView(network, touch);
const lesson = lessons.programs[0];
const words = html("section", { id: "words", "aria-label": "The chain rule of a neuron", tabindex: "0" });
const status = html("p", { id: "step" });
let [touched, example, running, drawn] = [null, null, true, null];

/** Which operation of a loss's program is the sum of each neuron, and which its result: found by the parameters that are below. */
function neuronsIn({ nodes: made, activations }) {
  const below = [];
  made.forEach(([kind, ...operands], index) => {
    const found = kind === "p" ? [operands[0]] : typeof kind === "number" && !activations.includes(index) ? operands.flatMap((operand) => below[operand]) : [];
    below[index] = [...new Set(found)].sort((one, other) => one - other);
  });
  return new Map(picture.cells.filter(({ weights }) => weights.length).map((cell) => {
    const own = [...cell.weights.map(([, parameter]) => parameter), cell.bias].sort((one, other) => one - other).join();
    const sum = below.findIndex((parameters) => parameters.join() === own);
    const result = activations.find((index) => made[index][1] === sum) ?? sum;
    return [cell, { sum, result }];
  }));
}
const neurons = neuronsIn(lesson);
const cellOf = new Map(picture.cells.map((cell) => [cell.node, cell]));

/** The loss of an example with these numbers, and the gradient of all that it is computed from. */
function passesOf(number, numbers) {
  const { trainer, examples } = trainingNow();
  const made = trainer.load(examples[number], numbers);
  run(made);
  addGradients(made, 1, new Float64Array(numbers.length));
  return made;
}

/** The example with the largest loss: there is most to learn from it. */
function hardest(numbers) {
  const { trainer, examples } = trainingNow();
  const losses = examples.map((given) => {
    const made = trainer.load(given, numbers);
    run(made);
    return made.data[made.result];
  });
  return losses.indexOf(Math.max(...losses));
}

const times = (contribution, by) => `${inBrackets(contribution)} × ${inBrackets(by)}`;
const line = (...parts) => html("p", { class: "line" }, ...parts);
const strong = (text) => html("strong", {}, text);

/** The chain rule of a neuron at an example, in words and numbers. */
function chainRule(cell, number, numbers) {
  const { data, contributions, operations, result } = passesOf(number, numbers);
  const { sum, result: out } = neurons.get(cell);
  const inputOf = ([from]) => (cellOf.get(from).weights.length ? data[neurons.get(cellOf.get(from)).result] : inputs[cellOf.get(from).place]);
  const inputs = points[number];
  const terms = cell.weights.map((weight) => times(numbers[weight[1]], inputOf(weight))).join(" + ");
  const parts = [
    html("h2", {}, `${cell.name}, at the point with the ring`),
    line("It adds up ", `${terms} + ${inBrackets(numbers[cell.bias])} = `, strong(readable(data[sum])), out === sum ? ": that is what the network says." : "."),
  ];
  const operation = operations.find(({ index }) => index === out);
  if (out !== sum) parts.push(line(`Its ${operation.name} makes `, strong(readable(data[out])), " of that."));
  const feeds = [...neurons].flatMap(([other, places]) => other.weights.filter(([from]) => from === cell.node).map(([, parameter]) => [other, parameter, contributions[places.sum]]));
  if (feeds.length) {
    const listed = feeds.map(([, parameter, contribution]) => times(contribution, numbers[parameter])).join(" + ");
    parts.push(line(`The loss is ${readable(data[result])}. ${feeds.length === 1 ? "One neuron uses this one" : `${feeds.length} neurons use this one, and their contributions add`}: ${listed} = `, strong(readable(contributions[out])), ". That is what the loss changes by for each unit of this neuron."));
  } else parts.push(line(`The loss is ${readable(data[result])}. For each unit of this neuron it changes by `, strong(readable(contributions[out])), "."));
  if (out !== sum) {
    const local = operation.rules[0](1, data[out], [data[sum]]);
    parts.push(line(`The slope of ${operation.name} is ${readable(local)} here, so the sum passes on ${times(contributions[out], local)} = `, strong(readable(contributions[sum])), "."));
  }
  const rows = cell.weights.map((weight, place) => [`w${place + 1}`, weight[1], inputOf(weight), cellOf.get(weight[0]).name]);
  const weights = rows.map(([name, parameter, input, from]) => html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, `${times(contributions[sum], input)} = ${readable(contributions[sum] * input)}`), html("td", {}, from), html("td", {}, direction(contributions[sum] * input))));
  weights.push(html("tr", {}, html("th", { scope: "row" }, "b"), html("td", {}, readable(contributions[sum])), html("td", {}, "nothing"), html("td", {}, direction(contributions[sum]))));
  const head = html("tr", {}, ...["weight", "its gradient", "times", "a step makes it"].map((name) => html("th", { scope: "col" }, name)));
  parts.push(html("table", {}, html("thead", {}, head), html("tbody", {}, ...weights)));
  return parts;
}
const direction = (gradient) => (gradient > 0 ? "smaller" : gradient < 0 ? "larger" : "stay");

/** Shows a neuron's chain rule, or no longer; the training waits meanwhile, so that the numbers can be read. */
function touch(cell) {
  if (!cell.weights.length) return;
  touched = touched === cell ? null : cell;
  picture.mark(touched);
  setRunning(touched === null);
}

function choose(point) {
  example = point;
  setRunning(false);
}

function setRunning(now) {
  running = now && !isDone();
  if (running) [touched, example] = [null, null];
  picture.mark(touched);
  drawn = null;
  paint();
  if (running) schedule();
}

const isDone = () => snapshotNow().step >= LAST || Boolean(stepAfter(snapshotNow())?.trouble);
const hint = "Touch a neuron: it says how the loss changes with it, and with each of its weights.";

function paint() {
  const snapshot = snapshotNow();
  if (drawn === snapshot) return;
  drawn = snapshot;
  const shown = example ?? (touched ? hardest(snapshot.numbers) : null);
  showNetwork(board, picture, snapshot.numbers, points[shown ?? 0]);
  board.ring(shown === null ? [] : [shown]);
  chart.set(trainingRun.losses);
  chart.mark(snapshot.step, trainingRun.losses[trainingRun.losses.length - 1]?.[1] ?? null);
  const trouble = stepAfter(snapshot)?.trouble;
  status.textContent = trouble ? `Step ${snapshot.step}: ${trouble.message}. A smaller rate may help.` : `Step ${snapshot.step}`;
  words.replaceChildren(...(touched ? chainRule(touched, shown, snapshot.numbers) : [line(hint)]));
  playButton.textContent = running ? "Pause" : isDone() ? "Start again" : "Go on";
}

const chart = lossChart();
const playButton = html("button", { type: "button", id: "play", onclick: () => {
  if (!running && isDone()) restart();
  setRunning(!running);
} });

let waiting = false;
let inSight = true;
/** One step of the training for each picture, while the page is looked at. */
function schedule() {
  if (waiting || !inSight) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (!running || !place.isConnected) return;
    if (trainOn()) trainingRun.now = trainingRun.snapshots.length - 1;
    if (isDone()) running = false;
    paint();
    if (running) schedule();
  });
}

/** Begins again with another rate or activation. */
function set(settings) {
  restart(settings);
  setRunning(true);
}

const kinds = recording.targets.map((target) => Number(target > 0));
board.set({ points, kinds, own: false }, square(points));
restart(settings);
new IntersectionObserver(([{ isIntersecting }]) => {
  inSight = isIntersecting;
  if (inSight && running) schedule();
}).observe(themed);
place.replaceChildren(
  html("div", { id: "plane" }, board.figure),
  html("div", { id: "stage" }, picture.element),
  html("div", { id: "losses" }, chart.figure, html("div", { class: "row" }, playButton, status)),
  words,
);
picture.lay(); // before the page is drawn, so that nothing moves
setRunning(true);
return { set, repaint: () => ((drawn = null), paint()) };
