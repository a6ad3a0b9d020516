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
