// ---- Arrangement: the room that everything takes -----------------------------------------------------------

const TITLE = 30;
const MARGIN = 16;
/** A map of one axis that keeps the order and gives each interval [start, end] at least the length it needs. */
function stretched(intervals) {
  const marks = [...new Set(intervals.flatMap(([start, end]) => [start, end]))].sort((one, other) => one - other);
  const rank = new Map(marks.map((mark, index) => [mark, index]));
  const lengths = marks.slice(1).map((mark, index) => mark - marks[index]);
  for (const [start, end, needed] of intervals) {
    const [first, last] = [rank.get(start), rank.get(end)];
    const length = lengths.slice(first, last).reduce((sum, part) => sum + part, 0);
    for (let index = first; needed > length && index < last; index++) lengths[index] *= needed / length;
  }
  const places = [marks[0]];
  for (const length of lengths) places.push(places[places.length - 1] + length);
  return (x) => {
    let low = 0;
    let high = marks.length - 1;
    if (x <= marks[0]) return x;
    if (x >= marks[high]) return x - marks[high] + places[high];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (marks[middle] <= x) low = middle;
      else high = middle;
    }
    return places[low] + ((x - marks[low]) / (marks[high] - marks[low])) * (places[high] - places[low]);
  };
}

/** What an open group has inside: of a stack that is looked through one by one, the member on top. */
const arrangeGroup = (group) => arrange((isStack(group) && !spread.has(group) ? onTop(group) : group) + 1);

/** Place what is right inside a container (0 is the whole, then the groups), and in it what is open. */
function arrange(container) {
  const { shape, items } = passes.contents[container];
  const { places, routes, width, height } = wrapped(passes.shapes[shape]);
  const inner = items.map((item) => (item[0] === "g" && isOpen(Number(item.slice(1))) ? arrangeGroup(Number(item.slice(1))) : null));
  const sizes = places.map(([, , w, h], index) =>
    inner[index] ? [inner[index].width + 2 * MARGIN, inner[index].height + 2 * MARGIN + TITLE] : [w, h]);
  let [right, down] = [(x) => x, (y) => y];
  if (inner.some(Boolean)) {
    right = stretched(places.map(([x, , w], index) => [x - w / 2, x + w / 2, sizes[index][0]]));
    down = stretched(places.map(([, y, , h], index) => [y - h / 2, y + h / 2, sizes[index][1]]));
  }
  const placed = places.map(([x, y, w, h], index) => ({
    item: items[index], inner: inner[index], w: sizes[index][0], h: sizes[index][1],
    x: (right(x - w / 2) + right(x + w / 2)) / 2, y: (down(y - h / 2) + down(y + h / 2)) / 2,
  }));
  const moved = routes.filter(([tail, head]) => !inner[tail] && !inner[head]).map(([tail, head, points]) => {
    const path = points.map((value, index) => (index % 2 ? down(value) : right(value)));
    const last = path.length - 2; // the ends stay on their cards' borders
    for (const [end, card] of [[0, tail], [last, head]]) {
      path[end] = points[end] - places[card][0] + placed[card].x;
      path[end + 1] = points[end + 1] - places[card][1] + placed[card].y;
    }
    return { tail: items[tail], head: items[head], path };
  });
  return { placed, routes: moved, width: right(width), height: down(height) };
}

