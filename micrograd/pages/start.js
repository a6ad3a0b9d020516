// ---- Start -----------------------------------------------------------------------------------------------------

function start() {
  setTheme(darkness.matches ? "dark" : "light");
  showLength();
  find("passes").querySelector(".backward").hidden = !passes.backward;
  find("notes").replaceChildren(...passes.notes.map((note) => html("li", {}, note)));
  find("notes").hidden = !passes.notes.length;
  find("order").hidden = !canGoWrong;
  find("order").append(orderButton, orderText);
  for (const id of ["expand", "collapse"]) find(id).hidden = !groups.length;
  find("expand").hidden ||= nodes.length > SMOOTH;
  document.body.prepend(svg("svg", { width: 0, height: 0, "aria-hidden": "true", class: "tips" }, ...["", "path", "active"].map((kind) =>
    svg("marker", { id: `tip${kind && "-"}${kind}`, viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" },
      svg("path", { class: `tip ${kind}`, d: "M0 0.5 8 4 0 7.5z" })))));
  noteBirths();
  replay();
  divideRoom();
  openWhatFits();
  draw();
  show();
  if (passes.sequence) startSequence();
  if (passes.recording) startRecording();
  firstView();
  isShown = true;
  let width = bounds().width;
  new ResizeObserver(() => {
    if (graph.hasAttribute("viewBox")) return; // it has one while it is printed
    if (bounds().width !== width) {
      divideRoom();
      draw(); // rows are wrapped elsewhere
    }
    width = bounds().width;
    firstView();
  }).observe(graph);
}
start();
