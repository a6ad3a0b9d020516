// ---- The network: a map for each neuron, and edges as wide as their weights ---------------------------------------------

const MOST_NEURONS = 400;
const MOST_EDGES = 4000;
const SMALLEST = 44; // pixels, each way, of a cell: as large as a finger needs
const BETWEEN = 14; // pixels between columns, for the edges
const MOST_INPUTS = 12; // with more, only the neurons are shown

/** A number in at most five characters: what a cell has room for. */
function brief(number) {
  const size = Math.abs(number);
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number > 0 ? "∞" : "−∞";
  return minus(size < 1000 ? String(Number(number.toFixed(size < 10 ? 2 : 0))) : number.toExponential(0).replace("e+", "e"));
}

/** The cells of the network in columns: its inputs, then its layers. */
function columnsOf({ nodes: made, layers }) {
  const inputs = made.flatMap(([kind, place], node) => (kind === "x" ? [{ node, place, name: `x${place + 1}`, weights: [], bias: null }] : []));
  inputs.sort((one, other) => one.place - other.place);
  const neurons = layers.map((layer, place) => layer.map(({ node, weights, bias }, index) =>
    ({ node, weights, bias, name: layer.length > 1 ? `Layer ${place + 1}, Neuron ${index + 1}` : `Layer ${place + 1}` })));
  return inputs.length <= MOST_INPUTS ? [inputs, ...neurons] : neurons;
}

/** What a parameter is called: its label, or the way that leads to it from the model. */
function parameterName(parameter) {
  const index = recording.parameters[parameter];
  return (index !== null && nodes[index].label) || recording.names[parameter];
}

