// ---- Going from step to step --------------------------------------------------------------------------------

function go(step) {
  at = Math.max(0, Math.min(steps.length - 1, step));
  selected = null;
  find("edit")?.classList.remove("changed");
  show();
  const { node } = steps[at];
  if (node !== undefined) bringIntoView(itemOf(node));
  if (!playing) say([...find("step").querySelectorAll("p, h2, h3, dt, dd")].map((part) => part.textContent).join(". "));
}

/** Show everything anew. */
function show() {
  replay();
  refresh();
  explainStep();
  explainNode();
  find("slider").value = String(at);
  const { phase, turn } = steps[at];
  const words = { batch: "gradient of the batch", update: `update ${at - seed - turns.length - 1}/${steps.length - seed - turns.length - 2}`, given: "start", forward: `forward ${at}/${forwardSteps}`, seed: "backward", backward: `backward ${turn + 1}/${turns.length}` }[phase];
  find("count").textContent = words;
  find("slider").setAttribute("aria-valuetext", words);
  for (const id of ["first", "previous"]) find(id).disabled = at === 0;
  for (const id of ["next", "last"]) find(id).disabled = at === steps.length - 1;
  const part = { given: "forward", seed: "backward", batch: "update" }[phase] ?? phase;
  for (const label of find("passes").children) label.classList.toggle("on", label.className.split(" ")[0] === part);
}

function say(text) {
  find("said").textContent = text;
}

let playing = 0;
function play(on) {
  clearTimeout(playing);
  playing = 0;
  if (on) {
    if (at === steps.length - 1) go(0);
    const tick = () => {
      const stride = find("speed").value === "16" ? Math.ceil(steps.length / 600) : 1;
      go(at + stride);
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

const PASSES = { go: manual, previous: () => manual(at - 1), next: () => manual(at + 1), last: () => steps.length - 1, play: () => play(!playing) };
let controls = PASSES; // what the buttons, the slider and the keys move: in a film, also the time of training

/** Look at a Value; opens the groups around it where asked. */
function select(index, reveal) {
  if (reveal) {
    let closed = false;
    for (let group = nodes[index].group; group !== null; group = groups[group].parent) {
      closed ||= !open.has(group);
      open.add(group);
    }
    if (closed) draw();
    bringIntoView(itemOf(index));
    setTabStop(itemOf(index));
  }
  selected = index;
  show();
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
}

function toggle(group) {
  const anchor = visible.get(`g${group}`);
  const before = { x: anchor.x - anchor.w / 2, y: anchor.y - anchor.h / 2 };
  if (!open.delete(group)) open.add(group);
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
  fit();
  show();
}

