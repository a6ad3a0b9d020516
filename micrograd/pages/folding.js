// ---- Folding: which groups are open, and which member of a stack is shown -----------------------------------

const open = new Set();
const spread = new Set(); // stacks whose members stand side by side
groups.forEach((group, index) => {
  group.index = index;
  group.members = [];
  group.children = [];
  group.shown = 0; // of a stack: which of its children is on top
  if (group.parent !== null) groups[group.parent].children.push(index);
});
nodes.forEach((node) => {
  for (let group = node.group; group !== null; group = groups[group].parent) groups[group].members.push(node.index);
});
groups.forEach((group) => {
  const inside = new Set(group.members);
  const isResult = (index) => (group.kind === "question" ? nodes[index].asked : index === root || nodes[index].users.some((user) => !inside.has(user)));
  const results = group.members.filter(isResult);
  group.outputs = results.filter((index) => nodes[index].folded === null);
});

const isStack = (group) => groups[group].kind === "stack";
const onTop = (stack) => groups[stack].children[groups[stack].shown];
/** Whether a group is a member of a stack that is looked through one by one: then it has no frame of its own. */
const isLeafed = (group) => groups[group].parent !== null && isStack(groups[group].parent) && !spread.has(groups[group].parent);
const isOpen = (group) => isLeafed(group) || open.has(group);
const groupOf = (item) => (item[0] === "g" ? groups[item.slice(1)] : null);

/** The outermost closed group around a Value, or the Value itself. A member that its stack does not show is in the stack. */
function itemOf(index) {
  const { folded } = nodes[index];
  if (folded !== null) return itemOf(folded);
  let item = `n${index}`;
  let inner = null;
  for (let group = nodes[index].group; group !== null; inner = group, group = groups[group].parent) {
    if (!isOpen(group) || (isStack(group) && !spread.has(group) && inner !== onTop(group))) item = `g${group}`;
  }
  return item;
}

/** The outputs that a closed group shows: those of the member on top, where it is a stack. */
const outputsOf = (group) => (group.kind === "stack" ? outputsOf(groups[onTop(group.index)]) : group.outputs);

/** Show a Value: open the groups around it, and turn stacks to it; or show a group around it. Whether anything was closed. */
function reveal(index, upTo = null) {
  let changed = false;
  let inner = upTo;
  for (let group = upTo === null ? nodes[index].group : groups[upTo].parent; group !== null; inner = group, group = groups[group].parent) {
    changed ||= !isOpen(group);
    open.add(group);
    if (isStack(group) && onTop(group) !== inner) {
      groups[group].shown = groups[group].children.indexOf(inner);
      changed = true;
    }
  }
  return changed;
}

const READABLE = 0.67; // the scale at which the smallest text of a card is 8 pixels high

/** Open what leaves the whole readable, of a small graph everything: from the outside to the inside, in program order. */
function openWhatFits() {
  const { width, height } = bounds();
  const isReadable = () => scaleFor(arrange(0), width, height) >= READABLE;
  const isSmall = nodes.length <= OPEN_UNASKED && !passes.recording;
  const isWorth = (group) => !isQuestion(group) && (isSmall ? !isOfLeaves(group) : isWorthOpening(group));
  const wait = groups.filter((group) => group.parent === null && isWorth(group));
  for (let tries = 0; wait.length && (isSmall || tries < 40); tries++) {
    const together = wait[0].kind === "neuron" ? wait.filter(({ kind }) => kind === "neuron") : [wait[0]]; // all or none
    for (const group of together) {
      wait.splice(wait.indexOf(group), 1);
      open.add(group.index);
    }
    if (!isReadable()) together.forEach(({ index }) => open.delete(index));
    else wait.push(...together.flatMap(inside).map((index) => groups[index]).filter(isWorth));
  }
}
/** Whether a box holds leaves: the parameters, or the inputs of a layer. */
const isOfLeaves = ({ kind }) => kind === "parameters" || kind === "inputs";
/** Whether a box stands for a path that was not taken: it holds what was asked. Those of a loop are in a stack. */
const isQuestion = ({ kind, children }) => kind === "question" || (kind === "stack" && groups[children[0]].kind === "question");
const isWorthOpening = (group) => !["parameters", "inputs", "dot", "sum", "vector", "part"].includes(group.kind) && !isLargeKernel(group);
/** Whether there is no more to see in a box: a Value that stands for many terms, or just a row of what is done to each. */
const isLargeKernel = ({ kernel, children, members }) => kernel !== "" && (members.some((index) => nodes[index].terms) || (children.length === 1 && groups[children[0]].kind === "vector" && groups[children[0]].members.length === members.length));
const inside = (group) => (group.kind === "stack" ? groups[onTop(group.index)].children : group.children);
