// ---- The plane of the two inputs: the boundary, the points, and the place where the next point goes ---------------------

/** The map with its points. add is called with the place where one's own point is put, and pick with a point that is clicked. */
function plane({ add, pick }) {
  const canvas = html("canvas", { width: String(SIDE), height: String(SIDE) });
  const dots = svg("g");
  const cross = svg("path", { class: "cross", d: "M-4 0H4M0 -4V4", visibility: "hidden" });
  const overlay = svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, dots, cross);
  const help = html("figcaption", {});
  const board = html("div", { id: "boundary", role: "img", "aria-label": "The plane of the two inputs, coloured by what the network says there" }, canvas, overlay);
  let [bounds, elements, mine, at] = [[-1, 1, -1, 1], [], false, [50, 50]];
  const placeOf = ([u, v]) => [bounds[0] + (u / 100) * (bounds[1] - bounds[0]), bounds[3] - (v / 100) * (bounds[3] - bounds[2])];

  /** Show points, each of a kind, null for none; one's own can be put there. */
  function set({ points, kinds, own }, around) {
    [bounds, mine] = [around, own];
    const [left, right, low, high] = bounds;
    elements = points.map(([x, y], index) => {
      const [u, v] = [((x - left) / (right - left)) * 100, ((high - y) / (high - low)) * 100];
      const dot = kinds[index] === 0 ? svg("rect", { class: "point", x: u - 1.3, y: v - 1.3, width: 2.6, height: 2.6 }) : svg("circle", { class: "point", cx: u, cy: v, r: 1.5 });
      dot.style.fill = kinds[index] === null ? "var(--ink)" : `rgb(var(${CLASSES[kinds[index]] ?? "--ink"}))`;
      return dot;
    });
    dots.replaceChildren(...elements);
    board.classList.toggle("own", own);
    board.setAttribute("role", own ? "application" : "img");
    board.tabIndex = own ? 0 : -1;
    help.textContent = own ? "Click to put a point there; or go with the arrow keys, and put it with Enter."
      : "The background is the network's output at each position. The points are the examples; the next batch has rings.";
    if (!own) cross.setAttribute("visibility", "hidden");
  }

  /** Give a ring to these points, and put them above the others. */
  function ring(indices) {
    for (const element of elements) element.classList.remove("chosen");
    for (const index of indices) {
      elements[index].classList.add("chosen");
      dots.append(elements[index]);
    }
  }

  function paint(maps, threshold, colours) {
    paintBoundary(canvas, maps, threshold, colours);
  }

  board.addEventListener("click", (event) => {
    const { left, top, width, height } = board.getBoundingClientRect();
    const where = [((event.clientX - left) / width) * 100, ((event.clientY - top) / height) * 100];
    if (mine) return add(placeOf(where));
    const distances = elements.map((element) => {
      const { x, y, width: w, height: h } = element.getBBox();
      return Math.hypot(x + w / 2 - where[0], y + h / 2 - where[1]);
    });
    const nearest = distances.indexOf(Math.min(...distances));
    if (distances[nearest] < 4) pick(nearest);
  });
  board.addEventListener("keydown", (event) => {
    if (!mine || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in DIRECTIONS) {
      at = at.map((x, axis) => Math.max(0, Math.min(100, x + 4 * DIRECTIONS[event.key][axis])));
      cross.setAttribute("transform", `translate(${at[0]} ${at[1]})`);
      cross.setAttribute("visibility", "visible");
      say(`At ${placeOf(at).map(readable).join(", ")}`);
    } else if (event.key === "Enter" || event.key === " ") add(placeOf(at));
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { figure: html("figure", {}, board, help), set, ring, paint, bounds: () => bounds };
}
