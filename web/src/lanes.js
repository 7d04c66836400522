// SPDX-License-Identifier: Apache-2.0
// A lane: what was on a GPU over time, as pure functions over the answers of docs/protocol.md.

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

// From when on to show series: a daemon that is young fills the width from its first sample on, and a
// minute at least.
export function firstShown(answer, since, until) {
  const first = Math.min(...(answer?.series ?? []).map((series) => series.times[0] ?? Infinity));
  return Number.isFinite(first) ? Math.min(Math.max(since, first), until - 60) : since;
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
// Returns {times, layers: [{task, label, low: [], high: []}], used: []}.
export function stackLane(lane, step) {
  if (!lane?.own) return { times: [], layers: [], used: [] };
  const times = lane.own.times;
  const base = new Array(times.length).fill(0);
  const layers = [];
  const push = (task, label, values) => {
    const low = base.slice();
    const high = values.map((value, i) => (value === null ? null : base[i] + value));
    values.forEach((value, i) => (base[i] += value ?? 0));
    layers.push({ task, label, low, high });
  };
  for (const series of [...lane.tasks].sort((a, b) => a.task - b.task))
    push(series.task, series.label, alignTo(times, step, series, "mem_used_mib"));
  push(null, "external processes", lane.own.values.external_mem_mib ?? new Array(times.length).fill(null));
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
