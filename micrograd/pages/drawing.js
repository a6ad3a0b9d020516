// ---- Drawing -------------------------------------------------------------------------------------------

const graph = find("graph");
const visible = new Map(); // by item: its element, place, size and the texts that change
const edges = []; // each with its element
const edgesOf = new Map(); // by the items that they connect
let itemsOf = []; // by Value, where it is shown
let size = { width: 1, height: 1 };

function draw() {
  const focused = document.activeElement?.dataset?.item;
  for (const id of ["boxes", "edges", "nodes"]) find(id).replaceChildren();
  visible.clear();
  edges.length = 0;
  edgesOf.clear();
  for (const kind of Object.keys(marked)) marked[kind].clear();
  itemsOf = nodes.map((node) => itemOf(node.index));
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
  showStacks();
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
    visible.set(item, shown); // a box before what lies on it
    if (inner) {
      shown.element = openBox(shown);
      shown.home = find("boxes");
      place(inner, shown.x - w / 2 + MARGIN, shown.y - h / 2 + MARGIN + TITLE, routes);
    } else {
      shown.element = shown.group ? closedBox(shown) : card(shown);
      shown.home = find("nodes");
    }
  }
}

/** The edges between items; of several between closed boxes there is one, and it is wider. */
function connect(routes) {
  const between = new Map();
  for (const node of nodes) {
    const head = itemsOf[node.index];
    for (const operand of node.operands) {
      const tail = itemsOf[operand];
      if (tail === head || nodes[operand].folded !== null) continue;
      const key = `${tail}>${head}`;
      const known = between.get(key);
      if (known) known.count++;
      else between.set(key, { tail, head, count: 1 });
    }
  }
  for (const [key, { tail, head, count }] of between) {
    const kind = isFaint(tail) ? "edge faint" : count > 3 && (tail[0] === "g" || head[0] === "g") ? "edge bundle" : "edge";
    const found = (routes.get(key) ?? [straight(visible.get(tail), visible.get(head))]).map((path) => {
      const [x, y, ...rest] = path.map((value) => Math.round(value * 10) / 10);
      return { element: svg("path", { class: kind, d: `M${x} ${y}C${rest.join(" ")}` }), home: find("edges"), ...extent(path) };
    });
    edges.push(...found);
    edgesOf.set(key, found);
  }
}
const isFaint = (item) => (item[0] === "n" ? nodes[item.slice(1)].kind === "constant" : groups[item.slice(1)].kind === "parameters");
const edgesBetween = (operand, user) => edgesOf.get(`${itemsOf[operand]}>${itemsOf[user]}`) ?? [];

function extent(path) {
  const [xs, ys] = [path.filter((_, index) => index % 2 === 0), path.filter((_, index) => index % 2)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { x: (left + right) / 2, y: (top + bottom) / 2, w: right - left, h: bottom - top };
}

/** A bend from one item to another. Where one lies in the other, it leads to the border: to what is not shown there. */
function straight(from, to) {
  const holds = (outer, inner) => Math.abs(outer.x - inner.x) < outer.w / 2 && Math.abs(outer.y - inner.y) < outer.h / 2 && outer.w > inner.w;
  const [x, y] = holds(from, to) ? [from.x - from.w / 2, to.y] : [from.x + from.w / 2, from.y];
  const [u, v] = holds(to, from) ? [to.x + to.w / 2, from.y] : [to.x - to.w / 2, to.y];
  if (holds(from, to) || holds(to, from)) return [x, y, (2 * x + u) / 3, y, (x + 2 * u) / 3, v, u, v];
  const bend = Math.max(30, u > x ? (u - x) * 0.45 : Math.min(160, (x - u) * 0.45)); // back to the left, it stays near
  return [x, y, x + bend, y, u - bend, v, u, v];
}

function itemElement(shown, kind, ...children) {
  const { item, x, y, w, h } = shown;
  const ring = svg("rect", { class: "ring", x: -4, y: -4, width: w + 8, height: h + 8, rx: 12 });
  const attributes = { class: `item ${kind}`, transform: `translate(${x - w / 2} ${y - h / 2})`, role: "button", tabindex: "-1", "data-item": item };
  return svg("g", attributes, ring, ...children);
}

const BADGE = { "*": "×", "-": "−", "/": "÷" };

/** The symbol of an operation, with the plain number that is folded into it: × 2. */
function badgeOf(node) {
  const { symbol, name } = primitives[node.primitive];
  const typed = BADGE[symbol] ?? symbol;
  const [first, second] = node.operands;
  if (node.operands.length !== 2 || !(name in INFIX)) return typed;
  if (nodes[second].folded === node.index) return `${typed} ${inBrackets(nodes[second].data)}`;
  return nodes[first].folded === node.index ? `${readable(nodes[first].data)} ${typed}` : typed;
}

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
  if (node.kind === "result") {
    const symbol = cut(badgeOf(node), 77, 650, 12);
    const width = Math.max(24, 10 + widthOf(symbol, 650, 12));
    parts.push(svg("rect", { class: "badge", x: 5, y: 5, width, height: 17, rx: 5 }));
    parts.push(svg("text", { class: "symbol", x: 5 + width / 2, y: 18 }, symbol));
    start = width + 12;
  }
  const name = cut(nameOf(node.index), w - start - 8, node.label ? 650 : 400);
  parts.push(svg("text", { class: node.label ? "name" : "name unnamed", x: start, y: 18 }, name));
  return itemElement(shown, node.kind, ...parts, ...(node.terms ? termsOf(shown, node.terms.split(", ")) : rows(shown)));
}

