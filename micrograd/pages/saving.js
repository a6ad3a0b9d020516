
// ---- Saving what is seen: a file that stands by itself, in light colours for paper -----------------------------------

const MOST_PIXELS = 16e6; // of a PNG: some browsers give nothing for more
const DENSITY = 2; // pixels of a PNG for each of the screen
const BORDER = 16; // around what is drawn
const INHERITED = ["stroke-width", "stroke-dasharray", "stroke-linecap", "marker-start", "marker-end", "font-size", "font-weight", "font-style", "text-anchor"];
const OWN = { opacity: "1", "unicode-bidi": "normal" }; // what is not inherited, with what holds where it is not said
const FONT = "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";

/** These parts of the drawing in their layers, as a drawing of its own. */
function copyOf(shown, transform) {
  const layers = new Map(["boxes", "edges", "nodes"].map((id) => [find(id), svg("g")]));
  for (const { home, element } of shown) layers.get(home).append(element.cloneNode(true));
  const tips = [...document.querySelectorAll(".tips marker")].map((marker) => marker.cloneNode(true));
  return [svg("defs", {}, ...tips), svg("g", { transform }, ...layers.values())];
}

/** Everything that is open, as an SVG in its own size. */
function wholePicture() {
  const shown = [...visible.values(), ...edges];
  for (const each of visible.values()) if (each.version !== version) paint(each); // what is out of sight waits for that
  const furthest = (edge, start, reach) => edges.reduce((most, each) => edge(most, reach(each)), start);
  const [left, right] = [furthest(Math.min, 0, ({ x, w }) => x - w / 2), furthest(Math.max, size.width, ({ x, w }) => x + w / 2)];
  const [top, bottom] = [furthest(Math.min, 0, ({ y, h }) => y - h / 2), furthest(Math.max, size.height, ({ y, h }) => y + h / 2)];
  const kind = [...graph.classList].filter((name) => !["far", "farther"].includes(name)).join(" ");
  return sheet([left - BORDER, top - BORDER, right - left + 2 * BORDER, bottom - top + 2 * BORDER], kind, ...copyOf(shown, ""));
}

/** What is in sight of the graph, as an SVG of this size. */
function graphPicture() {
  const { width, height } = bounds();
  const isAway = outOfSight();
  const seen = [...visible.values(), ...edges].filter((shown) => !isAway(shown));
  if (!seen.length) throw new RangeError("nothing is in sight");
  const around = (low, high, length) => [Math.max(0, Math.min(...low) - BORDER), Math.min(length, Math.max(...high) + BORDER)];
  const [left, right] = around(seen.map(({ x, w }) => view.x + (x - w / 2) * view.scale), seen.map(({ x, w }) => view.x + (x + w / 2) * view.scale), width);
  const [top, bottom] = around(seen.map(({ y, h }) => view.y + (y - h / 2) * view.scale), seen.map(({ y, h }) => view.y + (y + h / 2) * view.scale), height);
  return sheet([left, top, right - left, bottom - top], graph.getAttribute("class"), ...copyOf(seen, find("world").getAttribute("transform")));
}

/** An SVG on white. */
function sheet(box, kind, ...children) {
  const [x, y, width, height] = box.map((number) => Math.round(number * 100) / 100);
  return svg("svg", { viewBox: `${x} ${y} ${width} ${height}`, width, height, class: kind ?? "" }, svg("rect", { x, y, width, height, fill: "#ffffff" }), ...children);
}

