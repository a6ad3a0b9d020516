// ---- Made up words: token after token, each drawn as likely as the program finds it ------------------------------------

/** Numbers from 0 to 1 that look random, the same for the same seed (mulberry32 by Tommy Ettinger). */
function drawsOf(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const canMakeUp = canBeShorter && markBefore.length > 0 && markAfter.length > 0 && !unknown.length;

/** A word that the program makes up with these numbers of the leaves, up to the mark at its end or to the last place. */
function madeUp(draw, data) {
  const before = tokens.map(({ row }) => row);
  const word = [];
  let isWhole = false;
  for (let position = 0; position < tokens.length && !isWhole; position++) {
    setRow(position, position ? word[position - 1] : markBefore[0]);
    computeAll(data);
    const probabilities = softmaxOf(predictionAt(position).scores.map((index) => data[index]));
    let left = draw();
    const next = probabilities.findIndex((probability) => (left -= probability) < 0);
    isWhole = next === markAfter[0];
    if (!isWhole && word.length < MOST_LETTERS) word.push(next < 0 ? probabilities.length - 1 : next);
  }
  before.forEach((row, position) => setRow(position, row));
  return { rows: [...markBefore, ...word, ...markAfter], isWhole };
}
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
