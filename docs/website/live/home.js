// The home page: a network that trains at once, with what explore's pages train with; Python is not loaded for it.
import { begin } from "./moons.js";

const ACTIVATIONS = ["tanh", "relu", "sigmoid", "silu", "identity"];
const host = document.getElementById("home-moons");
const element = (name, attributes, ...parts) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...parts);
  return made;
};

const settings = { activation: null, rate: null };
let [view, place, asked] = [null, element("div", { id: "moons" }), 0];

/** A control with its name and what it is set to. */
function control(id, name, input, text, apply) {
  const shown = element("output", {}, text(input.value));
  Object.assign(input, { id });
  input.addEventListener("input", () => {
    shown.textContent = text(input.value);
    apply(input.value);
  });
  return element("div", {}, element("label", { htmlFor: id }, name, shown), input);
}
const range = (min, max, step, value) => element("input", { type: "range", min, max, step, value });
const rateOf = (value) => Number((10 ** Number(value)).toPrecision(2));

async function show(width) {
  const number = ++asked;
  const passes = await fetch(new URL(`../home/${width}.json`, import.meta.url)).then((answer) => answer.json());
  if (number !== asked) return; // the slider has moved on
  const next = element("div", { id: "moons" });
  place.replaceWith(next);
  place = next; // it has its size, which the network is laid out in
  view = begin(passes, place, host, settings);
}

const themeOf = () => (document.body.getAttribute("data-md-color-scheme") === "slate" ? "dark" : "light");
function theme() {
  host.dataset.theme = themeOf();
  view?.repaint();
}

const change = (setting) => {
  Object.assign(settings, setting);
  view?.set(settings);
};
const activation = element("select", {}, ...ACTIVATIONS.map((name) => element("option", { value: name }, name === "identity" ? "none" : name)));
const controls = element("div", { id: "settings", role: "group", ariaLabel: "The network and its training" },
  control("width", "Width", range(2, 8, 1, 4), (value) => `${value} neurons`, show),
  control("rate", "Learning rate", range(-2.52, 0.48, 0.05, -0.52), (value) => String(rateOf(value)), (value) => change({ rate: rateOf(value) })),
  control("activation", "Activation", activation, () => "", (value) => change({ activation: value })));
const style = await fetch(new URL("home.css", import.meta.url)).then((answer) => answer.text());
theme();
new MutationObserver(theme).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
const root = host.attachShadow({ mode: "open" }); // now the text for those without JavaScript is gone
root.append(element("style", {}, style), element("div", { id: "all" }, place, controls));
await show(4);
