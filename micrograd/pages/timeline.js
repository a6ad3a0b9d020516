// ---- The time of training: going through its snapshots, and beyond the last by training on --------------------------------

const PACE = { 1600: [500, 0], 800: [120, 0], 200: [30, 0], 16: [0, 12] }; // milliseconds between two pictures, and of training before each
const CALM = 500; // milliseconds between two pictures, for those who prefer less motion
const lessMotion = matchMedia("(prefers-reduced-motion: reduce)");
let rolling = 0;

/** Whether a step can be trained after the last snapshot. */
function canTrainOn() {
  const next = stepAfter(trainingRun.snapshots[trainingRun.snapshots.length - 1]);
  return next !== null && !next.trouble;
}

/** One snapshot on: a recorded one, or one that is trained now; false where there is none. */
function onward() {
  if (trainingRun.now === trainingRun.snapshots.length - 1 && !trainOn()) return false;
  trainingRun.now = Math.min(trainingRun.now + 1, trainingRun.snapshots.length - 1); // training on may have dropped some
  return true;
}

function pauseTraining() {
  clearTimeout(rolling);
  rolling = 0;
  document.body.classList.remove("playing");
  showControls();
}

/** Play the training, or pause it: a recording to its end, and what is trained here until somebody stops it. */
function playTraining() {
  if (rolling) return pauseTraining();
  if (trainingRun.now === trainingRun.snapshots.length - 1 && !canTrainOn()) trainingRun.now = 0;
  const tick = () => {
    const [wait, training] = PACE[find("speed").value];
    const start = performance.now();
    const isRecorded = trainingRun.now < trainingRun.snapshots.length - 1;
    let more = onward();
    while (more && !isRecorded && performance.now() - start < training) more = onward();
    if (isRecorded && trainingRun.now === trainingRun.snapshots.length - 1 && !trainingRun.isLive) more = false;
    showTraining();
    if (more) rolling = setTimeout(tick, Math.max(wait, lessMotion.matches ? CALM : 0));
    else {
      pauseTraining();
      sayTraining();
    }
  };
  document.body.classList.add("playing");
  rolling = setTimeout(tick, 30);
  showControls();
}

const TIME = {
  previous: () => TIME.go(trainingRun.now - 1),
  next: () => TIME.go(trainingRun.now + 1),
  last: () => trainingRun.snapshots.length - 1,
  play: playTraining,
  go(index) {
    pauseTraining();
    if (index < trainingRun.snapshots.length) trainingRun.now = Math.max(0, index);
    else onward();
    showTraining();
    sayTraining();
  },
};
