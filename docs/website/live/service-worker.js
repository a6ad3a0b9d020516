// Keeps what was read, so that it can be read again without the network. DIGEST stands for all files of the site.
const KEPT = "micrograd-DIGEST";
const FOLDER = new URL(".", self.location).href;
const RUNNER = FILES.map((path) => new URL(path, FOLDER).href);

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

async function networkFirst(request) {
  const kept = await caches.open(KEPT);
  try {
    const answer = await fetch(request);
    if (answer.ok) await kept.put(request, answer.clone());
    return answer;
  } catch (error) {
    const found = await kept.match(request, { ignoreSearch: true });
    if (found) return found;
    throw error;
  }
}

async function keptFirst(request) {
  const kept = await caches.open(KEPT);
  return (await kept.match(request)) ?? networkFirst(request);
}

// A page that was loaded before this worker was there tells what it has loaded.
self.addEventListener("message", (event) => {
  if (event.data.kind !== "keep") return;
  event.waitUntil(
    (async () => {
      const kept = await caches.open(KEPT);
      const wanted = new Set([...RUNNER, event.source.url, ...event.data.loaded.filter((url) => url.startsWith(FOLDER))]);
      for (const url of wanted)
        if (!(await kept.match(url, { ignoreSearch: true }))) {
          const answer = await fetch(url);
          if (answer.ok) await kept.put(url, answer);
        }
      event.source.postMessage({ kind: "kept" });
    })(),
  );
});
