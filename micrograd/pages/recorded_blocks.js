// ---- The snapshots of a training: at each the blocks, the maps, and words that are made up then --------------------------

const MADE_UP = 10; // words at each snapshot
const isTraining = () => document.body.dataset.mode === "training";
const blocksButton = html("button", { type: "button", "aria-pressed": "false", onclick: () => viewBlocks() }, "Blocks");
const madeUpPanel = html("section", { id: "made-up", "aria-label": "Words made up at this moment", hidden: "" });

/** Let a recording show the blocks at each snapshot of the training, and offer the steps through them. */
function joinRecording() {
  find("recording").after(madeUpPanel);
  watchers.push(() => isTraining() && showSnapshot());
  afterMode = (training) => {
    playBlocks(false);
    isByBlocks = false;
    if (!blocksButton.isConnected) find("modes").children[0].after(blocksButton);
    find("modes").children[2].textContent = "Scalars";
    blocksButton.setAttribute("aria-pressed", "false");
    blockBoard.element.hidden = !training;
    graph.classList.toggle("behind", training);
    for (const id of ["tools", "save"]) find(id).toggleAttribute("hidden", training);
    madeUpPanel.hidden = !training || !canMakeUp;
    find("token").hidden = true;
    blockBoard.paint();
    if (!training) draw();
  };
}

/** Let the controls of a recording go by blocks, at the moment that is shown. */
function viewBlocks() {
  setMode(false);
  setView(true);
  find("modes").children[2].setAttribute("aria-pressed", "false");
  blocksButton.setAttribute("aria-pressed", "true");
}

/** Show the blocks after both passes, and words made up with the numbers of the moment: each of the same draws at all. */
function showSnapshot() {
  block = lastBlock;
  at = steps.length - 1;
  blockBoard.paint();
  showToken();
  if (!canMakeUp) return;
  const data = Float64Array.from(nodes, (node) => node.data);
  const words = Array.from({ length: MADE_UP }, (_, seed) => madeUp(drawsOf(seed), data)).map(({ rows, isWhole }) => `${lettersOf(rows)}${isWhole ? "" : "…"}` || "nothing");
  madeUpPanel.replaceChildren(html("p", { class: "eyebrow" }, "Made up at this moment"), html("ol", {}, ...words.map((word) => html("li", {}, bdi(word)))));
}

/** Show a word or a temperature that was tried: at a step by blocks, or at the moment of the training. */
function showTried(step = lastBlock) {
  if (isTraining()) return showTraining();
  block = step;
  showBlocks();
}
