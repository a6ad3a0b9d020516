// ---- The curve of the loss ---------------------------------------------------------------------------------------------

const MOST_ON_CURVE = 2000;

/** The loss of each step as a curve, on a logarithmic scale where it spans decades. */
function lossChart() {
  const [width, height, left, bottom] = [340, 130, 44, 18];
  const line = svg("line", { class: "then", y1: 4, y2: height - bottom });
  const dot = svg("circle", { class: "now", r: 5 });
  const curve = svg("path", { class: "curve" });
  const [top, low, end] = [{ x: left - 6, y: 12 }, { x: left - 6, y: height - bottom }, { x: width, y: height - 4 }].map((place) => svg("text", { ...place, "text-anchor": "end" }));
  const drawing = svg("svg", { id: "loss", viewBox: `0 0 ${width} ${height}`, role: "img" },
    svg("path", { class: "axis", d: `M${left} 4V${height - bottom}H${width}`, fill: "none" }), top, low, end, curve, line, dot);
  const caption = html("figcaption", {});
  let [x, y, words] = [() => left, () => 6, ""];

  /** Draw these losses: pairs of a step and its loss. */
  function set(losses) {
    const numbers = losses.map(([, loss]) => loss).filter(Number.isFinite);
    const [least, most] = numbers.reduce(([low, high], loss) => [Math.min(low, loss), Math.max(high, loss)], [numbers[0] ?? 0, numbers[0] ?? 1]);
    const logarithmic = least > 0 && most / least > 30;
    const scale = logarithmic ? Math.log : (loss) => loss;
    const span = scale(most) - scale(least) || 1;
    const last = losses.length ? losses[losses.length - 1][0] : 1;
    x = (step) => left + (step / last) * (width - left - 6);
    y = (loss) => 6 + ((scale(most) - scale(loss)) / span) * (height - bottom - 12);
    words = logarithmic ? ", on a logarithmic scale" : "";
    const stride = Math.ceil(losses.length / MOST_ON_CURVE);
    const shown = losses.filter(([, loss], index) => index % stride === 0 && Number.isFinite(loss));
    curve.setAttribute("d", shown.map(([step, loss], index) => `${index ? "L" : "M"}${x(step).toFixed(1)} ${y(loss).toFixed(1)}`).join(""));
    [top.textContent, low.textContent, end.textContent] = numbers.length ? [readable(most), readable(least), `step ${last}`] : ["", "", ""];
    drawing.setAttribute("aria-label", losses.length ? `Loss, from ${readable(losses[0][1])} at first to ${readable(losses[losses.length - 1][1])} at last` : "Loss: no step is made yet");
  }

  /** Mark the step that follows: its number, and the mean loss of its batch, where that is known. */
  function mark(step, loss) {
    const known = Number.isFinite(loss);
    for (const key of ["x1", "x2"]) line.setAttribute(key, x(step));
    dot.setAttribute("visibility", known ? "visible" : "hidden");
    dot.setAttribute("cx", x(step));
    dot.setAttribute("cy", known ? Math.max(6, Math.min(height - bottom, y(loss))) : 0);
    caption.textContent = loss === null ? "" : `Loss ${readable(loss)}${words}`;
  }
  return { figure: html("figure", {}, drawing, caption), set, mark };
}
