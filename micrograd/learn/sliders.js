// Each position of the sliders has a picture. The first slider counts most, as the first digit of a number does.
const { sliders, pictures, title } = JSON.parse(document.getElementById("data").textContent);

function made(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}

const inputs = sliders.map(([name, choices]) => {
  const input = made("input", { type: "range", min: 0, max: choices.length - 1, step: 1, value: 0 });
  const label = made("label");
  label.append(made("span", { textContent: name }), input, made("output"));
  document.getElementById("sliders").append(label);
  input.addEventListener("input", show);
  return input;
});

function show() {
  let place = 0;
  const said = inputs.map((input, index) => {
    const [name, choices] = sliders[index];
    place = place * choices.length + Number(input.value);
    input.setAttribute("aria-valuetext", choices[input.value]);
    input.nextElementSibling.textContent = choices[input.value];
    return `${name} ${choices[input.value]}`;
  });
  const picture = document.getElementById("picture");
  picture.innerHTML = pictures[place];
  picture.firstElementChild.setAttribute("role", "img");
  picture.firstElementChild.setAttribute("aria-label", `${title}: ${said.join(", ")}`);
}
show();

// A page that shows this one in a frame can make the frame as high as what is in it
const tellHeight = () => parent.postMessage({ height: document.body.offsetHeight }, "*");
if (parent !== window) new ResizeObserver(tellHeight).observe(document.body);

// In a frame of another page, light or dark is that page's choice: {theme: "dark"} or {theme: "light"}
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
addEventListener("message", ({ source, data }) => {
  if (source !== parent || !["light", "dark"].includes(data?.theme)) return;
  document.documentElement.dataset.theme = data.theme;
  tellHeight(); // to a page that has not listened before
});
