// ---- Wrapping: a row that is too long for the page goes on below, as a text does --------------------------------

// A lane is between two rows, where arrows go from one to the next; beside is left of the rows, and beside the ends of arrows.
const ROOMY = { lane: 32, beside: 14 };
const TIGHT = { lane: 20, beside: 9 };
const NARROW = 10; // a gap between columns where there is little room
const LOW = 6; // and one between the items of a column
const MOST_ROWS = 40;
const MOST_WRAPPED = 400; // items of a box; with more, it stays as it is

let wrappedFor = ""; // the size of the graph on the page, for which shapes were wrapped
const wrappedShapes = new Map();

/**
 * A shape, in as many rows as make it largest on this page; it stays as it is where that can be read. One that cannot be
 * read as a whole, in any number of rows, is as wide as the page: then it is read downwards.
 */
function wrapped(shape) {
  const { width, height } = bounds();
  if (wrappedFor !== `${width} ${height}`) wrappedShapes.clear();
  wrappedFor = `${width} ${height}`;
  if (!wrappedShapes.has(shape)) {
    const isReadable = (whole) => scaleFor(whole, width, height) >= READABLE;
    const best = bestOfRows(shape, width, height);
    const closer = isReadable(best) ? best : bestOfRows(squeezed(shape), width, height);
    wrappedShapes.set(shape, isReadable(closer) ? closer : best);
  }
  return wrappedShapes.get(shape);
}

function bestOfRows(shape, width, height) {
  const scale = (whole) => scaleFor(whole, width, height);
  let best = shape;
  let asWide = null;
  for (let count = 2; count <= MOST_ROWS && shape.places.length <= MOST_WRAPPED && scale(best) < READABLE; count++) {
    const rows = inRows(shape, count);
    if (READABLE * rows.width <= width - 2 * room()) asWide ??= rows;
    if (scale(rows) > scale(best)) best = rows;
    else if (asWide && rows.height > rows.width) break; // more rows make it higher still
  }
  if (scale(best) < READABLE && READABLE * best.width > width - 2 * room() && asWide) best = asWide;
  return best;
}

/** The same with narrow gaps between its columns and in them, for where little is missing until all of it can be read. */
function squeezed({ places, routes }) {
  const spans = []; // of the columns
  for (const [x, , w] of [...places].sort((one, other) => one[0] - one[2] / 2 - (other[0] - other[2] / 2))) {
    const last = spans[spans.length - 1];
    if (last && x - w / 2 <= last.end) last.end = Math.max(last.end, x + w / 2);
    else spans.push({ start: x - w / 2, end: x + w / 2 });
  }
  let taken = 0; // from the gaps so far
  spans.forEach((span, index) => {
    if (index) taken += Math.max(0, span.start - spans[index - 1].end - NARROW);
    span.moved = taken;
  });
  const across = (x) => {
    const after = spans.findIndex(({ end }) => x <= end);
    const [span, before] = [spans[after] ?? spans[spans.length - 1], spans[after - 1]];
    if (!before || x >= span.start) return x - span.moved;
    const fraction = (x - before.end) / (span.start - before.end);
    return before.end - before.moved + fraction * (span.start - span.moved - before.end + before.moved);
  };
  const factor = nearness(places);
  const moved = places.map(([x, y, w, h]) => [across(x), y * factor, w, h]);
  const top = Math.min(...moved.map(([, y, , h]) => y - h / 2));
  for (const place of moved) place[1] -= top;
  const led = routes.map(([tail, head, points]) => [tail, head, points.map((value, index) => (index % 2 ? value * factor - top : across(value)))]);
  const [width, height] = [0, 1].map((axis) => Math.max(...moved.map((place) => place[axis] + place[axis + 2] / 2)));
  return { places: moved, routes: led, width, height, gaps: TIGHT };
}

/** By how much the items of columns can move together. */
function nearness(places) {
  let factor = places.length > MOST_WRAPPED ? 1 : 0;
  for (const [x, y, w, h] of factor ? [] : places) {
    for (const [u, v, width, height] of places) if (v > y && Math.abs(u - x) < (w + width) / 2) factor = Math.max(factor, ((h + height) / 2 + LOW) / (v - y));
  }
  return Math.min(1, factor || 1);
}

/** The same in about so many rows. */
function inRows({ places, routes, width, gaps = ROOMY }, count) {
  const { lane, beside } = gaps;
  const starts = startsOfRows(places, width / count);
  const rowOf = places.map(([x]) => starts.findLastIndex((start, row) => row === 0 || start <= x));
  const inner = routes.filter(([tail, head]) => rowOf[tail] === rowOf[head]);
  const { tops, lanes, bottom } = heightsOfRows(places, rowOf, inner, starts.length, lane);
  const across = (x, row) => x - starts[row] + beside;
  const moved = places.map(([x, y, w, h], index) => [across(x, rowOf[index]), y + tops[rowOf[index]], w, h]);
  const led = routes.map(([tail, head, points]) => {
    const row = rowOf[tail];
    if (row !== rowOf[head]) return [tail, head, around(moved[tail], moved[head], lanes[row], lanes[rowOf[head] - 1] ?? tops[0] - lane / 2, beside)];
    return [tail, head, points.map((value, index) => (index % 2 ? value + tops[row] : across(value, row)))];
  });
  return { places: moved, routes: led, width: Math.max(...moved.map(([x, , w]) => x + w / 2)) + beside, height: bottom };
}

/** Where rows of about this length begin: where no item is cut, and the first at 0. */
function startsOfRows(places, length) {
  const starts = [0];
  let right = 0;
  for (const [x, , w] of [...places].sort((one, other) => one[0] - one[2] / 2 - (other[0] - other[2] / 2))) {
    const left = x - w / 2;
    if (left >= right && left - starts[starts.length - 1] > length) starts.push(left);
    right = Math.max(right, x + w / 2);
  }
  return starts;
}

/** How far down each row moves, where the lanes below the rows are, and where the last row ends. */
function heightsOfRows(places, rowOf, routes, count, lane) {
  const extents = Array.from({ length: count }, () => []);
  places.forEach(([, y, , h], index) => extents[rowOf[index]].push(y - h / 2, y + h / 2));
  for (const [tail, , points] of routes) extents[rowOf[tail]].push(...points.filter((_, index) => index % 2));
  const [tops, lanes] = [[], []];
  let bottom = 0;
  for (const extent of extents) {
    const [highest, lowest] = [Math.min(...extent), Math.max(...extent)];
    tops.push(bottom - highest);
    bottom += lowest - highest;
    lanes.push(bottom + lane / 2);
    bottom += lane;
  }
  return { tops, lanes, bottom: bottom - lane };
}

/** An arrow from one row to another: through the lane below the first and that above the second. */
function around([x1, y1, w1], [x2, y2, w2], below, above, beside) {
  const [start, end] = [[x1 + w1 / 2, y1], [x2 - w2 / 2, y2]];
  const corners = [start, [start[0] + beside / 2, start[1]], [start[0] + beside / 2, below]];
  if (above !== below) corners.push([beside / 4, below], [beside / 4, above]);
  corners.push([end[0] - beside / 2, above], [end[0] - beside / 2, end[1]], end);
  const path = [...start];
  corners.slice(1).forEach(([u, v], index) => {
    const [x, y] = corners[index];
    path.push((2 * x + u) / 3, (2 * y + v) / 3, (x + 2 * u) / 3, (y + 2 * v) / 3, u, v);
  });
  return path;
}
