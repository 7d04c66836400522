// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon that served this page, and its stream of events.
import { eventParser } from "./event_parser.js";
import { openSession } from "./session.js";

const ANSWER_MAX_MS = 60_000; // chosen: a connection that hangs does not end all loads
const RECONNECT_MS = 3000; // as browsers do with an EventSource

const session = openSession();

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path, { method = "GET", signal = AbortSignal.timeout(ANSWER_MAX_MS) } = {}) {
  const headers = session.headers();
  const reply = await fetch(path, { method, headers, credentials: "omit", cache: "no-store", signal });
  if (reply.ok) return reply;
  if (reply.status === 401) session.forget(headers);
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

// Logs in if the page was opened by the address of a login. Returns the refusal of a login without
// which there is no session, or null.
export async function logIn() {
  const token = new URLSearchParams(location.search).get("token");
  const isLogin = location.pathname === "/login";
  if (isLogin) history.replaceState(null, "", "/" + location.hash); // no token in the history
  let refusal = null;
  try {
    if (isLogin) session.begin((await (await request("/login" + query({ token }), { method: "POST" })).json()).session);
  } catch (error) {
    refusal = error;
  }
  return (await session.find()) ? null : refusal;
}

export async function logOut() {
  await request("/logout", { method: "POST" }).catch(() => {}); // it may have ended, or the daemon
  session.end();
}

// Calls `take` with each event of a stream that is open, until it ends.
async function readEvents(reply, take) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = eventParser();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) parse(piece.value).forEach(take);
}

// Follows the daemon's events; a lost connection is made again, and goes on behind the last event.
export function follow({ onTasks, onEnded, onGpus, onReset, onState, onRefused }) {
  const over = new AbortController();
  const takers = { tasks: (data) => onTasks(data.tasks), ended: (data) => onEnded(data.ids), gpus: onGpus, reset: onReset };
  let after;
  const take = ({ name, id, data }) => {
    after = id ?? after;
    takers[name]?.(JSON.parse(data));
  };
  const run = async () => {
    while (!over.signal.aborted) {
      try {
        const reply = await request("/v1/events" + query({ after }), { signal: over.signal });
        onState(true);
        await readEvents(reply, take);
      } catch (error) {
        if (error.status === 401) return onRefused(error);
      }
      if (over.signal.aborted) return;
      onState(false);
      await new Promise((done) => setTimeout(done, RECONNECT_MS));
    }
  };
  run();
  return () => over.abort();
}