/** The picture of the network. choose is called with the cell that is clicked. */
function networkView(network, choose) {
  const columns = columnsOf(network);
  const cells = columns.flat();
  const place = new Map(cells.map((cell) => [cell.node, cell]));
  columns.forEach((column, x) => column.forEach((cell, y) => Object.assign(cell, { x, y, of: column.length })));
  const links = cells.flatMap((cell) => cell.weights.filter(([from]) => place.has(from)).map(([from, parameter]) => ({ from: place.get(from), to: cell, parameter })));
  let chosenCell = null;
  const drawn = links.length <= MOST_EDGES ? links : [];
  const lines = svg("svg", { "aria-hidden": "true" });
  for (const link of drawn) lines.append((link.element = svg("path", { class: "weight" })));
  const field = html("div", { class: "field" }, lines);
  for (const cell of cells) {
    cell.canvas = html("canvas", { width: String(SMALL), height: String(SMALL) });
    cell.number = html("span", { class: "says" });
    cell.element = html("button", { type: "button", class: "cell", "aria-pressed": "false", onclick: () => choose(cell) }, cell.canvas, cell.number);
    field.append(cell.element);
  }
  const element = html("div", { id: "network", role: "group", "aria-label": "The network: its neurons, each with a map of what it says" }, field);

  /** Put the cells where there is room; a layer that is too high for one column stands in several. */
  function lay() {
    const { clientWidth: width, clientHeight: height } = element;
    if (!width) return;
    const least = SMALLEST + 10; // with the room below a cell
    const inHeight = Math.max(1, Math.floor((height - 24) / least));
    const beside = Math.max(columns.length, Math.floor((width - 2) / (SMALLEST + BETWEEN))); // columns that there is room for
    const parts = columns.map(() => 1);
    const rowsOf = (x) => Math.ceil(columns[x].length / parts[x]);
    const highest = () => parts.reduce((most, _, x) => (rowsOf(x) > rowsOf(most) ? x : most), 0);
    let places = parts.length;
    for (; places < beside && rowsOf(highest()) > inHeight; places++) parts[highest()]++;
    const rows = rowsOf(highest());
    const across = width / places;
    const side = Math.max(SMALLEST, Math.min(92, across - 40, (height - 24) / rows - 10));
    const tall = Math.max(height - 2, rows * (side + 10) + 24);
    const wide = Math.max(width - 2, places * (side + BETWEEN));
    const firstOf = parts.map((_, x) => parts.slice(0, x).reduce((sum, count) => sum + count, 0));
    field.style.width = `${wide}px`;
    field.style.height = `${tall}px`;
    lines.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    for (const cell of cells) {
      const column = firstOf[cell.x] + (cell.y % parts[cell.x]);
      const row = Math.floor(cell.y / parts[cell.x]);
      cell.centre = [((column + 0.5) / places) * wide, ((row + 0.5) / Math.ceil(cell.of / parts[cell.x])) * tall];
      for (const [key, value] of [["left", cell.centre[0] - side / 2], ["top", cell.centre[1] - side / 2], ["width", side], ["height", side]]) cell.element.style[key] = `${value}px`;
    }
    for (const { from, to, element: path } of drawn) {
      const [[x, y], [u, v]] = [[from.centre[0] + side / 2, from.centre[1]], [to.centre[0] - side / 2, to.centre[1]]];
      path.setAttribute("d", `M${x} ${y}C${(x + u) / 2} ${y} ${(x + u) / 2} ${v} ${u} ${v}`);
    }
  }

  /** Show the numbers of the parameters, and the maps; without maps, what each cell says at the example that is shown. */
  function paint(numbers, maps, said, colours) {
    const widest = Math.max(2, Math.min(8, 40 / Math.sqrt(drawn.length)));
    const most = drawn.reduce((largest, { parameter }) => Math.max(largest, Math.abs(numbers[parameter]) || 0), 1);
    for (const { element: path, parameter } of drawn) {
      const fraction = Number.isFinite(numbers[parameter]) ? Math.abs(numbers[parameter]) / most : 1;
      path.style.strokeWidth = `${(0.4 + widest * fraction).toFixed(2)}px`;
      path.style.stroke = Number.isFinite(numbers[parameter]) ? `rgb(var(${numbers[parameter] > 0 ? "--positive" : "--negative"}) / ${(0.35 + 0.5 * fraction).toFixed(2)})` : "rgb(var(--not-a-number))";
    }
    cells.forEach((cell, index) => {
      if (maps) paintNeuron(cell.canvas, maps[index], colours);
      cell.said = said ? readable(said[index]) : "an unknown number";
      cell.number.textContent = maps ? (cell.x === 0 && !cell.weights.length ? cell.name : "") : said ? brief(said[index]) : "";
      const label = `${cell.name}, says ${cell.said}`;
      if (cell.label !== label) cell.element.setAttribute("aria-label", (cell.label = label));
    });
  }

  /** Mark the cell that is looked at, and its edges. */
  function mark(chosen) {
    chosenCell = chosen;
    for (const cell of cells) cell.element.setAttribute("aria-pressed", String(cell === chosen));
    for (const { element: path, from, to } of drawn) path.classList.toggle("chosen", chosen !== null && (from === chosen || to === chosen));
  }
  /** The picture as an SVG that stands by itself. */
  function asSvg() {
    const [, , width, height] = lines.getAttribute("viewBox").split(" ").map(Number);
    const side = cells[0].element.offsetWidth;
    const shown = cells.map((cell) => {
      const [x, y] = cell.centre;
      const square = { x: x - side / 2, y: y - side / 2, width: side, height: side };
      return svg("g", { "aria-label": cell.label }, svg("image", { ...square, href: cell.canvas.toDataURL() }),
        svg("rect", { ...square, class: cell === chosenCell ? "border chosen" : "border" }), svg("text", { x, y: y + 4, class: "says" }, cell.number.textContent));
    });
    return sheet([0, 0, width, height], "network", svg("g", {}, ...drawn.map(({ element: path }) => path.cloneNode())), ...shown);
  }
  new ResizeObserver(lay).observe(element);
  return { element, cells, paint, mark, lay, asSvg };
}
