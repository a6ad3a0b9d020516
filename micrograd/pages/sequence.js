// ---- A program that reads tokens: its blocks, its attention and its predictions, and what the controls move --------------

const hasBlocks = tokens.length > 0 && blocks.length > 0;
const views = [["Blocks", true], ["Scalars", false]];
const viewButtons = views.map(([name, byBlocks]) => html("button", { type: "button", onclick: () => setView(byBlocks) }, name));
let lookedAt = null; // the position of the token that is looked at
let isByBlocks = false;
let blockBoard = null; // the blocks and maps

const BLOCKS = { go: (number) => goToBlock(number), previous: () => goToBlock(block - 1), next: () => goToBlock(block + 1), last: () => lastBlock, play: () => playBlocks(!playingBlocks) };

function startSequence() {
  if (firstWord) setWord(firstWord);
  find("step").after(html("section", { id: "token", "aria-label": "This token", hidden: "" }), html("section", { id: "probabilities", "aria-label": "Probabilities" }));
  watchers.push(showProbabilities);
  if (!hasBlocks) return showProbabilities();
  at = steps.length - 1;
  layBlocks();
  const table = blockTable((cell) => {
    if (isTraining()) viewBlocks();
    goToBlock(isBackAt(block) ? stepBackward(cell) : stepForward(cell));
  }, lookAt);
  const maps = attentionMaps();
  const element = html("div", { id: "sequence", role: "group", "aria-label": "The program by blocks" }, tryPanel(), html("div", { class: "wide" }, table.element),
    ...(maps.length ? [html("h2", {}, "Attention"), html("p", { class: "soft" }, "Each row is a token that reads, each column one that is read. Point at a square for its number."), html("div", { class: "heads" }, ...maps.map((map) => map.element))] : []));
  blockBoard = { element, paint() { table.paint(lookedAt); for (const map of maps) map.paint(); } };
  find("stage").prepend(element);
  document.body.dataset.blocks = "";
  find("find").addEventListener("submit", () => isByBlocks && matches.length && setView(false), true); // before it is found
  block = lastBlock;
  if (passes.recording) return joinRecording();
  find("transport").before(html("div", { id: "modes", role: "group", "aria-label": "What the controls move" }, ...viewButtons));
  setView(true);
}

/** Let the controls go by blocks, with the blocks beside them; or by scalars, with the graph. */
function setView(byBlocks) {
  play(false);
  playBlocks(false);
  isByBlocks = byBlocks;
  controls = byBlocks ? BLOCKS : PASSES;
  document.body.dataset.mode = byBlocks ? "blocks" : "scalars";
  viewButtons.forEach((button, place) => button.setAttribute("aria-pressed", String(views[place][1] === byBlocks)));
  for (const id of ["tools", "stacks", "save"]) find(id).toggleAttribute("hidden", byBlocks);
  blockBoard.element.hidden = !byBlocks;
  graph.classList.toggle("behind", byBlocks); // it keeps its size, and so where it was zoomed to
  find("node").hidden = byBlocks;
  if (byBlocks) {
    block = blockOfStep(at);
    showBlocks();
  } else {
    find("token").hidden = true;
    showLength();
    draw(); // another word has other arrows
    show();
  }
}

/** The last step by blocks that is done at a step of the passes. */
const blockOfStep = (step) => Math.max(0, stepOfBlock.findLastIndex((end) => end <= step));

function goToBlock(number) {
  playBlocks(false);
  stepTo(number);
  say([...find("step").querySelectorAll("p, h2, dt, dd")].map((part) => part.textContent).join(". "));
}
function stepTo(number) {
  block = Math.max(0, Math.min(lastBlock, number));
  const cell = cellAt(block);
  const prediction = cell === null ? -1 : predictions.findIndex(({ position }) => position === blockCells[cell][1]);
  if (prediction >= 0) predicted = prediction;
  showBlocks();
}

/** Show the present step by blocks. */
function showBlocks() {
  at = stepOfBlock[block];
  replay();
  blockBoard.paint();
  find("step").replaceChildren(...explainBlock(openBlock));
  showToken();
  showProbabilities();
  find("slider").max = String(lastBlock);
  find("slider").value = String(block);
  const words = block === 0 ? "start" : isBackAt(block) ? `backward ${block - running.length}/${running.length + 1}` : `forward ${block}/${running.length}`;
  find("count").textContent = words;
  find("slider").setAttribute("aria-valuetext", words);
  for (const id of ["first", "previous"]) find(id).disabled = block === 0;
  for (const id of ["next", "last"]) find(id).disabled = block === lastBlock;
  const [forward, backward] = find("passes").children;
  forward.classList.toggle("on", !isBackAt(block));
  backward.classList.toggle("on", isBackAt(block));
  for (const part of [forward, backward]) part.style.flex = "1";
}

function showToken() {
  find("token").hidden = lookedAt === null;
  find("token").replaceChildren(...(lookedAt === null ? [] : explainToken(lookedAt)));
}

/** Look at a token, or no longer. */
function lookAt(position) {
  lookedAt = lookedAt === position ? null : position;
  const prediction = predictions.findIndex((each) => each.position === lookedAt);
  if (prediction >= 0) predicted = prediction;
  showTried(block);
  if (lookedAt !== null) find("token").scrollIntoView({ block: "nearest" });
  say(find("token").textContent);
}

/** Show the scalars of a cell in the graph, at the step that is shown. */
function openBlock(cell) {
  const index = resultsOf[cell][0];
  (passes.recording ? setMode : setView)(false);
  if (reveal(index)) draw();
  select(index, true);
}

let playingBlocks = 0;
function playBlocks(on) {
  clearTimeout(playingBlocks);
  playingBlocks = 0;
  if (on) {
    if (block === lastBlock) stepTo(0);
    const tick = () => {
      stepTo(block + 1);
      playingBlocks = block < lastBlock ? setTimeout(tick, Number(find("speed").value) / 4) : 0;
      if (!playingBlocks) playBlocks(false);
    };
    playingBlocks = setTimeout(tick, 100);
  }
  document.body.classList.toggle("playing", on);
  find("play").setAttribute("aria-label", on ? "Pause" : "Play");
}
