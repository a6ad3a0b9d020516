// ---- Going from step to step --------------------------------------------------------------------------------

function go(step) {
  at = Math.max(0, Math.min(steps.length - 1, step));
  selected = null;
  find("edit")?.classList.remove("changed");
  show();
  const { node } = steps[at];
  if (node !== undefined) bringIntoView(itemsOf[node]);
  if (!playing) say([...find("step").querySelectorAll("p, h2, h3, dt, dd")].map((part) => part.textContent).join(". "));
}

/** How many steps there are, on the slider. */
function showLength() {
  find("slider").max = String(steps.length - 1);
  find("passes").querySelector(".forward").style.flex = String(forwardSteps + 1);
  find("passes").querySelector(".backward").style.flex = String(Math.max(0, steps.length - forwardSteps - 1));
}

const watchers = []; // what else shows the present step
let afterMode = () => {}; // what else there is to do when the controls move the time of training, or no longer
/** Show everything again. */
function show() {
  replay();
  refresh();
  explainStep();
  explainNode();
  showOrder();
  showAsking();
  find("slider").value = String(at);
  const { phase, visit } = steps[at];
  const words = { batch: "gradient of the batch", update: `update ${at - seed - visits.length - 1}/${steps.length - seed - visits.length - 2}`, given: "start", forward: `forward ${at}/${forwardSteps}`, seed: "backward", backward: `backward ${visit + 1}/${visits.length}` }[phase];
  find("count").textContent = words;
  find("slider").setAttribute("aria-valuetext", words);
  for (const id of ["first", "previous"]) find(id).disabled = at === 0;
  for (const id of ["next", "last"]) find(id).disabled = at === steps.length - 1;
  const part = { given: "forward", seed: "backward", batch: "update" }[phase] ?? phase;
  for (const label of find("passes").children) label.classList.toggle("on", label.className.split(" ")[0] === part);
  for (const watch of watchers) watch();
}

function say(text) {
  find("said").textContent = text;
}

/** The step after the next: the steps inside of a closed group are taken together. */
function beatAfter(step) {
  let last = Math.min(step + 1, steps.length - 1);
  const item = itemsOf[steps[last].node];
  if (!isTakenTogether(steps[last], item)) return last;
  while (last + 1 < steps.length && steps[last + 1].phase === steps[last].phase && itemsOf[steps[last + 1].node] === item) last++;
  return last;
}
/** Whether a step is one of those inside of a closed group; each parameter takes its own step of an update. */
const isTakenTogether = ({ phase }, item) => (phase === "forward" || phase === "backward") && item?.[0] === "g";
function beatBefore(step) {
  const { node, phase } = steps[step];
  const item = itemsOf[node];
  let first = step;
  if (isTakenTogether(steps[step], item)) while (first > 0 && steps[first - 1].phase === phase && itemsOf[steps[first - 1].node] === item) first--;
  return Math.max(0, first - 1);
}
const MOST_BEATS = 80; // of a whole play; a larger one takes several together
function beats() {
  let count = 0;
  for (let step = 0; step < steps.length - 1; step = beatAfter(step)) count++;
  return count;
}
function after(count) {
  let step = at;
  for (let beat = 0; beat < count && step < steps.length - 1; beat++) step = beatAfter(step);
  return step;
}

let playing = 0;
function play(on) {
  clearTimeout(playing);
  playing = 0;
  if (on) {
    if (at === steps.length - 1) go(0);
    const tick = () => {
      const target = after(find("speed").value === "16" ? Math.ceil(steps.length / 600) : Math.ceil(beats() / MOST_BEATS));
      if (asks(target)) return play(false);
      go(target);
      playing = at < steps.length - 1 ? setTimeout(tick, Number(find("speed").value)) : 0;
      if (!playing) play(false);
    };
    playing = setTimeout(tick, 100);
  }
  document.body.classList.toggle("playing", on);
  find("play").setAttribute("aria-label", on ? "Pause" : "Play");
}

function manual(step) {
  play(false);
  go(step);
}

const PASSES = { go: manual, previous: () => manual(beatBefore(at)), next: () => asks(beatAfter(at)) || manual(beatAfter(at)), last: () => steps.length - 1, play: () => play(!playing) };
let controls = PASSES; // what the buttons, the slider and the keys move: in a recording, also the time of training

/** Look at a Value; opens the groups around it where asked. */
function select(index, inSight) {
  if (inSight) {
    if (reveal(index)) draw();
    bringIntoView(itemsOf[index]);
    setTabStop(itemsOf[index]);
  }
  selected = index;
  show();
  if (inSight) find("node").scrollIntoView({ block: "nearest" });
}

function jumpTo(item) {
  play(false);
  const group = groupOf(item);
  if (group) return toggle(group.index);
  const index = Number(item.slice(1));
  const node = nodes[index];
  const step = at >= seed ? (node.backward ?? node.complete ?? at) : node.kind === "result" ? node.forward : at;
  go(step);
  selected = index;
  show();
  find("edit")?.scrollIntoView({ block: "nearest" });
}

function toggle(group) {
  changeInPlace(group, () => open.delete(group) || open.add(group));
}

/** Draw again after a change of a group, which stays where it is. */
function changeInPlace(group, change) {
  const anchor = visible.get(`g${group}`);
  const before = { x: anchor.x - anchor.w / 2, y: anchor.y - anchor.h / 2 };
  change();
  hovered = null;
  draw();
  const after = visible.get(`g${group}`);
  view.x += (before.x - after.x + after.w / 2) * view.scale; // what was clicked stays where it is
  view.y += (before.y - after.y + after.h / 2) * view.scale;
  look();
  show();
}

function setAll(on) {
  open.clear();
  if (on) groups.forEach((group) => open.add(group.index));
  hovered = null;
  draw();
  readableView();
  show();
}

