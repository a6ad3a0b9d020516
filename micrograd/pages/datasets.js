// ---- Python's random numbers: from one seed the page draws what Python draws --------------------------------------

/** The Mersenne Twister (Matsumoto and Nishimura 1998), seeded and read as Python's random.Random does it. */
class PythonRandom {
  constructor(seed) {
    const state = new Uint32Array(624);
    state[0] = 19650218;
    for (let i = 1; i < 624; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
    let at = 1;
    const stir = (rounds, factor, added) => {
      for (let round = 0; round < rounds; round++) {
        state[at] = (state[at] ^ Math.imul(state[at - 1] ^ (state[at - 1] >>> 30), factor)) + added(at);
        if (++at === 624) {
          state[0] = state[623];
          at = 1;
        }
      }
    };
    stir(624, 1664525, () => seed);
    stir(623, 1566083941, (place) => -place);
    state[0] = 0x80000000;
    this.state = state;
    this.at = 624;
  }

  /** The next 32 bits. */
  word() {
    const { state } = this;
    if (this.at === 624) {
      for (let i = 0; i < 624; i++) {
        const mixed = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
      }
      this.at = 0;
    }
    let word = state[this.at++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  /** random.random(). */
  random() {
    return ((this.word() >>> 5) * 67108864 + (this.word() >>> 6)) / 9007199254740992;
  }

  /** random.uniform(low, high). */
  uniform(low, high) {
    return low + (high - low) * this.random();
  }

  /** random.randrange(count). */
  below(count) {
    const bits = 32 - Math.clz32(count);
    let drawn = this.word() >>> (32 - bits);
    while (drawn >= count) drawn = this.word() >>> (32 - bits);
    return drawn;
  }

  /** random.sample(range(count), count): the numbers in another order. */
  shuffled(count) {
    const pool = Array.from({ length: count }, (_, index) => index);
    return pool.map((_, index) => {
      const drawn = this.below(count - index);
      const chosen = pool[drawn];
      pool[drawn] = pool[count - index - 1];
      return chosen;
    });
  }

  /** A number of the normal distribution (Box and Muller 1958). */
  normal() {
    return Math.sqrt(-2 * Math.log(1 - this.random())) * Math.cos(2 * Math.PI * this.random());
  }
}
// ---- Data sets of two kinds of points, to train on -------------------------------------------------------------------

const COUNT = 100; // points
const DATASETS = {
  moons: (random, kind) => {
    const angle = random.uniform(0, Math.PI);
    return kind ? [Math.cos(angle) - 0.5, Math.sin(angle) - 0.25] : [0.5 - Math.cos(angle), 0.25 - Math.sin(angle)];
  },
  circles: (random, kind) => {
    const angle = random.uniform(0, 2 * Math.PI);
    return [Math.cos(angle), Math.sin(angle)].map((x) => x * (kind ? 0.4 : 1));
  },
  spirals: (random, kind) => {
    const way = 1.6 * Math.sqrt(random.random());
    const angle = Math.PI * way + (kind ? Math.PI : 0);
    return [way * Math.cos(angle), way * Math.sin(angle)];
  },
  "exclusive or": (random, kind) => {
    const [x, y] = [random.uniform(0.1, 1), random.uniform(0.1, 1)];
    const side = random.random() < 0.5 ? 1 : -1;
    return [side * x, (kind ? -side : side) * y];
  },
};

/** The points of a data set, and of which kind each is: 0 or 1. */
function datasetOf(name, noise, seed) {
  const random = new PythonRandom(seed);
  const kinds = Array.from({ length: COUNT }, (_, index) => index % 2);
  const points = kinds.map((kind) => DATASETS[name](random, kind).map((x) => x + noise * random.normal()));
  return { points, kinds };
}
