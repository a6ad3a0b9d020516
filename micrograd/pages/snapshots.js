// ---- A training in time: the snapshots of a recording, and those that the page adds by training itself --------------------

const MOST_SNAPSHOTS = 400; // of a training in the page; beyond, every other one is dropped
const { recording } = passes;
const lessons = recording.training; // what it takes to train here; or only the reason why not

/** Floats that came in base64. */
function decoded(text) {
  return new Float64Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

/** The snapshots of the recording: each the numbers of the parameters, the optimiser's state, and the batch of the next step. */
function recordedSnapshots() {
  const count = recording.parameters.length;
  const numbers = decoded(recording.numbers);
  const states = recording.states.map(decoded);
  const row = (column, index) => (column.length === recording.frames.length ? new Float64Array(count).fill(column[index]) : column.subarray(index * count, (index + 1) * count));
  return recording.frames.map((frame, index) => ({
    ...frame, rate: frame.rate === null ? null : Number(frame.rate), numbers: numbers.subarray(index * count, (index + 1) * count), states: states.map((column) => row(column, index)),
  }));
}

const recorded = { snapshots: recordedSnapshots(), losses: recording.losses.map(([step, loss]) => [step, Number(loss)]) };
const rates = recorded.snapshots.filter(({ rate }) => rate !== null);
const asRecorded = { data: "recorded", noise: 0.1, batch: lessons.batch, optimizer: 0, rate: null, activation: null, seed: lessons.seed ?? 0 };
const trainingRun = { snapshots: [...recorded.snapshots], losses: [...recorded.losses], now: 0, isLive: false, settings: { ...asRecorded }, own: { points: [], kinds: [] }, weights: null };
let refusal = lessons.reason ?? (unknown.length ? `this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}` : null); // why the page does not train

/** The rate of the step after so many: the one that was set, or the recorded one, which the last one goes on with. */
function rateAfter({ step, rate }) {
  return rate ?? trainingRun.settings.rate ?? (rates.filter((snapshot) => snapshot.step <= step).pop() ?? rates[0])?.rate ?? 0.1;
}

const snapshotNow = () => trainingRun.snapshots[trainingRun.now];

/** The points that are trained on, and of which kind each is; null for the recording's own. */
function pointsNow() {
  const { data, noise, seed } = trainingRun.settings;
  if (data === "recorded") return null;
  return data === "own" ? trainingRun.own : datasetOf(data, noise, seed);
}

/** What the examples of the recording's first class have in common, or of its last: these stand for the two kinds of points. */
const classOf = (kind) => lessons.classes[kind ? lessons.classes.length - 1 : 0];

let made = null; // the examples, the batches and the trainer for the present settings
/** What trains with the present settings. */
function trainingNow() {
  if (refusal) return null;
  const { data, noise, batch, activation, seed } = trainingRun.settings;
  const key = JSON.stringify([data, noise, batch, activation, seed, data === "own" && trainingRun.own.points.length]);
  if (made?.key !== key) {
    const points = pointsNow();
    const exampleOf = (place, kind) => [classOf(kind).example[0], ...place, ...classOf(kind).example.slice(1)];
    const examples = points ? points.points.map((place, index) => exampleOf(place, points.kinds[index])) : lessons.examples;
    made = { key, examples, batchOf: examples.length ? batchesOf(seed, examples.length, batch) : null, trainer: trainerOf(lessons, activation === null ? null : lessons.activations[activation]) };
  }
  return made;
}

/** The step that follows a snapshot: its batch, its loss, the gradient, and the next numbers; or the trouble with it. */
function stepAfter(snapshot) {
  if (snapshot.next) return snapshot.next;
  const training = trainingNow();
  if (!training || !snapshot.known) return null;
  const optimizer = lessons.optimizers[trainingRun.settings.optimizer];
  const rate = rateAfter(snapshot);
  const batch = snapshot.batch ?? training.batchOf?.(snapshot.step);
  if (!batch) return null;
  const next = { snapshot, batch, rate, optimizer };
  next.contributions = (parameter) => batch.map((example) => training.trainer.gradient([example], training.examples, snapshot.numbers).gradients[parameter]);
  try {
    Object.assign(next, training.trainer.gradient(batch, training.examples, snapshot.numbers));
    Object.assign(next, updated(snapshot, next.gradients, rate, optimizer, lessons.trained));
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    next.trouble = error;
  }
  snapshot.next = next;
  return next;
}

/** Train one step on from the last snapshot; false where that cannot be done. */
function trainOn() {
  const last = trainingRun.snapshots[trainingRun.snapshots.length - 1];
  const next = stepAfter(last);
  if (!next || next.trouble) return false;
  trainingRun.isLive = true;
  trainingRun.losses.push([last.step + 1, next.loss]);
  trainingRun.snapshots.push({ step: last.step + 1, numbers: next.numbers, states: next.states, batch: null, rate: null, known: true });
  if (trainingRun.snapshots.length > MOST_SNAPSHOTS) trainingRun.snapshots = trainingRun.snapshots.filter((snapshot, index) => index % 2 === 0 || index === trainingRun.snapshots.length - 1);
  if (trainingRun.losses.length > 10 * MOST_SNAPSHOTS) trainingRun.losses = trainingRun.losses.filter((loss, index) => index % 2 === 0);
  last.next = null; // it can be computed again
  return true;
}

/** Go on from the present snapshot with other settings: what followed it is forgotten. */
function branch(settings) {
  const changed = settings.optimizer !== undefined && settings.optimizer !== trainingRun.settings.optimizer;
  Object.assign(trainingRun.settings, settings);
  const { step, numbers, states } = snapshotNow();
  trainingRun.snapshots = trainingRun.snapshots.slice(0, trainingRun.now);
  trainingRun.snapshots.push({ step, numbers, states: changed ? [] : states, batch: null, rate: null, known: true });
  trainingRun.losses = trainingRun.losses.filter(([made]) => made <= step);
  trainingRun.isLive = true;
}

/** Begin again, with other settings and the first weights, or with others. */
function restart(settings = {}) {
  Object.assign(trainingRun.settings, settings);
  trainingRun.snapshots = [{ step: 0, numbers: trainingRun.weights ?? recorded.snapshots[0].numbers, states: [], batch: null, rate: null, known: true }];
  trainingRun.losses = [];
  trainingRun.now = 0;
  trainingRun.isLive = true;
}

/** The weights of random.seed(seed) and a network of mg.nn: from -1 to 1, and what began at 0 begins there again. */
function drawnWeights(seed) {
  const random = new PythonRandom(seed);
  return recorded.snapshots[0].numbers.map((number, index) => (number === 0 || !lessons.trained.includes(index) ? number : random.uniform(-1, 1)));
}

/** The recording as it was. */
function rewind() {
  Object.assign(trainingRun, { snapshots: [...recorded.snapshots], losses: [...recorded.losses], now: 0, isLive: false, settings: { ...asRecorded }, weights: null });
}

/** Whether the page computes a step as it was recorded; else it does not train, and says so. */
function verify() {
  const place = recorded.snapshots.findIndex(({ batch }) => batch !== null);
  const [snapshot, after] = recorded.snapshots.slice(place);
  const loss = recorded.losses.find(([step]) => step === snapshot.step + 1)?.[1];
  if (refusal || place < 0 || loss === undefined) return;
  const next = stepAfter(snapshot);
  const close = (one, other) => Math.abs(one - other) <= 1e-6 * Math.max(1, Math.abs(one), Math.abs(other));
  const which = snapshot.step ? `step ${snapshot.step + 1}` : "the first step";
  if (!next || next.trouble || !close(next.loss, loss)) refusal = `the loss of ${which} comes out differently here: it may depend on more than the example and the parameters, on random numbers say`;
  else if (after.step === snapshot.step + 1 && !next.numbers.every((number, index) => close(number, after.numbers[index]))) refusal = `${which} comes out differently here: more than the optimiser may have changed the parameters`;
  if (refusal) snapshot.next = null;
}
