// ---- Probabilities: the softmax of a prediction as bars, with the right class marked ------------------------------------

const { sequence } = passes;
const { tokens = [], predictions } = sequence;
const MOST_BARS = 8; // at first: the most likely, and the right one
let temperature = 1; // scores are divided by it
let predicted = 0; // which prediction is shown
let areAllBars = false;

/** What a class is called: its name, or its number. */
const className = (index) => sequence.classes[index] ?? String(index);
/** What a token is called: as classes are, where there are as many of them. */
const rowName = (row) => (sequence.rows.length === sequence.classes.length ? sequence.classes[row] : String(row));
/** A fraction as a percentage, in few digits. */
const percent = (fraction) => (Number.isFinite(fraction) ? `${fraction >= 0.0995 || fraction === 0 ? Math.round(100 * fraction) : Number((100 * fraction).toPrecision(1))} %` : readable(fraction));

/** The softmax of scores, at the temperature that is set. */
function softmaxOf(scores) {
  const largest = Math.max(...scores);
  const exponentials = scores.map((score) => FORWARD.exp((score - largest) / temperature));
  const total = exponentials.reduce((sum, number) => sum + number, 0);
  return exponentials.map((number) => number / total);
}
const probabilitiesOf = ({ scores }) => softmaxOf(scores.map((index) => nodes[index].data));

let used = tokens.length; // how many of the tokens there are in the word that is shown
const isUsed = ({ position }) => position === null || position < used;
const isPredicted = ({ scores }) => scores.every(isComputed);

/** Show the bars of the prediction that is chosen. */
function showProbabilities() {
  const prediction = predictions[predicted];
  const parts = [html("p", { class: "eyebrow" }, "Probabilities"), html("h3", { id: "predicts" }, bdi(titleOfPrediction(prediction)))];
  if (predictions.length > 1) parts.push(chooserOfPredictions());
  if (!isPredicted(prediction)) parts.push(html("p", { class: "soft" }, "They are not computed yet."));
  else parts.push(...barsOf(prediction));
  find("probabilities").replaceChildren(...parts);
}

/** What a prediction is of: what follows these tokens. */
function titleOfPrediction({ position }) {
  if (position === null) return predictions.length > 1 ? `Prediction ${predicted + 1} of ${predictions.length}` : "Which class it is";
  const before = tokens.slice(0, position + 1).map(({ row }) => rowName(row));
  return `What follows ${before.join(before.some((name) => name.length > 1) ? " " : "")}`;
}

function chooserOfPredictions() {
  const step = (by) => () => {
    do predicted = (predicted + by + predictions.length) % predictions.length;
    while (!isUsed(predictions[predicted]));
    showProbabilities();
    say(find("predicts").textContent);
    find("probabilities").querySelectorAll(".turns button")[by < 0 ? 0 : 1].focus();
  };
  return html("div", { class: "turns", role: "group", "aria-label": "Which prediction" },
    html("button", { type: "button", class: "link", "aria-label": "Previous prediction", onclick: step(-1) }, "‹"),
    html("button", { type: "button", class: "link", "aria-label": "Next prediction", onclick: step(1) }, "›"));
}

function barsOf({ scores, target, result }) {
  const probabilities = probabilitiesOf(predictions[predicted]);
  const order = probabilities.map((_, index) => index).sort((one, other) => probabilities[other] - probabilities[one]);
  const isSmall = scores.length <= MOST_BARS + 2;
  const shown = areAllBars || isSmall ? order : order.filter((index, place) => place < MOST_BARS || index === target);
  const list = html("ol", { class: "bars", "aria-labelledby": "predicts" }, ...shown.map((index) => barOf(index, probabilities[index], probabilities[order[0]], index === target, scores[index])));
  const parts = [list];
  if (!isSmall) {
    const all = html("button", { type: "button", class: "link", "aria-expanded": String(areAllBars), onclick: () => {
      areAllBars = !areAllBars;
      showProbabilities();
      find("probabilities").querySelector("[aria-expanded]").focus();
    } }, areAllBars ? "Only the most likely" : `All ${scores.length}`);
    parts.push(all);
  }
  if (target !== null && isComputed(result)) parts.push(html("p", { class: "soft" }, `−log of the probability of `, bdi(className(target)), ` is the loss: ${readable(nodes[result].data)}.${temperature === 1 ? "" : ` It is computed at temperature 1; the bars are at ${readable(temperature)}.`}`));
  return parts;
}

function barOf(index, probability, largest, isRight, score) {
  const bar = html("span", { class: "bar" });
  bar.style.width = `${((100 * probability) / largest || 0).toFixed(1)}%`;
  const pushed = hasGradient(score) ? `, gradient of its score ${readable(gradients[score])}` : "";
  return html("li", { class: isRight ? "right" : "", title: `score ${readable(nodes[score].data)}, probability ${readable(probability)}${pushed}` },
    html("span", { class: "class" }, bdi(className(index))), html("span", { class: "track" }, bar),
    html("span", { class: "number" }, percent(probability), ...(isRight ? [html("strong", {}, " ✓"), html("span", { class: "unseen" }, " the correct one")] : [])));
}
