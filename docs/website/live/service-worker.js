// Keeps the path, so that it can be read and run without the network. DIGEST stands for all files of the site.
const KEPT = "micrograd-DIGEST";
const FOLDER = new URL(".", self.location).href;
const RUNNER = FILES.map((path) => new URL(path, FOLDER).href);
const PATH = PAGES.map((path) => new URL(path, FOLDER).href);
const AT_ONCE = 4; // files that are asked for while somebody may be reading

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) =>
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name.startsWith("micrograd-") && name !== KEPT) await caches.delete(name);
      await self.clients.claim();
    })(),
  ),
);

// The network first, so that a page is never older than the site; what was kept where there is none. The files of the
// runner are large, and of this very version: once kept, they are not asked for again.
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(FOLDER)) return;
  event.respondWith(RUNNER.includes(request.url) ? keptFirst(request) : networkFirst(request));
});

const MISSING = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Not here without a network</title><body style="font:1.1rem/1.5 system-ui;max-width:36rem;margin:15vh auto;padding:0 1rem">
<h1>Not here without a network</h1><p>There is no network now, and this page has not been kept in this browser yet.
Pages that you have read work; the whole path does once the line above the first cell of a page has said so.</p>
<p><a href="${FOLDER}learn/index.html">The path</a></p></body></html>`;

async function networkFirst(request) {
  const kept = await caches.open(KEPT);
  try {
    const answer = await fetch(request);
    if (answer.ok) await kept.put(request, answer.clone());
    return answer;
  } catch (error) {
    const address = request.url.split("#")[0].replace(/\/(\?.*)?$/, "/index.html");
    const found = (await kept.match(request, { ignoreSearch: true })) ?? (await kept.match(address, { ignoreSearch: true }));
    if (found) return found;
    if (request.mode === "navigate") return new Response(MISSING, { status: 503, headers: { "Content-Type": "text/html" } });
    throw error;
  }
}

async function keptFirst(request) {
  const kept = await caches.open(KEPT);
  return (await kept.match(request)) ?? networkFirst(request);
}

async function tell(message) {
  for (const client of await self.clients.matchAll()) client.postMessage(message);
}

/** Fetches what is not kept yet, in the order of the path; gives how many files there are. */
async function keepAll() {
  const kept = await caches.open(KEPT);
  const have = new Set((await kept.keys()).map(({ url }) => url));
  const wanted = [...RUNNER, ...PATH];
  const missing = wanted.filter((url) => !have.has(url));
  let count = wanted.length - missing.length;
  const fetchNext = async () => {
    for (let url = missing.shift(); url; url = missing.shift()) {
      const answer = await fetch(url).catch(() => null);
      if (answer?.ok) {
        await kept.put(url, answer);
        count++;
      }
      await tell({ kind: "keeping", count, of: wanted.length });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, fetchNext));
  await tell({ kind: "kept", count, of: wanted.length });
}

let keeping = null;
self.addEventListener("message", (event) => {
  if (event.data.kind !== "keep") return;
  keeping ??= keepAll().finally(() => (keeping = null));
  event.waitUntil(keeping);
});
