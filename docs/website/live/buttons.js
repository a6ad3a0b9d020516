// Buttons for all of a learner's work: to a file, and from one.
import { button, element } from "./elements.js";
import { exported, imported } from "./work.js";

/** The buttons, and what they say. */
export function workButtons() {
  const said = element("span", { role: "status" });
  const file = element("input", { type: "file", accept: ".progress,.json", hidden: true });
  file.addEventListener("change", async () => {
    try {
      const agree = (count) => confirm(`${count} ${count === 1 ? "cell has" : "cells have"} another text here. Take that of the file?`);
      said.textContent = imported(await file.files[0].text(), agree);
    } catch (error) {
      said.textContent = error.message;
    }
    file.value = "";
  });
  const save = () => {
    const link = element("a", { href: URL.createObjectURL(new Blob([exported()], { type: "application/json" })), download: "micrograd.progress" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    said.textContent = "All cells and notes of this browser are in the file.";
  };
  return [button("Export", "Export all my work to a file", save), button("Import", "Import work from a file", () => file.click()), file, said];
}
