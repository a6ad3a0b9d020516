// ---- Maps of the plane: what the network and each of its neurons say of each place --------------------------------------

const SIDE = 48; // places of the boundary's map, each way
const SMALL = 24; // of a neuron's
const CLASSES = ["--negative", "--positive", "--class-2", "--class-3", "--class-4", "--class-5", "--class-6"];

/** The colours of classes, as the theme has them. */
function classColours() {
  const style = getComputedStyle(themed);
  return CLASSES.map((name) => style.getPropertyValue(name).split(" ").map(Number));
}

/** A square around the points, with a margin: left, right, low and high. */
function square(points) {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  const reach = 0.58 * Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys), 1e-9);
  return [middle(xs) - reach, middle(xs) + reach, middle(ys) - reach, middle(ys) + reach];
}

/** What an operation gives at all places: operands are numbers, where they are the same everywhere, or lists. */
function across({ name, forward }, given, count) {
  if (given.every((operand) => typeof operand === "number")) return forward(...given);
  const [a, b] = given;
  const result = new Float64Array(count);
  const isOne = typeof a === "number";
  if (given.length === 1) for (let place = 0; place < count; place++) result[place] = forward(a[place]);
  else if (given.length > 2) for (let place = 0; place < count; place++) result[place] = forward(...given.map((operand) => (typeof operand === "number" ? operand : operand[place])));
  else if (isOne || typeof b === "number") {
    const [one, many] = isOne ? [a, b] : [b, a];
    if (name === "mul") for (let place = 0; place < count; place++) result[place] = one * many[place];
    else if (name === "add") for (let place = 0; place < count; place++) result[place] = one + many[place];
    else if (isOne) for (let place = 0; place < count; place++) result[place] = forward(one, many[place]);
    else for (let place = 0; place < count; place++) result[place] = forward(many[place], one);
  } else if (name === "add") for (let place = 0; place < count; place++) result[place] = a[place] + b[place];
  else for (let place = 0; place < count; place++) result[place] = forward(a[place], b[place]);
  return result;
}

/** What these nodes of the network say of each place of a square: for each node a list, from the upper left on. */
function mapsOf({ data, inputs, parameters, operations }, wanted, numbers, [left, right, low, high], side) {
  const count = side * side;
  const values = Array.from(data);
  for (const [index, parameter] of parameters) values[index] = numbers[parameter];
  for (const [index, input] of inputs) {
    values[index] = Float64Array.from({ length: count }, input === 0
      ? (_, place) => left + (((place % side) + 0.5) / side) * (right - left)
      : (_, place) => high - ((Math.floor(place / side) + 0.5) / side) * (high - low));
  }
  for (const operation of operations) values[operation.index] = across(operation, operation.operands.map((operand) => values[operand]), count);
  return wanted.map((index) => (typeof values[index] === "number" ? new Float64Array(count).fill(values[index]) : values[index]));
}

/** Blue where a neuron says more than 0, orange where less; the stronger, the more, beside what it says elsewhere. */
function paintNeuron(canvas, map, colours) {
  const most = map.reduce((largest, number) => (Number.isFinite(number) ? Math.max(largest, Math.abs(number)) : largest), 0) || 1;
  const image = new ImageData(SMALL, SMALL);
  map.forEach((number, place) => {
    const colour = Number.isFinite(number) ? colours[Number(number > 0)] : [128, 128, 128];
    image.data.set([...colour, 255 * Math.min(1, Math.abs(Number.isFinite(number) ? number : most) / most) * 0.85], 4 * place);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The boundary: of which class each place is, and how surely; two maps' difference where there are several outputs. */
function paintBoundary(canvas, maps, threshold, colours) {
  const image = new ImageData(SIDE, SIDE);
  for (let place = 0; place < SIDE * SIDE; place++) {
    const scores = maps.map((map) => map[place]);
    const best = scores.length > 1 ? scores.indexOf(Math.max(...scores)) : Number(scores[0] > threshold);
    const sure = scores.length > 1 ? 0.5 : 0.2 + 0.45 * Math.tanh(Math.abs(scores[0] - threshold) * (threshold ? 4 : 1));
    const known = scores.every(Number.isFinite);
    image.data.set([...((known && colours[best]) || [128, 128, 128]), 255 * (known ? sure : 0.6)], 4 * place);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const threshold = recording.network && primitives[recording.network.nodes[recording.network.outputs[0]][0]]?.name === "sigmoid" ? 0.5 : 0; // between two classes
let programShown = null;
/** The program of the network, with the activation that is chosen. */
function networkProgram() {
  const { activation } = trainingRun.settings;
  const { network } = recording;
  if (programShown?.activation !== activation) programShown = { activation, made: runnable({ ...network, root: network.outputs[0] }, activation === null ? null : lessons.activations[activation]) };
  return programShown.made;
}

/** Show in a plane and in the picture of the network, as far as there are these, what the neurons say: of each place, and of the inputs. */
function showNetwork(board, picture, numbers, inputs) {
  const colours = classColours();
  const made = networkProgram();
  const wanted = picture ? picture.cells.map(({ node }) => node) : [];
  if (board) board.paint(mapsOf(made, recording.network.outputs, numbers, board.bounds(), SIDE), threshold, colours);
  const maps = board && picture ? mapsOf(made, wanted, numbers, board.bounds(), SMALL) : null;
  for (const [index, place] of made.inputs) made.data[index] = inputs[place];
  for (const [index, parameter] of made.parameters) made.data[index] = numbers[parameter];
  run(made);
  picture?.paint(numbers, maps, wanted.map((node) => made.data[node]), colours);
}
