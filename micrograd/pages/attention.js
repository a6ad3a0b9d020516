// ---- Attention: a map for each head, of which token reads which ---------------------------------------------------------

const tokenName = (position) => rowName(tokens[position].row);
const layersOfHeads = new Set((sequence.heads ?? []).map(({ layer }) => layer));
const headName = ({ layer, head }) => `${layersOfHeads.size > 1 ? `layer ${layer + 1}, ` : ""}head ${head + 1}`;

/** The maps of all heads, each with one of its gradients. */
function attentionMaps() {
  const heads = new Map();
  for (const each of sequence.heads) {
    const key = headName(each);
    if (!heads.has(key)) heads.set(key, []);
    heads.get(key).push(each);
  }
  return [...heads].map(([name, rows]) => {
    const weight = attentionMap(`${name}: attention weights`, rows, (index) => (isComputed(index) ? nodes[index].data : null), weightColour, percent);
    const gradient = attentionMap(`${name}: the gradients of these weights`, rows, (index) => (hasGradient(index) ? gradients[index] : null), gradientColour, readable);
    const said = html("p", { class: "said", "aria-hidden": "true" });
    for (const map of [weight, gradient]) map.onSay = (text) => (said.textContent = text);
    const element = html("figure", { class: "head" }, html("figcaption", {}, name.replace(/head (\d+)$/, "Head $1").replace("layer", "Layer")),
      html("div", { class: "pair" }, html("div", {}, html("p", { class: "what" }, "weights"), weight.element), html("div", {}, html("p", { class: "what" }, "gradients"), gradient.element)), said);
    return { element, paint() { weight.paint(); gradient.paint(); } };
  });
}

const weightColour = (weight) => `rgb(var(--weight) / ${(0.04 + 0.96 * Math.min(1, weight)).toFixed(2)})`;
const gradientColour = (gradient, largest) => {
  const level = Math.abs(levelOf(gradient, largest));
  return level ? `rgb(var(${gradient > 0 ? "--positive" : "--negative"}) / ${(0.12 + (0.88 * level) / LEVELS).toFixed(2)})` : "";
};

/** One map: a table with a row for each token that reads, and a column for each that it reads. Arrow keys go through it. */
function attentionMap(label, rows, numberOf, colour, written) {
  const order = [...rows].sort((one, other) => one.from - other.from);
  const columns = [...new Set(order.flatMap(({ to }) => to))].sort((one, other) => one - other);
  const heading = (position, scope) => html("th", { scope }, html("span", { "aria-hidden": "true" }, bdi(shortName(position))), html("span", { class: "unseen" }, bdi(tokenName(position))));
  const map = { onSay: () => {} };
  const places = [];
  const body = order.map((row, y) => html("tr", {}, heading(row.from, "row"), ...columns.map((position, x) => {
    const place = row.to.indexOf(position);
    const text = html("span", { class: "unseen" });
    const cell = html("td", { tabindex: "-1", class: place < 0 ? "none" : "" }, text);
    places.push({ cell, text, x, y, from: row.from, to: position, weight: place < 0 ? null : row.weights[place] });
    return cell;
  })));
  places[0].cell.tabIndex = 0;
  const say = (place) => map.onSay(place ? place.said : "");
  const at = (event) => places.find(({ cell }) => cell === event.target.closest("td"));
  const move = (event) => {
    const from = at(event);
    const [dx, dy] = DIRECTIONS[event.key] ?? [0, 0];
    const to = from && (dx || dy) && places.find(({ x, y }) => x === from.x + dx && y === from.y + dy);
    if (from && event.key in DIRECTIONS) { event.preventDefault(); event.stopPropagation(); }
    if (!to) return;
    from.cell.tabIndex = -1;
    to.cell.tabIndex = 0;
    to.cell.focus();
  };
  map.element = html("table", { class: "map", role: "grid", "aria-label": label, onkeydown: move, onfocusin: (event) => say(at(event)), onfocusout: () => say(null), onmouseover: (event) => say(at(event)), onmouseleave: () => say(null) },
    html("thead", {}, html("tr", {}, html("td", {}, html("span", { class: "unseen" }, "from, to")), ...columns.map((position) => heading(position, "col")))), html("tbody", {}, ...body));
  map.paint = () => {
    for (const { cell, from, to } of places) cell.hidden = Math.max(from, to) >= used;
    const numbers = places.map(({ weight }) => (weight === null ? null : numberOf(weight)));
    const largest = largestOf(numbers);
    places.forEach((place, index) => {
      const number = numbers[index];
      const pair = `${tokenName(place.from)} (${place.from + 1}) → ${tokenName(place.to)} (${place.to + 1})`;
      place.said = place.weight === null ? `${pair}: cannot be read` : `${pair}: ${number === null ? "not computed yet" : `${written(number)}${written === percent ? `, ${readable(number)}` : ""}`}`;
      place.text.textContent = place.weight === null ? "none" : number === null ? "not computed yet" : written(number);
      place.cell.title = place.said;
      place.cell.style.backgroundColor = number === null ? "" : colour(number, largest);
    });
    const headings = map.element.querySelectorAll("thead th, tbody th");
    [...columns, ...order.map(({ from }) => from)].forEach((position, index) => {
      const [short, full] = headings[index].children;
      short.textContent = shortName(position);
      full.textContent = tokenName(position);
      headings[index].hidden = position >= used;
    });
  };
  return map;
}

/** As much of the name of a token as a narrow column has room for. */
const shortName = (position) => [...tokenName(position)].slice(0, 3).join("");
