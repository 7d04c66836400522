// SPDX-License-Identifier: Apache-2.0
// What the page knows, as pure functions over the answers of docs/protocol.md.

const ENDED = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"];

export const hasEnded = (task) => ENDED.includes(task.state);

// Tasks that run, then those that wait in order of their queue (position), then the rest by id.
export function sortLive(tasks) {
  const rank = (task) => (task.state === "PENDING" ? (task.reason === "Recovering" ? 1 : 2) : 0);
  return [...tasks].sort(
    (a, b) => rank(a) - rank(b) || (a.position ?? Infinity) - (b.position ?? Infinity) || a.id - b.id,
  );
}

// How many tasks wait: all that are in the list, or more where the daemon's queue is longer than what
// is loaded. The queue has no tasks that may not start yet, such as held ones.
export function countWaiting(live, queued) {
  const pending = [...live.values()].filter((task) => task.state === "PENDING").length;
  return Math.max(pending, queued);
}

// The live tasks after an event of the stream: {id: task}. Tasks that ended leave.
export function mergeTasks(live, changed) {
  const next = new Map(live);
  for (const task of changed) {
    if (hasEnded(task)) next.delete(task.id);
    else next.set(task.id, task);
  }
  return next;
}

// The live tasks without those that ended, by their ids.
export function dropTasks(live, ended) {
  const next = new Map(live);
  for (const id of ended) next.delete(id);
  return next;
}

// A colour for each task: neighbours in number differ much.
export const hueOf = (id) => Math.round((id * 137.508) % 360);

// The series of one GPU out of an answer: {own, tasks: [series]} by GPU index.
export function lanesOf(answer) {
  const lanes = new Map();
  for (const series of answer?.series ?? []) {
    const key = series.gpu ?? series.uuid;
    if (!lanes.has(key)) lanes.set(key, { own: null, tasks: [] });
    const lane = lanes.get(key);
    if (series.task === null) lane.own = series;
    else lane.tasks.push(series);
  }
  return lanes;
}

// The value of a series at each of the times; null where it has none. `step` seconds long.
function alignTo(times, step, series, metric) {
  const values = series.values[metric] ?? [];
  const out = new Array(times.length).fill(null);
  let k = 0;
  for (let i = 0; i < times.length; i++) {
    while (k < series.times.length && series.times[k] < times[i]) k++;
    if (k < series.times.length && series.times[k] < times[i] + step) out[i] = values[k];
  }
  return out;
}

// Layers of memory on one GPU, from the bottom: tasks by id, then external processes.
// Returns {times, layers: [{task, low: [], high: []}], used: []}.
export function stackLane(lane, step) {
  if (!lane?.own) return { times: [], layers: [], used: [] };
  const times = lane.own.times;
  const base = new Array(times.length).fill(0);
  const layers = [];
  const push = (task, values) => {
    const low = base.slice();
    const high = values.map((value, i) => (value === null ? null : base[i] + value));
    values.forEach((value, i) => (base[i] += value ?? 0));
    layers.push({ task, low, high });
  };
  for (const series of [...lane.tasks].sort((a, b) => a.task - b.task))
    push(series.task, alignTo(times, step, series, "mem_used_mib"));
  push(null, lane.own.values.external_mem_mib ?? new Array(times.length).fill(null));
  return { times, layers, used: lane.own.values.mem_used_mib ?? [] };
}

// Each interruption of an attempt with the GPUs where it was, and those where it went on.
function interruptionsOf(attempt) {
  let gpus = attempt.gpus ?? [];
  return (attempt.interruptions ?? []).map((one) => {
    const from = gpus;
    if (one.gpus?.length) gpus = one.gpus;
    return { ...one, from, to: gpus };
  });
}

// When tasks gave way, and on which GPUs: {task, gpu, kind, since, until}; `until` null: still.
export function bandsOf(tasks) {
  const bands = [];
  for (const task of tasks)
    for (const attempt of task.attempts ?? [])
      for (const { kind, since, until, from } of interruptionsOf(attempt))
        for (const gpu of from) bands.push({ task: task.id, gpu, kind, since, until });
  return bands;
}

// What happened to a task's attempts: {at, gpu, kind: "crash" | "recover" | "move", task}.
export function marksOf(tasks) {
  const marks = [];
  for (const task of tasks) {
    const attempts = (task.attempts ?? []).filter((a) => a.reason !== "NotStarted");
    attempts.forEach((attempt, i) => {
      const crashed = attempt.reason && attempt.reason !== "None" && attempt.reason !== "Cancelled";
      for (const gpu of attempt.gpus ?? []) {
        if (crashed) marks.push({ at: attempt.ended_at, gpu, kind: "crash", task: task.id });
        if (i > 0) {
          const moved = !(attempts[i - 1].gpus ?? []).includes(gpu);
          marks.push({ at: attempt.started_at, gpu, kind: moved ? "move" : "recover", task: task.id });
        }
      }
      for (const { until, from, to } of interruptionsOf(attempt))
        for (const gpu of to)
          if (until !== null && !from.includes(gpu)) marks.push({ at: until, gpu, kind: "move", task: task.id });
    });
  }
  return marks;
}

// The layer under a point of a lane: a task's id, null for external processes, undefined for none.
export function layerAt(stack, index, mib) {
  for (const layer of stack.layers)
    if (layer.high[index] !== null && mib >= layer.low[index] && mib < layer.high[index])
      return layer.task;
  return undefined;
}

// What the height of a power strip stands for: the GPU's limit, so that an idle GPU looks idle, or,
// where that is not known, the most that was drawn.
export function powerScale(limit, values) {
  return Math.max(1, limit ?? 0, ...values.filter((value) => value !== null));
}

// Index of the last time at or before `at`.
export function indexAt(times, at) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

// Times further apart than two steps get a null between them, so that curves show the gap.
export function withGaps(times, columns, step) {
  const outTimes = [];
  const out = columns.map(() => []);
  times.forEach((time, i) => {
    if (i > 0 && time - times[i - 1] > 2.5 * step) {
      outTimes.push(times[i - 1] + step);
      out.forEach((column) => column.push(null));
    }
    outTimes.push(time);
    out.forEach((column, k) => column.push(columns[k][i] ?? null));
  });
  return [outTimes, ...out];
}

// The first and last moment of an axis for these times: a minute at least, also for a single moment.
export function timeRange(times) {
  const last = times[times.length - 1];
  return [Math.min(times[0], last - 60), last];
}

// Steps of an axis in MiB: powers of two, so that labels in GiB are whole.
export const MEMORY_STEPS = Array.from({ length: 24 }, (_, i) => 2 ** i);

// What a filter's words match: id, name, user, state.
export function matches(task, filter) {
  const text = `${task.id} ${task.name} ${task.user} ${task.state} ${task.reason}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

// Parses "#/task/12?gpu=0" into {page: "task", id: "12"}.
export function parsePlace(hash) {
  const [, page = "", id = ""] = hash.replace(/^#/, "").split("/");
  return { page: page || "overview", id };
}

// Tasks that took more memory than was known before, and by how much: estimate against peak.
export function memoryVerdict(task) {
  if (typeof task.mem_peak_mib !== "number" || typeof task.need_mib !== "number") return null;
  const peak = task.mem_peak_mib / Math.max(1, task.gpus_requested ?? 1);
  return { peak, need: task.need_mib, over: peak - task.need_mib };
}
