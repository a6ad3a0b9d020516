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
