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

// Where the name of a layer is readable: the widest part in which a box of `height` pixels lies within
// the layer all along, {from, to, top, bottom} in pixels; null where there is none. `xs` has one edge
// more than there are values; `lows` and `highs` are rows of pixels, which grow downwards.
export function labelBox(xs, lows, highs, height) {
  let best = null;
  for (let i = 0; i < highs.length; i++) {
    let top = -Infinity;
    let bottom = Infinity;
    for (let k = i; k < highs.length && highs[k] !== null; k++) {
      top = Math.max(top, highs[k]);
      bottom = Math.min(bottom, lows[k]);
      if (bottom - top < height) break;
      if (!best || xs[k + 1] - xs[i] > best.to - best.from) best = { from: xs[i], to: xs[k + 1], top, bottom };
    }
  }
  return best;
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

// The usual time between the known values of a series, `step` at least: what is sampled more rarely
// than the answer's step is no gap.
export function spacingOf(times, values, step) {
  const known = times.filter((_, i) => (values[i] ?? null) !== null);
  const between = known.slice(1).map((time, i) => time - known[i]);
  between.sort((a, b) => a - b);
  return Math.max(step, between[between.length >> 1] ?? 0);
}

// Times further apart than two of the series' own steps get a null between them, so that curves show
// the gap.
export function withGaps(times, columns, step) {
  const spacing = spacingOf(times, columns[0], step);
  const outTimes = [];
  const out = columns.map(() => []);
  times.forEach((time, i) => {
    if (i > 0 && time - times[i - 1] > 2.5 * spacing) {
      outTimes.push(times[i - 1] + spacing);
      out.forEach((column) => column.push(null));
    }
    outTimes.push(time);
    out.forEach((column, k) => column.push(columns[k][i] ?? null));
  });
  return [outTimes, ...out];
}

// The values without a known neighbour, which a line does not show: their indexes.
export function isolatedOf(values) {
  const isKnown = (i) => (values[i] ?? null) !== null;
  return values.map((_, i) => i).filter((i) => isKnown(i) && !isKnown(i - 1) && !isKnown(i + 1));
}

// What a chart says of its values: {now, mean, most}. `now` is null where the last known value is
// older than three of the series' steps before `until`, or where `until` is null, as of an ended task.
export function summaryOf(times, values, spacing, until) {
  const known = values.map((value, i) => [times[i], value]).filter(([, value]) => (value ?? null) !== null);
  if (known.length === 0) return { now: null, mean: null, most: null };
  const [at, last] = known[known.length - 1];
  return {
    now: until !== null && until - at <= 3 * spacing + 2 ? last : null,
    mean: known.reduce((sum, [, value]) => sum + value, 0) / known.length,
    most: Math.max(...known.map(([, value]) => value)),
  };
}

// The first and last moment of an axis for these times: a minute at least, also for a single moment.
export function timeRange(times) {
  const last = times[times.length - 1];
  return [Math.min(times[0], last - 60), last];
}

// Steps of an axis in MiB: powers of two, so that labels in GiB are whole.
export const MEMORY_STEPS = Array.from({ length: 24 }, (_, i) => 2 ** i);

// The number of a task as all commands print it: "12", or "8_3" in an array.
export const labelOf = (task) =>
  Number.isInteger(task.array_index) && task.array_id ? `${task.array_id}_${task.array_index}` : String(task.id);

// "0-3,7" of the numbers, which may be in any order.
export function rangesOf(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const ranges = [];
  for (const n of sorted) {
    const last = ranges[ranges.length - 1];
    if (last && n === last[1] + 1) last[1] = n;
    else ranges.push([n, n]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

// The rows of a list: waiting tasks of one array with one reason are one row, unless the array is in
// `opened`: [{task, label, members}], where `task` is the first of `members`.
export function groupArrays(tasks, opened = new Set()) {
  const rows = [];
  const groups = new Map();
  for (const task of tasks) {
    const isGrouped = task.state === "PENDING" && Number.isInteger(task.array_index) && !opened.has(task.array_id);
    const key = `${task.array_id} ${task.reason}`;
    if (isGrouped && groups.has(key)) groups.get(key).members.push(task);
    else {
      const row = { task, members: [task] };
      rows.push(row);
      if (isGrouped) groups.set(key, row);
    }
  }
  for (const row of rows)
    row.label =
      row.members.length === 1
        ? labelOf(row.task)
        : `${row.task.array_id}_[${rangesOf(row.members.map((task) => task.array_index))}]`;
  return rows;
}

// Tasks that have not used a GPU of theirs for long, as the daemon sees it: {id: seconds}.
export function unusedOf(gpus) {
  const found = new Map();
  for (const gpu of gpus ?? [])
    for (const task of gpu.tasks ?? [])
      if (task.unused_for_long) found.set(task.id, Math.max(task.unused_s, found.get(task.id) ?? 0));
  return found;
}

// Why a task ended: its exit, and the evidence where the text does not have it yet.
export function endText(task) {
  const exit = task.signal ? `signal ${task.signal}` : task.exit_code ? `exit code ${task.exit_code}` : "";
  const reason = task.reason_text || (task.reason !== "None" ? task.reason : "") || "";
  const evidence = task.evidence && !reason.includes(task.evidence.slice(0, 40)) ? task.evidence : "";
  return [exit, reason, evidence].filter(Boolean).join(": ");
}

// What a filter's words match: id, name, user, state.
export function matches(task, filter) {
  const text = `${labelOf(task)} ${task.id} ${task.name} ${task.user} ${task.state} ${task.reason}`.toLowerCase();
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
