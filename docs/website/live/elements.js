/** An element with attributes and contents. */
export function element(name, attributes = {}, ...parts) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...parts);
  return made;
}

/** A button, with a label that says more than its text. */
export const button = (text, label, act) => element("button", { type: "button", ariaLabel: label, onclick: act }, text);
