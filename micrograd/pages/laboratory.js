// ---- The laboratory: other data, another optimiser, another rate, and training goes on in the page ----------------------

const NAMES = { recorded: "as recorded", own: "my own points" };

/** The controls of a training in the page. changed is called after each change. */
function laboratoryPanel(changed) {
  if (refusal) return { element: html("p", { class: "soft" }, `This page replays the training, but cannot go on with it: ${refusal}.`), update: () => {} };
  const { classes, optimizers, activations } = lessons;
  const hasPlane = board !== null && classes.length > 1;
  const field = (text, input) => {
    input.id = `setting-${text.toLowerCase().replace(" ", "-")}`;
    return html("div", {}, html("label", { for: input.id }, text), input);
  };
  const select = (label, options, apply) => {
    const input = html("select", {}, ...options.map(([value, text]) => html("option", { value }, text)));
    input.addEventListener("change", () => apply(input.value));
    return [input, field(label, input)];
  };
  const problem = html("p", { class: "warning", role: "alert", hidden: "" });
  const number = (label, isRight, wanted, apply, mode = "decimal") => {
    const input = html("input", { type: "text", inputmode: mode, autocomplete: "off" });
    input.addEventListener("change", () => {
      const given = input.value.trim() === "" ? NaN : Number(input.value.trim().replace("−", "-"));
      problem.hidden = isRight(given);
      problem.textContent = `${label} must be ${wanted}. Nothing was changed.`;
      if (isRight(given)) apply(given);
      else update();
    });
    return [input, field(label, input)];
  };
  const go = (action) => (value) => {
    action(value);
    changed();
  };
  const sets = ["recorded", ...Object.keys(DATASETS), "own"].map((name) => [name, NAMES[name] ?? name]);
  const [data, dataField] = select("Data", sets, go((name) => restart({ data: name })));
  const [noise, noiseField] = number("Noise", (x) => x >= 0 && x <= 1, "a number from 0 to 1", go((x) => restart({ noise: x })));
  const [batch, batchField] = number("Batch", (x) => Number.isInteger(x) && x >= 1 && x <= 1e6, "a whole number from 1 on", go((x) => branch({ batch: x })), "numeric");
  const [optimizer, optimizerField] = select("Optimiser", optimizers.map(({ name }, index) => [index, name]), go((index) => branch({ optimizer: Number(index) })));
  const [rate, rateField] = number("Rate", (x) => Number.isFinite(x) && x >= 0, "a finite number that is not negative", go((x) => branch({ rate: x })));
  const choices = [["", "as recorded"], ...Object.keys(activations).map((name) => [name, name === "identity" ? "none" : name])];
  const [activation, activationField] = select("Activation", choices, go((name) => restart({ activation: name || null })));
  const [seed, seedField] = number("Seed", (x) => Number.isInteger(x) && x >= 0 && x < 2 ** 32, "a whole number from 0 to 4294967295", go((x) => restart({ seed: x })), "numeric");
  activationField.hidden = !lessons.programs.some((program) => program.activations.length);
  const kind = html("select", {}, html("option", { value: "1" }, "blue ●"), html("option", { value: "0" }, "orange ■"));
  const undo = html("button", { type: "button", onclick: () => {
    trainingRun.own.points.pop();
    trainingRun.own.kinds.pop();
    restart();
    changed();
  } }, "Take the last away");
  const own = html("div", { class: "row" }, field("Next point", kind), undo);
  const again = html("button", { type: "button", onclick: go(() => restart()) }, "Start again");
  const drawn = html("button", { type: "button", onclick: go(() => {
    trainingRun.drawn = (trainingRun.drawn ?? -1) + 1;
    trainingRun.weights = drawnWeights(trainingRun.drawn);
    restart();
  }) }, "Other weights");
  const back = html("button", { type: "button", onclick: go(rewind) }, "Back to the recording");
  const words = html("p", { class: "soft" });
  const fields = html("div", { class: "fields" }, ...(hasPlane ? [dataField, noiseField] : []), batchField, optimizerField, rateField, activationField, seedField);
  const element = html("section", { id: "laboratory", "aria-label": "Laboratory" }, html("h3", {}, "Laboratory: train it here"), fields, own, problem, html("div", { class: "row" }, again, drawn, back), words);

  /** Show the settings as they are. */
  function update() {
    const { settings } = trainingRun;
    for (const [input, value] of [[data, settings.data], [noise, settings.noise], [batch, settings.batch], [optimizer, settings.optimizer], [rate, rateAfter(snapshotNow())], [activation, settings.activation ?? ""], [seed, settings.seed]]) {
      if (input !== document.activeElement || input.value === "" || input.tagName === "SELECT" || !problem.hidden) input.value = String(value);
    }
    noiseField.hidden = settings.data === "recorded" || settings.data === "own";
    own.hidden = settings.data !== "own";
    undo.disabled = !trainingRun.own.points.length;
    back.disabled = !trainingRun.isLive;
    words.textContent = trainingRun.weights ? `The weights are those of random.seed(${trainingRun.drawn}).` : "";
    words.hidden = !trainingRun.weights;
  }
  return { element, update, kind: () => Number(kind.value) };
}
