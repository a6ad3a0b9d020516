// ---- Training in the page: what mg.fit does, with the formulas of the derivative rules -----------------------------

/** Why a step cannot be made; fit raises there. */
class Trouble extends Error {
  constructor(message, example) {
    super(message);
    this.example = example;
  }
}

const SILENT = new Set(["add", "sub", "mul", "neg"]); // of finite numbers, Python makes infinity of them without an error

/** A program that can be run: see laboratory.py for what it is made of. The activation takes the place of that of the neurons. */
function runnable({ nodes: made, activations, root: result }, activation = null) {
  const program = { data: new Float64Array(made.length), contributions: new Float64Array(made.length), operations: [], parameters: [], inputs: [], result };
  const reached = made.map(() => false); // by a parameter
  made.forEach(([kind, ...operands], index) => {
    if (kind === "p") program.parameters.push([index, operands[0]]);
    else if (kind === "x") program.inputs.push([index, operands[0]]);
    else if (kind === "c") program.data[index] = Number(operands[0]);
    else {
      const number = activation !== null && activations.includes(index) ? activation : kind;
      const { name, rules } = primitives[number];
      const given = operands.map((operand, place) => (reached[operand] && rules[place] ? compiled(rules[place]) : null));
      program.operations.push({ index, operands, name, forward: forwardOf(primitives[number]), rules: given, inputs: new Array(operands.length) });
      reached[index] = given.some(Boolean);
    }
    reached[index] ||= kind === "p";
  });
  return program;
}

/** Run a program up to a node, from what its leaves have. */
function run({ data, operations }, until = Infinity) {
  for (const { index, operands, forward } of operations) {
    if (index > until) return;
    data[index] = operands.length < 3 ? forward(data[operands[0]], data[operands[1]]) : forward(...operands.map((operand) => data[operand]));
  }
}

/** Add the gradients of a program's result, times a scale, to those of the parameters. */
function addGradients({ data, contributions, operations, parameters, result }, scale, gradients) {
  contributions.fill(0);
  contributions[result] = scale;
  for (let step = operations.length - 1; step >= 0; step--) {
    const { index, operands, rules, inputs } = operations[step];
    const gradient = contributions[index];
    for (let place = 0; place < operands.length; place++) inputs[place] = data[operands[place]];
    for (let place = 0; place < operands.length; place++) if (rules[place]) contributions[operands[place]] += rules[place](gradient, data[index], inputs);
  }
  for (const [index, parameter] of parameters) gradients[parameter] += contributions[index];
}

/** Where a number that is not finite was born, in words; "" where there is none that the engine would refuse. */
function birthplace({ data, operations, parameters }, silentToo) {
  const given = parameters.find(([index]) => !Number.isFinite(data[index]));
  if (given && silentToo) return `the parameter ${parameterName(given[1])} is ${readable(data[given[0]])}`;
  const born = firstBorn(operations, data, ({ name }) => silentToo || !SILENT.has(name));
  if (!born) return "";
  return `${render([born.name, ...inputsOf(born, data)], {}).text} is ${readable(data[born.index])}`;
}

/** The step of an optimiser, from its formulas. */
function updateOf({ parameter, state }) {
  const next = compiled(parameter);
  const states = state.map(compiled);
  return (inputs) => [next(undefined, undefined, inputs), ...states.map((each) => each(undefined, undefined, inputs))];
}

/** What trains: the examples as programs with an activation. */
function trainerOf({ programs }, activation) {
  const made = programs.map((program) => ({ ...runnable(program, activation), varying: program.varying }));
  return {
    /** Put an example and the numbers of the parameters into its program. */
    load([number, ...rest], numbers) {
      const program = made[number];
      for (const [index, parameter] of program.parameters) program.data[index] = numbers[parameter];
      for (const [index, place] of program.inputs) program.data[index] = rest[place];
      const constants = rest.length - program.varying.length;
      program.varying.forEach((index, place) => (program.data[index] = Number(rest[constants + place])));
      return program;
    },

    /** The gradient of the mean loss of a batch, and that mean. */
    gradient(batch, examples, numbers) {
      const gradients = new Float64Array(numbers.length);
      let total = 0;
      for (const example of batch) {
        const program = this.load(examples[example], numbers);
        run(program);
        const loss = program.data[program.result];
        const refused = birthplace(program, !Number.isFinite(loss));
        if (refused || !Number.isFinite(loss)) throw new Trouble(`the loss of example ${example + 1} is ${readable(loss)}: ${refused || "it was so from the start"}`, example);
        addGradients(program, 1 / batch.length, gradients);
        total += loss;
      }
      return { gradients, loss: total / batch.length };
    },
  };
}

/** The next numbers of the parameters and of the optimiser's states, all of them finite. */
function updated({ numbers, states }, gradients, rate, optimizer, trained) {
  const update = updateOf(optimizer);
  const next = { numbers: Float64Array.from(numbers), states: optimizer.state.map((_, place) => Float64Array.from(states[place] ?? new Float64Array(numbers.length))) };
  for (const parameter of trained) {
    const [number, ...state] = update([numbers[parameter], gradients[parameter], rate, ...next.states.map((column) => column[parameter])]);
    if (![number, ...state].every(Number.isFinite)) throw new Trouble(`the step would set ${parameterName(parameter)} from ${readable(numbers[parameter])} to ${readable(number)}, as its gradient is ${readable(gradients[parameter])}`);
    next.numbers[parameter] = number;
    state.forEach((each, place) => (next.states[place][parameter] = each));
  }
  return next;
}

/** The batches of mg.fit(..., batch_size=size, seed=seed): which examples the step with this number takes. */
function batchesOf(seed, count, size) {
  const each = Math.ceil(count / size); // steps of an epoch
  let random = null;
  let epoch = -1;
  let order = [];
  return (step) => {
    const wanted = Math.floor(step / each);
    if (random === null || wanted < epoch) [random, epoch] = [new PythonRandom(seed), -1];
    for (; epoch < wanted; epoch++) order = random.shuffled(count);
    const start = (step % each) * size;
    return order.slice(start, start + size);
  };
}