/** The text of an SVG file that says by itself how everything in it looks, and names nothing of this page. */
function textOfPicture(picture, words) {
  const paper = html("div", { class: "paper", "aria-hidden": "true" }, picture);
  document.body.append(paper);
  const found = [];
  const read = (element, above) => {
    const style = getComputedStyle(element);
    if (style.display === "none") return found.push([element, null]);
    const said = lookOf(style);
    found.push([element, Object.entries(said).filter(([name, value]) => (name in OWN ? value !== OWN[name] : value !== above[name]))]);
    for (const child of element.children) read(child, said);
  };
  read(picture, {});
  paper.remove();
  for (const [element, look] of found) { // after all was read: a change in between costs the browser a new look at everything
    if (look === null) {
      element.remove();
      continue;
    }
    const name = element.getAttribute("aria-label");
    for (const attribute of ["class", "style", "role", "tabindex", "data-item", "data-action", "aria-label", "aria-expanded"]) element.removeAttribute(attribute);
    for (const [property, value] of look) element.setAttribute(property, value);
    if (name) element.prepend(svg("title", {}, name));
  }
  picture.setAttribute("font-family", FONT);
  picture.prepend(svg("title", {}, document.title), svg("desc", {}, words));
  return new XMLSerializer().serializeToString(picture);
}

/** How an element looks, by attribute. A colour with an opacity is two of them, which every program can read. */
function lookOf(style) {
  const look = {};
  for (const name of ["fill", "stroke"]) {
    const [, red, green, blue, opacity] = style[name].match(/^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/) ?? [];
    look[name] = red === undefined ? style[name] : `rgb(${red}, ${green}, ${blue})`;
    look[`${name}-opacity`] = opacity ?? "1";
  }
  for (const name of [...INHERITED, ...Object.keys(OWN)]) look[name] = style.getPropertyValue(name).replaceAll('"', "");
  return look;
}

/** The pixels of a PNG of an SVG, and how much of its size they have. */
async function pixelsOf(text, { width, height }) {
  const scale = Math.min(DENSITY, Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = html("canvas", { width: String(Math.floor(width * scale)), height: String(Math.floor(height * scale)) });
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = Object.assign(new Image(), { src: url });
    await image.decode();
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  } finally {
    URL.revokeObjectURL(url);
  }
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (blob === null) throw new RangeError(`${canvas.width} × ${canvas.height} pixels are too many for this browser`);
  return { blob, canvas, isSmaller: scale < DENSITY };
}

/** The name of a file: letters and digits of the title, and what the picture shows. */
const fileName = (words, suffix) => `${[...`${document.title} ${words}`.matchAll(/[\p{L}\p{N}]+/gu)].join("-").slice(0, 80)}.${suffix}`;

const PICTURES = { seen: graphPicture }; // what is seen, as a picture: a recording puts that of its network here

async function savePicture(suffix, draw) {
  const words = find("count").textContent;
  try {
    const picture = draw();
    const size = { width: Number(picture.getAttribute("width")), height: Number(picture.getAttribute("height")) };
    const text = textOfPicture(picture, words);
    const name = fileName(words, suffix);
    if (suffix === "svg") return download(name, new Blob([text], { type: "image/svg+xml" }), "");
    const { blob, canvas, isSmaller } = await pixelsOf(text, size);
    download(name, blob, `, ${canvas.width} × ${canvas.height} pixels${isSmaller ? ": more would be too many for a browser. An SVG has all details" : ""}`);
  } catch (error) {
    find("saved").textContent = `Nothing was saved: ${error.message}.`;
  }
}

function download(name, blob, remark) {
  const url = URL.createObjectURL(blob);
  html("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // when the browser has surely begun to write
  find("saved").textContent = `Saved as ${name}${remark}.`;
}

for (const suffix of ["svg", "png"]) find(`save-${suffix}`).addEventListener("click", () => savePicture(suffix, PICTURES.seen));
find("save-whole").addEventListener("click", () => savePicture("svg", wholePicture));
find("save").addEventListener("toggle", () => (find("saved").textContent = ""));
find("save").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  find("save").open = false;
  find("save").querySelector("summary").focus();
});
document.addEventListener("pointerdown", (event) => find("save").contains(event.target) || (find("save").open = false));

// On paper the graph is as wide as the paper, and shows what the window shows.
addEventListener("beforeprint", () => graph.setAttribute("viewBox", `0 0 ${bounds().width} ${bounds().height}`));
addEventListener("afterprint", () => graph.removeAttribute("viewBox"));
