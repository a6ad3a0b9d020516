// What a cell gives: texts, pictures, and pages in frames.

/** The elements that show an output; text after text of the same kind goes on in the same element. */
export function made(kind, text, name, last) {
  if (kind === "text" || kind === "warning" || kind === "error") {
    if (last?.dataset.kind === kind) {
      last.firstChild.append(text);
      return [];
    }
    const block = document.createElement("pre");
    block.dataset.kind = kind;
    block.tabIndex = 0; // long lines are scrolled by keyboard, too
    block.append(document.createElement("code"));
    block.firstChild.append(text);
    return [block];
  }
  if (kind === "picture") {
    const picture = document.createElement("img");
    picture.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    picture.addEventListener("load", () => URL.revokeObjectURL(picture.src));
    picture.alt = `picture: ${name}`;
    const figure = document.createElement("figure");
    figure.dataset.kind = kind;
    figure.tabIndex = 0;
    figure.append(picture);
    return [figure];
  }
  const frame = document.createElement("iframe");
  frame.dataset.kind = kind;
  frame.sandbox = kind === "page" ? "allow-scripts allow-downloads" : "";
  frame.title = name;
  frame.srcdoc = kind === "page" ? text : `<meta charset="utf-8"><style>body{font:14px system-ui}</style>${text}`;
  return [frame, wide(frame)];
}

/** Gives each page that was recorded its button. */
export function widen(place) {
  for (const frame of place.querySelectorAll("iframe")) frame.after(wide(frame));
}

/** Pages in frames are light or dark as the site is. */
const themeOfSite = () => (document.body.getAttribute("data-md-color-scheme") === "slate" ? "dark" : "light");
const tellTheme = (frame) => frame.contentWindow?.postMessage({ theme: themeOfSite() }, "*"); // its origin has no name
new MutationObserver(() => document.querySelectorAll(".cell-outputs iframe").forEach(tellTheme)).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
});
document.addEventListener("load", ({ target }) => target.matches?.(".cell-outputs iframe") && tellTheme(target), true);
document.querySelectorAll(".cell-outputs iframe").forEach(tellTheme); // those that were there before this script
addEventListener("message", ({ source, data }) => {
  const frame = [...document.querySelectorAll(".cell-outputs iframe")].find(({ contentWindow }) => contentWindow === source);
  if (frame && data?.height > 0) frame.style.height = `${Math.min(data.height, 0.9 * innerHeight)}px`;
});

/** A button that gives a page the whole screen. */
function wide(frame) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cell-wide";
  button.textContent = "Full screen";
  button.setAttribute("aria-label", `Full screen: ${frame.title}`);
  button.addEventListener("click", () => frame.requestFullscreen?.());
  return button;
}
