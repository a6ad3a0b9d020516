// ---- Find --------------------------------------------------------------------------------------------------------

let matches = [];
let match = -1;
function search() {
  const wanted = find("find-text").value.trim().toLowerCase();
  const named = (index) => (nodes[index].kind === "constant" && !nodes[index].label ? "" : fullNameOf(index).toLowerCase());
  matches = wanted ? nodes.map((node) => node.index).filter((index) => named(index).includes(wanted)) : [];
  matches.sort((one, other) => (named(other) === wanted) - (named(one) === wanted));
  match = -1;
  mark("found", [...new Set(matches.map((index) => itemsOf[index]))].map((item) => visible.get(item)));
  find("find-count").textContent = wanted ? `${matches.length}` : "";
}
find("find-text").addEventListener("input", search);
find("find").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!matches.length) return say("Nothing has this label.");
  match = (match + 1) % matches.length;
  select(matches[match], true);
  find("find-count").textContent = `${match + 1} of ${matches.length}`;
  say(nodeLabel(matches[match]));
});

