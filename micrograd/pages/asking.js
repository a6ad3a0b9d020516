// ---- You compute it: before a visit the page asks for one of its contributions, and says what a wrong answer was made of --------

const canAsk = passes.backward && !passes.recording;
let isAsking = false;
let question = null; // the step that comes after its answer, the place of the operand, and how often it was tried
const score = { asked: 0, right: 0 };

/** The contribution that a step asks for; null where it has none, or is taken together with others in a closed group. */
function questionAt(step) {
  const { phase, visit: number, node } = steps[step];
  if (phase !== "backward" || itemsOf[node]?.[0] === "g") return null;
  const places = visits[number].contributions.flatMap((contribution, place) => (contribution === null || visits[number].locals[place] === null ? [] : [place]));
  return places.length ? { step, place: places[number % places.length], tries: 0 } : null;
}

/** Ask on the way to a step, where there is something to ask; true where the way ends there. */
function asks(target) {
  if (!isAsking || isWrong) return false;
  if (question) {
    answerBox()?.focus();
    return true;
  }
  for (let step = at + 1; step <= target; step++) {
    const found = questionAt(step);
    if (!found) continue;
    go(step - 1);
    question = found;
    showAsking();
    answerBox().focus();
    say(askingPanel.querySelector("label").textContent);
    return true;
  }
  return false;
}

/** A number, or a product such as 2 × -3, as a learner writes it; NaN for anything else. */
function numberOf(text) {
  const factors = text.trim().replace(/−/g, "-").split(/[*×]/).map((part) => part.trim().replace(/^\((.*)\)$/, "$1"));
  return factors.some((part) => part === "") ? NaN : factors.map(Number).reduce((product, factor) => product * factor, 1);
}
const isNear = (answer, number) => Math.abs(answer - number) <= 0.005 * Math.abs(number); // the page shows four digits

/** The numbers of the question. */
function asked() {
  const visit = visits[steps[question.step].visit];
  const { place } = question;
  const operand = nodes[visit.node].operands[place];
  return { node: nodes[visit.node], operand, place, gradient: gradients[visit.node], local: visit.locals[place], contribution: visit.contributions[place], contributions: visit.contributions };
}

/** What a wrong answer was probably made of. */
function mistakeIn(answer, { node, operand, place, gradient, local, contribution, contributions }) {
  const [own, name] = [nameOf(node.index), operandNames(node)[place]];
  if (Number.isNaN(answer)) return "That is no number. Write one such as 0.5, or a product such as 2 * -3.";
  if (isNear(answer, -contribution)) return "The size is right, the sign is not.";
  if (isNear(answer, local)) return `That is the local derivative alone. Multiply it by the gradient of ${own}, ${readable(gradient)}.`;
  if (isNear(answer, gradient)) return `That is the gradient of ${own} alone. Multiply it by the local derivative.`;
  if (isNear(answer, gradient + local)) return "Gradient and local derivative are multiplied, not added.";
  if (isNear(answer, gradients[operand] + contribution)) return `That is what ${name} has afterwards. Asked is the contribution that ${own} adds.`;
  const other = contributions.findIndex((each, index) => index !== place && each !== null && isNear(answer, each));
  if (other >= 0) return `That is the contribution of ${operandNames(node)[other]}.`;
  return `Not ${readable(answer)}. It is the gradient of ${own}, ${readable(gradient)}, times the local derivative ${partial(own, name)}.`;
}

function checkAnswer(event) {
  event.preventDefault();
  const answer = numberOf(answerBox().value);
  const about = asked();
  const { gradient, local, contribution, place, node } = about;
  if (!Number.isNaN(answer)) question.tries++;
  if (isNear(answer, contribution)) return settle(question.tries === 1, `Right: ${inBrackets(gradient)} × ${inBrackets(local)} = ${readable(contribution)}.`);
  const { text } = question.tries > 1 ? localFormula(node, place) : { text: "" };
  told(mistakeIn(answer, about) + (text && !Number.isNaN(answer) ? ` The local derivative is ${text}.` : ""), "warning");
  answerBox().select();
}

/** Go on to the step that was asked about. */
function settle(isRight, words) {
  score.asked++;
  score.right += isRight;
  const { step } = question;
  question = null;
  go(step);
  told(words, "soft");
  (find("next").disabled ? find("last") : find("next")).focus();
}

const answerBox = () => askingPanel.querySelector("input");
function told(words, kind) {
  askingText.textContent = `${words}${score.asked ? ` ${score.right} of ${score.asked} at the first try.` : ""}`;
  askingText.className = kind;
}

function questionForm() {
  const { node, operand, place, gradient } = asked();
  const own = nameOf(node.index);
  const again = node.operands.indexOf(operand) < place ? ", once more" : "";
  const label = html("label", { for: "answer" }, "How much does ", bdi(own), " add to the gradient of ", bdi(operandNames(node)[place]), `${again}?`);
  const numbers = node.operands.map((index) => inBrackets(nodes[index].data));
  return html("form", { onsubmit: checkAnswer },
    math(bdi(own), " = ", bdi(call(node, operandNames(node))), html("br"), "= ", call(node, numbers), " = ", readable(node.data), html("br"), bdi(partial(rootName, own)), " = ", readable(gradient)),
    label,
    html("div", { class: "answer" }, html("input", { id: "answer", type: "text", autocomplete: "off" }),
      html("button", { type: "submit", class: "primary" }, "Check"),
      html("button", { type: "button", onclick: () => settle(false, `It was ${readable(asked().contribution)}.`) }, "Show it")));
}

const askingButton = html("button", { type: "button", "aria-pressed": "false", onclick: () => setAsking(!isAsking) }, "You compute it");
const askingText = html("p", { class: "soft", role: "status" });
const askingPlace = html("div", {});
const askingPanel = html("section", { id: "asking", "aria-label": "You compute it" }, askingButton, askingText, askingPlace);
if (canAsk) find("order").after(askingPanel);

function setAsking(on) {
  isAsking = on;
  question = null;
  play(false);
  if (on && at < seed) go(seed);
  if (on) find("step").before(askingPanel); // on a small screen the question would be out of sight
  else find("order").after(askingPanel);
  askingButton.focus();
  told(on ? "Press Next: the page asks for a contribution before it shows it." : "The page asks for the contributions of the backward pass.", "soft");
  showAsking();
}

/** The question, as long as the page is where it was asked. */
function showAsking() {
  if (question && (at !== question.step - 1 || isWrong)) question = null;
  askingButton.setAttribute("aria-pressed", String(isAsking));
  askingButton.disabled = isWrong;
  const shown = askingPlace.dataset.step;
  if (String(question?.step) === shown) return;
  askingPlace.dataset.step = String(question?.step);
  askingPlace.replaceChildren(...(question ? [questionForm()] : []));
}
told("The page asks for the contributions of the backward pass.", "soft");