/** The two lines of a Value that stands for all terms of a kernel: how many there are, in the place of a number. */
const termsOf = ({ w }, lines) => [
  svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }), ...lines.map((line, index) => svg("text", { class: "key", x: 10, y: 40 + 20 * index }, line)),
];

/** The rows data and grad of a card or a closed group; of a question, the answers of the path taken and of the other. */
function rows(shown) {
  const [first, second] = shown.group && isQuestion(shown.group) ? ["taken", "other"] : ["data", "grad"];
  const { w } = shown;
  const h = heightOf(shown);
  shown.tint = svg("rect", { class: "tint", x: 1.5, y: 45, width: w - 3, height: h - 46.5, rx: 6 });
  shown.data = svg("text", { class: "number", x: w - 10, y: 40 });
  shown.grad = svg("text", { class: "number", x: w - 10, y: 60 });
  return [
    shown.tint, svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }),
    svg("text", { class: "key", x: 10, y: 40 }, first), shown.data,
    svg("text", { class: "key", x: 10, y: 60 }, second), shown.grad,
  ];
}

const CAPTION = 18; // the line below a closed kernel that says its shape
const captionOf = (text, room) => cut(widthOf(text, 400, 12.5) <= room ? text : text.replace(" numbers, ", " × ").replace(" each", ""), room, 400, 12.5);
const heightOf = ({ h, group }) => (group?.kernel ? h - CAPTION : h);

const MOST_SPREAD = 2000; // members of a stack that a browser draws side by side at once
/** How many there are of what a box stands for, as × 4. */
const countOf = (group) => (group.kind === "stack" ? group.children.length : group.kind === "vector" ? group.outputs.length : 0);

function closedBox(shown) {
  const { w, h, group } = shown;
  const outputs = outputsOf(group);
  const count = countOf(group);
  const many = count ? `× ${count}` : "";
  const parts = [
    ...(group.kind === "stack" ? [svg("rect", { class: "behind", x: 8, y: -8, width: w, height: h, rx: 8 })] : []),
    svg("rect", { class: "behind", x: 4, y: -4, width: w, height: h, rx: 8 }),
    svg("rect", { class: "frame", width: w, height: h, rx: 8 }),
    svg("text", { class: "name", x: 10, y: 18 }, cut(`▸ ${closedTitleOf(group)}`, w - 18 - (many ? 8 + widthOf(many, 650, 12) : 0), 650)),
    svg("line", { class: "rule", x1: 0, x2: w, y1: 25.5, y2: 25.5 }),
  ];
  if (many) parts.push(svg("text", { class: "times", x: w - 10, y: 18 }, many));
  if (group.kernel) parts.push(svg("text", { class: "key", x: 10, y: h - 8 }, captionOf(group.kernel, w - 18)));
  if (outputs.length === 1) return itemElement(shown, "closed", ...parts, ...rows(shown));
  return itemElement(shown, "closed", ...parts, ...colours(shown));
}

function openBox(shown) {
  const { w, h, group } = shown;
  const parts = [svg("rect", { class: "frame", width: w, height: h, rx: 12 })];
  if (group.kind !== "stack") return itemElement(shown, "open", ...parts, svg("text", { class: "name", x: 14, y: 22 }, `▾ ${titleOf(group, Math.floor((w - 44) / 7.5))}`));
  const count = group.children.length;
  if (!spread.has(group.index)) parts.unshift(...[8, 4].map((away) => svg("rect", { class: "behind", x: away, y: -away, width: w, height: h, rx: 12 })));
  parts.push(svg("text", { class: "name", x: 14, y: 22 }, spread.has(group.index) ? `▾ ${group.name} × ${count}` : `▾ ${group.name} ${group.shown + 1} of ${count}`));
  const button = (action, x, width, text) => svg("g", { class: "turn", "data-action": action, transform: `translate(${x} 5)` },
    svg("rect", { width, height: 22, rx: 6 }), svg("text", { x: width / 2, y: 15.5 }, text));
  if (w > 250 && count <= MOST_SPREAD) parts.push(button("spread", w - 62, 54, spread.has(group.index) ? "one" : "all"));
  if (!spread.has(group.index) && w > 180) parts.push(button("next", w - 94, 28, "›"), button("previous", w - 126, 28, "‹"));
  return itemElement(shown, "open", ...parts);
}

/** The name of a closed group, with the label of the one Value that comes out of it. */
function closedTitleOf(group) {
  const [output, ...others] = outputsOf(group);
  return group.kind !== "stack" && output !== undefined && !others.length && nodes[output].label ? `${nodes[output].label} = ${group.name}` : group.name;
}
/** The name of an open group, with the formula of a function of the library, or the shape of a kernel, if there is room. */
function titleOf(group, columns) {
  const title = group.about[0] ? `${group.name} = ${group.about[0]}` : group.kernel ? `${group.name}, ${group.kernel}` : group.name;
  return title.length <= columns ? title : group.name;
}
