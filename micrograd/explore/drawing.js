// ---- Drawing -------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
const bdi = (text) => html("bdi", {}, text);

const graph = find("graph");
const visible = new Map(); // by item: its element, place, size and the texts that change
const edges = []; // element, and the pairs of Values that it stands for
const edgesOf = new Map(); // by pair
let size = { width: 1, height: 1 };

function draw() {
  const focused = document.activeElement?.dataset?.item;
  for (const id of ["boxes", "edges", "nodes"]) find(id).replaceChildren();
  visible.clear();
  edges.length = 0;
  edgesOf.clear();
  for (const kind of Object.keys(marked)) marked[kind].clear();
  const whole = arrange(0);
  size = { width: whole.width, height: whole.height };
  const routes = new Map();
  place(whole, 0, 0, routes);
  connect(routes);
  graph.classList.toggle("many", visible.size > 600);
  const few = visible.size <= FEW;
  for (const shown of [...visible.values(), ...edges]) {
    shown.away = !few;
    if (few) shown.home.append(shown.element);
  }
  look();
  find("expand").disabled = open.size === groups.length;
  find("collapse").disabled = open.size === 0;
  setTabStop(visible.has(focused) ? focused : itemOf(steps[at].node ?? root));
  if (focused) (visible.get(focused) ?? visible.get(tabStop))?.element.focus({ preventScroll: true });
}

function place(arrangement, dx, dy, routes) {
  for (const { tail, head, path } of arrangement.routes) {
    const key = `${tail}>${head}`;
    if (!routes.has(key)) routes.set(key, []);
    routes.get(key).push(path.map((value, index) => value + (index % 2 ? dy : dx)));
  }
  for (const { item, inner, x, y, w, h } of arrangement.placed) {
    const shown = { item, x: x + dx, y: y + dy, w, h, group: groupOf(item) };
    if (inner) {
      shown.element = openBox(shown);
      shown.home = find("boxes");
      place(inner, shown.x - w / 2 + MARGIN, shown.y - h / 2 + MARGIN + TITLE, routes);
    } else {
      shown.element = shown.group ? closedBox(shown) : card(shown);
      shown.home = find("nodes");
    }
    visible.set(item, shown);
  }
}

function connect(routes) {
  const between = new Map();
  for (const node of nodes) {
    for (const operand of node.operands) {
      const [tail, head] = [itemOf(operand), itemOf(node.index)];
      if (tail === head) continue;
      const key = `${tail}>${head}`;
      if (!between.has(key)) between.set(key, { tail, head, pairs: [] });
      between.get(key).pairs.push([operand, node.index]);
    }
  }
  for (const [key, { tail, head, pairs }] of between) {
    const dashed = tail[0] === "n" && nodes[tail.slice(1)].kind === "constant";
    for (const path of routes.get(key) ?? [straight(visible.get(tail), visible.get(head))]) {
      const [x, y, ...rest] = path.map((value) => Math.round(value * 10) / 10);
      const edge = { pairs, element: svg("path", { class: dashed ? "edge dashed" : "edge", d: `M${x} ${y}C${rest.join(" ")}` }), home: find("edges"), ...extent(path) };
      edges.push(edge);
      for (const [operand, user] of pairs) {
        const name = `${operand}>${user}`;
        edgesOf.set(name, [...(edgesOf.get(name) ?? []), edge]);
      }
    }
  }
}

function extent(path) {
  const [xs, ys] = [path.filter((_, index) => index % 2 === 0), path.filter((_, index) => index % 2)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { x: (left + right) / 2, y: (top + bottom) / 2, w: right - left, h: bottom - top };
}

function straight(from, to) {
  const [x, y, u, v] = [from.x + from.w / 2, from.y, to.x - to.w / 2, to.y];
  const bend = Math.max(30, Math.abs(u - x) * 0.45);
  return [x, y, x + bend, y, u - bend, v, u, v];
}

function itemElement(shown, kind, ...children) {
  const { item, x, y, w, h } = shown;
  const ring = svg("rect", { class: "ring", x: -4, y: -4, width: w + 8, height: h + 8, rx: 12 });
  const attributes = { class: `item ${kind}`, transform: `translate(${x - w / 2} ${y - h / 2})`, role: "button", tabindex: "-1", "data-item": item };
  return svg("g", attributes, ring, ...children);
}

const BADGE = { "*": "×", "-": "−", "/": "÷" };

function card(shown) {
  const { w, h, item } = shown;
  const node = nodes[item.slice(1)];
  const frame = svg("rect", { class: "frame", width: w, height: h, rx: node.kind === "constant" ? 14 : 8 });
  if (node.kind === "constant") {
    shown.data = svg("text", { x: w / 2, y: 18, "text-anchor": "middle" });
    return itemElement(shown, "constant", frame, shown.data);
  }
  const parts = [frame];
  let start = 10;
  let columns = 15;
  if (node.kind === "result") {
    const { symbol: typed } = primitives[node.primitive];
    const symbol = BADGE[typed] ?? cut(typed, 9);
    const width = Math.max(24, 10 + 7 * symbol.length);
    parts.push(svg("rect", { class: "badge", x: 5, y: 5, width, height: 17, rx: 5 }));
    parts.push(svg("text", { class: "symbol", x: 5 + width / 2, y: 18 }, symbol));
    start = width + 12;
    columns = Math.floor((w - start - 8) / 7.4);
  }
  const name = cut(nameOf(node.index), columns);
  parts.push(svg("text", { class: node.label ? "name" : "name unnamed", x: start, y: 18 }, name));
  return itemElement(shown, node.kind, ...parts, ...rows(shown));
}

/** The rows data and grad of a card or a closed group. */
function rows(shown) {
  const { w, h } = shown;
  shown.tint = svg("rect", { class: "tint", x: 1.5, y: 45, width: w - 3, height: h - 46.5, rx: 6 });
  shown.data = svg("text", { class: "number", x: w - 10, y: 40 });
  shown.grad = svg("text", { class: "number", x: w - 10, y: 60 });
  return [
    shown.tint, svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }),
    svg("text", { class: "key", x: 10, y: 40 }, "data"), shown.data,
    svg("text", { class: "key", x: 10, y: 60 }, "grad"), shown.grad,
  ];
}

function closedBox(shown) {
  const { w, h, group } = shown;
  const parts = [
    svg("rect", { class: "behind", x: 4, y: -4, width: w, height: h, rx: 8 }),
    svg("rect", { class: "frame", width: w, height: h, rx: 8 }),
    svg("text", { class: "name", x: 10, y: 18 }, `▸ ${group.name}`),
  ];
  if (group.outputs.length === 1) return itemElement(shown, "closed", ...parts, ...rows(shown));
  parts.push(svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }));
  parts.push(svg("text", { class: "key", x: 10, y: 43 }, `${group.outputs.length} outputs`));
  parts.push(svg("text", { class: "key", x: 10, y: 59 }, `${group.members.length} Values`));
  return itemElement(shown, "closed", ...parts);
}

function openBox(shown) {
  const { w, h, group } = shown;
  const frame = svg("rect", { class: "frame", width: w, height: h, rx: 12 });
  return itemElement(shown, "open", frame, svg("text", { class: "name", x: 14, y: 22 }, `▾ ${group.name}`));
}

