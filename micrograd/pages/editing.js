// ---- Editing a leaf ---------------------------------------------------------------------------------------

function editor(node) {
  if (unknown.length) {
    return html("p", { class: "soft" }, `Numbers cannot be changed here: this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}.`);
  }
  const input = html("input", { type: "text", inputmode: "text", "aria-label": `A new number for ${nameOf(node.index)}`, value: String(node.data), autocomplete: "off" });
  const problem = html("p", { class: "warning", role: "alert", hidden: "" });
  const apply = (number) => {
    try {
      setLeaf(node, number);
      problem.hidden = true;
      form.classList.remove("changed");
    } catch (error) {
      problem.textContent = `${error.message}. Nothing was changed.`;
      problem.hidden = false;
    }
  };
  const submit = (event) => {
    event.preventDefault();
    const text = input.value.trim().replace("−", "-");
    apply(text === "" ? NaN : Number(text));
  };
  const restore = () => {
    input.value = String(node.recorded);
    apply(node.recorded);
  };
  const form = html("form", { id: "edit", onsubmit: submit, oninput: () => form.classList.add("changed") }, input, html("button", { type: "submit", class: "primary" }, "Set"),
    html("button", { type: "button", onclick: restore }, "Restore"));
  return html("div", {}, form, problem);
}

/** Give a leaf another number and compute both passes again, or change nothing and throw. */
function setLeaf(node, number) {
  if (!Number.isFinite(number) && !Object.is(number, node.recorded)) throw new RangeError("A finite number is needed, such as 2.5 or -1e-3");
  setNumbers(new Map([[node.index, number]]));
  selected = node.index;
  show();
  say(`${nameOf(node.index)} is ${readable(number)} now; ${rootInWords} is ${readable(nodes[root].data)}.`);
}

function setNumbers(numbers, refused = refuse) {
  const data = Float64Array.from(nodes, (node) => node.data);
  for (const [index, number] of numbers) data[index] = number;
  forwardPass(data, refused);
  const next = passes.backward ? backwardPass(data, refused) : [];
  nodes.forEach((node) => (node.data = data[node.index]));
  setVisits(next);
  noteBirths();
}

