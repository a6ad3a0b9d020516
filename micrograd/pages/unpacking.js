"use strict";
// A large page has its data compressed. The browser unpacks it, and then the script runs as in a small page.
(async () => {
  const early = []; // what another page says meanwhile, such as whether it is dark
  const listen = (event) => early.push(event);
  addEventListener("message", listen);
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
  globalThis.unpacked = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  for (const name of ["nodes", "visits"]) {
    const columns = Object.entries(unpacked[name]);
    unpacked[name] = (columns[0]?.[1] ?? []).map((_, row) => Object.fromEntries(columns.map(([key, column]) => [key, column[row]])));
  }
  unpacked.nodes.forEach((node, place) => (node.operands = node.operands.map((distance) => place - distance)));
  const script = document.createElement("script");
  script.textContent = document.getElementById("script").textContent;
  document.body.append(script);
  delete globalThis.unpacked;
  removeEventListener("message", listen);
  for (const { data, source } of early) dispatchEvent(new MessageEvent("message", { data, source }));
})();
