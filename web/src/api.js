// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon that served this page, and its stream of events.

const ANSWER_MAX_MS = 60_000; // chosen: a connection that hangs does not end all loads

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path) {
  const reply = await fetch(path, {
    credentials: "same-origin",
    headers: { "X-Colloc": "web" },
    signal: AbortSignal.timeout(ANSWER_MAX_MS),
  });
  if (reply.ok) return reply;
  let message = `${reply.status} ${reply.statusText}`;
  try {
    message = (await reply.json()).error.message;
  } catch {
    // no JSON: the status has to do
  }
  throw new Refused(reply.status, message);
}

const query = (values) => {
  const given = Object.entries(values ?? {}).filter(([, v]) => v !== undefined && v !== "");
  return given.length ? "?" + new URLSearchParams(given) : "";
};

export const get = async (path, values) => (await request(path + query(values))).json();

// All tasks of a list that comes in pages: {tasks, warning}.
export async function getAllTasks(values) {
  const tasks = [];
  for (let page = { next: undefined }; ; ) {
    page = await get("/v1/tasks", { ...values, after: page.next });
    tasks.push(...page.tasks);
    if (!page.next) return { tasks, warning: page.warning };
  }
}

// The next piece of a task's log: {text, next, ended}.
export async function getLog(id, stream, offset, tail) {
  const where = offset === null ? { tail } : { offset };
  const reply = await request(`/v1/tasks/${id}/log` + query({ stream, ...where }));
  return {
    text: await reply.text(),
    next: Number(reply.headers.get("Colloc-Next-Offset")),
    ended: reply.headers.get("Colloc-Ended") === "true",
    merged: reply.headers.get("Colloc-Merged") === "true",
  };
}

// Follows the daemon's events; the browser reconnects by itself with the last id.
export function follow({ onTasks, onEnded, onGpus, onReset, onState }) {
  const source = new EventSource("/v1/events");
  const listen = (name, take) =>
    source.addEventListener(name, (event) => take(JSON.parse(event.data)));
  listen("tasks", (data) => onTasks(data.tasks));
  listen("ended", (data) => onEnded(data.ids));
  listen("gpus", onGpus);
  listen("reset", onReset);
  source.onopen = () => onState(true);
  source.onerror = () => onState(false);
  return () => source.close();
}
