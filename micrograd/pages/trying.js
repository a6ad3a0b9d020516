// ---- Trying: a word and a temperature, as one likes; both change what is shown at once ---------------------------------

function tryPanel() {
  const input = html("input", { id: "word", type: "text", value: lettersOf(wordNow()), autocomplete: "off", autocapitalize: "none", spellcheck: "false", dir: "auto" });
  const problem = html("p", { class: "warning", role: "alert", hidden: "" });
  const type = () => {
    try {
      setWord(rowsOf(input.value));
      problem.hidden = true;
      lookedAt = lookedAt !== null && lookedAt < used ? lookedAt : null;
      predicted = isUsed(predictions[predicted]) ? predicted : 0;
      showTried();
      say(`${rootInWords} is ${readable(nodes[root].data)}`);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problem.textContent = `${error.message}.`;
      problem.hidden = false;
    }
  };
  input.addEventListener("input", type);
  const draw = drawsOf(1);
  const makeUp = () => {
    const { rows } = madeUp(draw, Float64Array.from(nodes, (node) => node.data));
    input.value = lettersOf(rows);
    type();
  };
  const degree = html("output", { for: "temperature" }, "1");
  const slider = html("input", { id: "temperature", type: "range", min: "0.1", max: "3", step: "0.1", value: "1", oninput: () => {
    temperature = Number(slider.value);
    degree.textContent = readable(temperature);
    showTried(block);
  } });
  const fields = [html("div", {}, html("label", { for: "temperature" }, "Temperature ", degree), slider)];
  if (unknown.length) fields.unshift(html("p", { class: "soft" }, `Nothing else can be typed: this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}.`));
  else fields.unshift(html("div", {}, html("label", { for: "word" }, canBeShorter ? `Word, up to ${MOST_LETTERS}` : `Word of ${MOST_LETTERS}`), input));
  if (canMakeUp) fields.push(html("button", { type: "button", id: "make-up", onclick: makeUp }, "Make one up"));
  return html("div", { id: "try", role: "group", "aria-label": "Try another" }, html("div", { class: "fields" }, ...fields), problem);
}
