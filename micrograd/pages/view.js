// ---- View: pan, zoom, fit -------------------------------------------------------------------------------------

const view = { x: 0, y: 0, scale: 1 };
const bounds = () => graph.getBoundingClientRect();

function look() {
  find("world").setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.scale.toFixed(4)})`);
  graph.classList.toggle("far", view.scale < 0.3);
  graph.classList.toggle("farther", view.scale < 0.12);
  if (visible.size > FEW) cull();
}

/** A function that says whether something of the drawing is out of sight. */
function outOfSight() {
  const { width, height } = bounds();
  const [left, top, right, bottom] = [-view.x, -view.y, width - view.x, height - view.y].map((edge) => edge / view.scale);
  return ({ x, y, w, h }) => x + w / 2 < left || x - w / 2 > right || y + h / 2 < top || y - h / 2 > bottom;
}

/** Leave out what is out of sight: of thousands of cards, the browser then handles some dozens. */
function cull() {
  const isAway = outOfSight();
  for (const shown of [...visible.values(), ...edges]) {
    const away = shown.item !== tabStop && shown.home !== find("boxes") && isAway(shown); // boxes lie in each other, in order
    if (away === shown.away) continue;
    shown.away = away;
    if (away) shown.element.remove();
    else shown.home.append(shown.element);
    if (!away && shown.item && shown.version !== version) paint(shown);
  }
}

function zoom(factor, x = bounds().width / 2, y = bounds().height / 2) {
  cancelAnimationFrame(moving);
  const scale = Math.max(0.004, Math.min(4, view.scale * factor));
  view.x = x - ((x - view.x) / view.scale) * scale;
  view.y = y - ((y - view.y) / view.scale) * scale;
  view.scale = scale;
  look();
}

function fit() {
  const { width, height } = bounds();
  const scale = scaleFor(size, width, height);
  moveTo({ scale, x: (width - size.width * scale) / 2, y: (height - tools() + room() - size.height * scale) / 2 });
}
/** The scale at which something is in sight as a whole. */
const scaleFor = (whole, width, height) => Math.max(0.004, Math.min(1.35, (width - 2 * room()) / whole.width, (height - room() - tools()) / whole.height));
const narrow = matchMedia("(max-width: 480px)");
const room = () => (narrow.matches ? 13 : 24); // around the graph; with less than 12, a card that is looked at is moved
const low = matchMedia("(max-height: 480px) and (max-width: 820px)"); // the page then scrolls as a whole
const tools = () => (low.matches ? room() : narrow.matches ? 58 : 64); // the room below, where buttons lie on the graph

/** On a phone, a graph that cannot be read as a whole otherwise gets some of the room of the words. */
function divideRoom() {
  document.body.classList.remove("roomy");
  const { width, height } = bounds();
  document.body.classList.toggle("roomy", !passes.recording && scaleFor(arrange(0), width, height) < READABLE);
}

/** Everything where that can be read, else as much as can be: the upper part, or the step's place. */
function readableView() {
  const { width, height } = bounds();
  if (scaleFor(size, width, height) >= READABLE) return fit();
  view.scale = READABLE;
  const left = (width - size.width * READABLE) / 2;
  if (left >= room()) return moveTo({ scale: READABLE, x: left, y: room() });
  centre(visible.get(itemsOf[steps[Math.min(Math.max(at, 1), steps.length - 1)].node ?? root]));
}
const firstView = () => (passes.recording ? fit() : readableView());

function centre(shown) {
  const { width, height } = bounds();
  moveTo({ scale: view.scale, x: width / 2 - shown.x * view.scale, y: height / 2 - shown.y * view.scale });
}

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const MOVE = 260; // milliseconds
let moving = 0;
let isShown = false; // before the first view there is nothing to move from

/** Move the camera, smoothly for those who do not mind. */
function moveTo(target) {
  cancelAnimationFrame(moving);
  const from = { ...view };
  if (calm.matches || !isShown || document.hidden || (playing && Number(find("speed").value) < MOVE)) {
    Object.assign(view, target);
    return look();
  }
  const start = performance.now();
  const frame = (now) => {
    const fraction = Math.min(1, Math.max(0, now - start) / MOVE);
    const eased = fraction * fraction * (3 - 2 * fraction);
    for (const key of ["scale", "x", "y"]) view[key] = from[key] + (target[key] - from[key]) * eased;
    look();
    moving = fraction < 1 ? requestAnimationFrame(frame) : 0;
  };
  moving = requestAnimationFrame(frame);
}

function bringIntoView(item) {
  const shown = visible.get(item);
  const { width, height } = bounds();
  const [x, y] = [shown.x * view.scale + view.x, shown.y * view.scale + view.y];
  const [w, h] = [Math.min((shown.w / 2) * view.scale + 12, width / 2), Math.min((shown.h / 2) * view.scale + 12, height / 2)];
  if (x < w || y < h || x > width - w || y > height - h - 40) centre(shown);
}

const pointers = new Map();
let dragged = false;
graph.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY });
  if (pointers.size === 1) dragged = false;
});
graph.addEventListener("pointermove", (event) => {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) return;
  if (Math.hypot(event.clientX - pointer.startX, event.clientY - pointer.startY) > 5 && !dragged) {
    dragged = true;
    graph.setPointerCapture(event.pointerId);
    graph.classList.add("dragged");
  }
  const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
  if (others.length) {
    const [other] = others;
    const gap = (x, y) => Math.max(10, Math.hypot(x - other.x, y - other.y));
    const { left, top } = bounds();
    zoom(gap(event.clientX, event.clientY) / gap(pointer.x, pointer.y), (pointer.x + other.x) / 2 - left, (pointer.y + other.y) / 2 - top);
  }
  if (dragged) {
    cancelAnimationFrame(moving);
    view.x += (event.clientX - pointer.x) / (others.length + 1);
    view.y += (event.clientY - pointer.y) / (others.length + 1);
    look();
  }
  pointer.x = event.clientX;
  pointer.y = event.clientY;
});
let lifted = { x: 0, y: 0 }; // where a finger last left the graph; what a browser says of its click may have been moved
for (const name of ["pointerup", "pointercancel"]) {
  graph.addEventListener(name, (event) => {
    lifted = { x: event.clientX, y: event.clientY };
    pointers.delete(event.pointerId);
    graph.classList.remove("dragged");
  });
}
graph.addEventListener("wheel", (event) => {
  if (low.matches && !event.ctrlKey) return; // it scrolls the page
  event.preventDefault();
  const { left, top } = bounds();
  const lines = event.deltaMode === 1 ? 30 : 1;
  zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - left, event.clientY - top);
}, { passive: false });

