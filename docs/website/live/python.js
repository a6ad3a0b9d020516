// Python in a worker, and the one that waits to take its place.
import { keepNotes, merged, notes } from "./notes.js";

const LONGEST = 2 ** 31 - 1; // milliseconds that a timer takes

/** One Python, in a worker of its own. share is how much of it has been loaded, from 0 to 1. */
class Python {
  constructor() {
    this.share = 0;
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.ready = new Promise((resolve, reject) => {
      this.listen = ({ kind, text, share }) => {
        if (kind === "loading") this.share = share;
        else if (kind === "ready") resolve((this.share = 1));
        else reject(new Error(text));
      };
      this.worker.onerror = (event) => reject(new Error(event.message || "the runner could not be loaded"));
    });
    this.ready.catch(() => {}); // whoever runs something is told
    this.worker.onmessage = ({ data }) => this.listen(data);
  }

  /** Runs a cell, and gives what it ends with: "done" and a line, "ended" and a text, "overdue" and seconds, or "stopped". */
  async run(number, code, show) {
    await this.ready;
    const before = notes();
    const ended = (message) => {
      if (message.kind === "done" && message.notes !== before) keepNotes(notes() === before ? message.notes : merged(notes(), message.notes));
      return message;
    };
    return new Promise((resolve) => {
      this.stop = () => resolve({ kind: "stopped" });
      this.listen = (message) => {
        if (message.kind === "limit") this.limit(message.seconds, resolve);
        else if (message.kind === "done" || message.kind === "ended") resolve(ended(message));
        else show(message);
      };
      this.worker.onerror = (event) => resolve({ kind: "ended", text: event.message || "the worker ended" });
      this.worker.postMessage({ number, code, notes: before });
    });
  }

  /** An answer to an exercise may run for so many seconds; 0 once it has ended. */
  limit(seconds, overdue) {
    clearTimeout(this.timer);
    if (seconds > 0) this.timer = setTimeout(() => overdue({ kind: "overdue", seconds }), Math.min(seconds * 1000, LONGEST));
  }

  end() {
    clearTimeout(this.timer);
    this.worker.terminate();
    this.stop?.();
  }
}

/** The Python of this page, and the one that waits to take its place. */
export const pythons = {
  now: null,
  spare: null,
  current() {
    if (this.now === null) this.replace();
    return (this.now ??= new Python());
  },
  /** Another one after so many milliseconds, so that nobody waits after a stop. A device with little memory does without. */
  warm(delay = 500) {
    return setTimeout(() => {
      if ((navigator.deviceMemory ?? 8) > 2) this.spare ??= new Python();
    }, delay);
  },
  replace() {
    this.now?.end();
    this.now = this.spare;
    this.spare = null;
  },
};
