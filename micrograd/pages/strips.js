// ---- Strips and heat maps: many numbers as colours ---------------------------------------------------------

const LEVELS = 5; // of colour, for each sign
const MOST_CELLS = 4096;

/**
 * Where a cell of a strip or of a heat map is drawn: a path for each colour, so that thousands cost nothing.
 * Of an image, the pixels are as dark as their numbers; what lies on top has the middle of each pixel.
 */
function cells(rows, columns, x, y, width, height, { isImage = false, isOnTop = false } = {}) {
  const [w, h] = [width / columns, height / rows];
  const gap = isOnTop ? Math.min(w, h) / 2 : Math.min(w, h) > 5 && !isImage ? 0.8 : 0;
  const start = isOnTop ? gap / 2 : 0;
  const element = svg("g", { class: "cells", transform: `translate(${x} ${y})` });
  if (!isOnTop) element.append(svg("rect", { class: "ground", width, height }));
  const paths = new Map();
  /** Colour the cells by these numbers; null where there is none yet. The largest is of these, or of more that are compared. */
  const show = (numbers, largest = largestOf(numbers)) => {
    const parts = new Map();
    numbers.slice(0, MOST_CELLS).forEach((number, index) => {
      const level = levelOf(number, largest);
      if (level === 0) return;
      const place = `M${((index % columns) * w + start).toFixed(1)} ${(Math.floor(index / columns) * h + start).toFixed(1)}h${(w - gap).toFixed(1)}v${(h - gap).toFixed(1)}h${(gap - w).toFixed(1)}z`;
      parts.set(level, (parts.get(level) ?? "") + place);
    });
    for (const level of new Set([...paths.keys(), ...parts.keys()])) {
      if (!paths.has(level)) {
        const path = svg("path", {});
        path.style.fill = Number.isNaN(level) ? "rgb(var(--not-a-number))" : `rgb(var(${level < 0 ? "--negative" : isImage ? "--pixel" : "--positive"}) / ${(0.12 + (0.88 * Math.abs(level)) / LEVELS).toFixed(2)})`;
        paths.set(level, path);
        element.append(path);
      }
      const path = paths.get(level);
      const drawn = parts.get(level) ?? "";
      if (path.getAttribute("d") !== drawn) path.setAttribute("d", drawn);
    }
  };
  return { element, show };
}

/** The largest size of these numbers, without those that are not finite. */
const largestOf = (numbers) => numbers.reduce((most, number) => (number !== null && Number.isFinite(number) ? Math.max(most, Math.abs(number)) : most), 0);

/** From −LEVELS to LEVELS, by the fraction of the largest; NaN for what is not a number. */
function levelOf(number, largest) {
  if (number === null || number === 0) return 0;
  if (Number.isNaN(number)) return NaN;
  const fraction = Number.isFinite(number) && largest ? Math.sqrt(Math.abs(number) / largest) : 1;
  return Math.sign(number) * Math.max(1, Math.ceil(fraction * LEVELS));
}

/** The strips, or the heat maps side by side, of a closed box: its numbers and its gradients; of an image, whose numbers are not negative, one on top. */
function colours(shown) {
  const { w, group } = shown;
  const h = heightOf(shown);
  const outputs = outputsOf(group);
  const [rows, columns] = group.shape.length === 2 ? group.shape : [1, Math.min(outputs.length, 128)];
  const key = (x, y, text) => svg("text", { class: "key", x, y }, text);
  if (rows > 1 && group.image) {
    const size = [...sampled(group.shape), 10, 42, w - 20, h - 50];
    const [data, grad] = [cells(...size, { isImage: true }), cells(...size, { isOnTop: true })];
    shown.cells = { data, grad };
    return [key(10, 37, "data, with grad on top"), data.element, grad.element];
  }
  if (rows > 1) {
    const width = (w - 30) / 2;
    const [data, grad] = [10, 20 + width].map((x) => cells(...sampled(group.shape), x, 42, width, h - 50));
    shown.cells = { data, grad };
    return [key(10, 37, "data"), key(20 + width, 37, "grad"), data.element, grad.element];
  }
  const [data, grad] = [32, 50].map((y) => cells(1, columns, 44, y, w - 54, 11));
  shown.cells = { data, grad };
  return [key(10, 41, "data"), key(10, 59, "grad"), data.element, grad.element];
}

/** Every how many rows, and columns, of a matrix there is a cell. */
const strideOf = ([rows, columns]) => Math.ceil(Math.sqrt((rows * columns) / MOST_CELLS));
const sampled = (shape) => shape.map((length) => Math.ceil(length / strideOf(shape)));

function paintCells(shown) {
  const { group } = shown;
  const outputs = outputsOf(group);
  const numbers = (of) => {
    if (group.shape.length !== 2) return outputs.slice(0, 128).map(of);
    const [stride, [rows, columns]] = [strideOf(group.shape), sampled(group.shape)];
    const all = Array(rows * columns).fill(null);
    for (const index of outputs) {
      const [row, column] = nodes[index].indices;
      if (row % stride === 0 && column % stride === 0) all[(row / stride) * columns + column / stride] = of(index);
    }
    return all;
  };
  shown.cells.data.show(numbers((index) => (isComputed(index) ? nodes[index].data : null)));
  shown.cells.grad.show(numbers((index) => (hasGradient(index) ? gradients[index] : null)));
}
