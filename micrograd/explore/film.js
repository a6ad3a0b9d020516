// ---- Training, as a film -------------------------------------------------------------------------------------------

const SIDE = 48; // places of the boundary's map, each way
const CLASSES = ["--negative", "--positive", "--class-2", "--class-3", "--class-4", "--class-5", "--class-6"];

function startFilm() {
  const { film } = passes;
  const plane = film.points.length && !unknown.length && film.inputs.every((index) => index !== null) ? boundary(film) : null;
  const chart = lossChart(film);
  const slider = html("input", { type: "range", min: "0", max: String(film.frames.length - 1), value: "0", "aria-label": "Training step", oninput: () => turnTo(Number(slider.value)) });
  const button = html("button", { type: "button", class: "primary", onclick: () => roll(!rolling) }, "Play");
  const words = html("span", { class: "soft" });
  let rolling = 0;
  function turnTo(frame) {
    const { step, numbers } = film.frames[frame];
    slider.value = String(frame);
    const leaves = new Map(film.parameters.map((node, place) => [node, numbers[place]]));
    if (unknown.length) for (const [index, number] of leaves) nodes[index].data = number;
    else setNumbers(leaves);
    words.textContent = `step ${step}`;
    slider.setAttribute("aria-valuetext", `step ${step}`);
    chart.mark(step);
    plane?.paint();
    show();
  }
  function roll(on) {
    clearTimeout(rolling);
    rolling = 0;
    button.textContent = on ? "Pause" : "Play";
    if (!on) return;
    if (Number(slider.value) === film.frames.length - 1) turnTo(0);
    const tick = () => {
      turnTo(Number(slider.value) + 1);
      if (Number(slider.value) === film.frames.length - 1) roll(false);
      else rolling = setTimeout(tick, Math.max(30, Math.min(150, 6000 / film.frames.length)));
    };
    rolling = setTimeout(tick, 30);
  }
  find("film").append(html("p", { class: "eyebrow" }, "Training"), html("div", { class: "row" }, button, slider, words), ...(plane ? [plane.figure] : []), chart.figure);
  if (unknown.length) find("film").append(html("p", { class: "soft" }, `Only the parameters move: this page cannot compute ${[...new Set(unknown)].slice(0, 3).join(", ")}.`));
  find("film").hidden = false;
  at = steps.length - 1;
  turnTo(0);
}

/** The loss of each step as a curve, on a logarithmic scale where it spans decades. */
function lossChart({ losses }) {
  const [width, height, left, bottom] = [340, 130, 44, 18];
  const numbers = losses.map(([, loss]) => loss);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const logarithmic = least > 0 && most / least > 30;
  const scale = logarithmic ? Math.log : (loss) => loss;
  const span = scale(most) - scale(least) || 1;
  const last = losses[losses.length - 1][0];
  const x = (step) => left + (step / Math.max(last, 1)) * (width - left - 6);
  const y = (loss) => 6 + ((scale(most) - scale(loss)) / span) * (height - bottom - 12);
  const path = losses.map(([step, loss], index) => `${index ? "L" : "M"}${x(step).toFixed(1)} ${y(loss).toFixed(1)}`).join("");
  const line = svg("line", { class: "then", y1: 4, y2: height - bottom });
  const dot = svg("circle", { class: "now", r: 5 });
  const drawing = svg("svg", { id: "loss", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Loss, from ${readable(numbers[0])} at first to ${readable(numbers[numbers.length - 1])} at last` },
    svg("path", { class: "axis", d: `M${left} 4V${height - bottom}H${width}`, fill: "none" }),
    svg("text", { x: left - 6, y: 12, "text-anchor": "end" }, readable(most)), svg("text", { x: left - 6, y: height - bottom, "text-anchor": "end" }, readable(least)),
    svg("text", { x: width, y: height - 4, "text-anchor": "end" }, `step ${last}`), svg("path", { class: "curve", d: path }), line, dot);
  const caption = html("figcaption", {});
  const mark = (step) => {
    const [, loss] = losses.reduce((best, each) => (Math.abs(each[0] - step) < Math.abs(best[0] - step) ? each : best));
    for (const [key, value] of [["x1", x(step)], ["x2", x(step)]]) line.setAttribute(key, value);
    dot.setAttribute("cx", x(step));
    dot.setAttribute("cy", y(loss));
    caption.textContent = `Loss ${readable(loss)}${logarithmic ? ", on a logarithmic scale" : ""}`;
  };
  return { figure: html("figure", {}, drawing, caption), mark };
}

/** What the network says of each place in the plane of its two inputs. */
function boundary({ inputs, outputs, points, targets }) {
  const [left, right, low, high] = square(points);
  const threshold = primitives[nodes[outputs[0]].primitive]?.name === "sigmoid" ? 0.5 : 0;
  const canvas = html("canvas", { width: String(SIDE), height: String(SIDE), role: "img", "aria-label": "The plane of the two inputs, coloured by what the network says there" });
  const overlay = svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
  const sideOf = (target) => (outputs.length > 1 ? target : Number(target > threshold));
  points.forEach(([x, y], index) => {
    const kind = targets.length ? sideOf(targets[index]) : null;
    const [u, v] = [((x - left) / (right - left)) * 100, ((high - y) / (high - low)) * 100];
    const dot = kind === 0 ? svg("rect", { class: "point", x: u - 1.3, y: v - 1.3, width: 2.6, height: 2.6 }) : svg("circle", { class: "point", cx: u, cy: v, r: 1.5 });
    dot.style.fill = kind === null ? "var(--ink)" : `rgb(var(${CLASSES[kind] ?? "--ink"}))`;
    overlay.append(dot);
  });
  function paint() {
    const style = getComputedStyle(document.documentElement);
    const colours = CLASSES.map((name) => style.getPropertyValue(name).split(" ").map(Number));
    const data = Float64Array.from(nodes, (node) => node.data);
    const image = new ImageData(SIDE, SIDE);
    for (let row = 0; row < SIDE; row++) {
      for (let column = 0; column < SIDE; column++) {
        data[inputs[0]] = left + ((column + 0.5) / SIDE) * (right - left);
        data[inputs[1]] = high - ((row + 0.5) / SIDE) * (high - low);
        computeAll(data);
        const scores = outputs.map((output) => data[output]);
        const best = outputs.length > 1 ? scores.indexOf(Math.max(...scores)) : Number(scores[0] > threshold);
        const sure = outputs.length > 1 ? 0.5 : 0.2 + 0.45 * Math.tanh(Math.abs(scores[0] - threshold) * (threshold ? 4 : 1));
        image.data.set([...(colours[best] ?? [128, 128, 128]), 255 * sure], 4 * (row * SIDE + column));
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
  const figure = html("figure", {}, html("div", { id: "boundary" }, canvas, overlay), html("figcaption", {}, "What the network says of each place; the points are the examples"));
  return { figure, paint };
}

/** A square around the points, with a margin. */
function square(points) {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  const reach = 0.58 * Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys), 1e-9);
  return [middle(xs) - reach, middle(xs) + reach, middle(ys) - reach, middle(ys) + reach];
}

