// SPDX-License-Identifier: Apache-2.0
// What was used of the GPUs in a period: the sums of `colloc report` (src/cli/usage_report.c explains
// them), of the same answers of the daemon. Hours are GPU hours; what is not known is counted beside.

import { UNKNOWN, hours } from "./format.js";

const HOUR = 3600;
const IDLE = 0.01; // mean SM activity, as in src/cli/usage_report.h
const J_PER_KWH = 3.6e6;

// The times in which the task held a GPU. While it is suspended it holds none; afterwards perhaps others.
function spansOf(task, now) {
  const attempts = task.attempts ?? [];
  const spans = [];
  attempts.forEach((attempt, i) => {
    const add = (gpus, since, until) =>
      gpus.forEach((gpu) => until > since && spans.push({ task, gpu, since, until, repeated: i + 1 < attempts.length }));
    const end = attempt.ended_at ?? now;
    let since = attempt.started_at ?? now;
    let gpus = attempt.gpu_uuids ?? [];
    for (const one of attempt.interruptions ?? []) {
      if (one.kind === "paused") continue;
      add(gpus, since, one.since ?? end);
      since = one.until ?? end;
      gpus = one.gpu_uuids ?? gpus;
    }
    add(gpus, since, end);
  });
  return spans;
}

const newRow = (name) => ({
  name, tasks: 0, held: 0, used: 0, idle: 0, repeated: 0, saved: 0, kwh: 0,
  unknownActivity: 0, unknownEnergy: 0, jct: 0, idealJct: 0,
  ledger: { shared: 0, measured: 0, unknown: 0, alone: 0, low: 0, high: 0, occupied: 0 },
});

// What sharing saved (struct ledger_sums in src/cli/usage_report.h): a task's mean speed counts for all
// of its hours; a task without a record of it is not known.
function addLedger(sums, ledger, hours, occupied) {
  const held = ledger?.held_s ?? 0;
  if (held <= 0) {
    sums.unknown += hours;
    return;
  }
  const part = (seconds) => Math.max(0, Math.min(1, seconds / held)); // of older daemons: any number
  const unknown = part(ledger.unknown_s);
  sums.shared += hours * part(ledger.shared_s);
  sums.measured += hours * part(ledger.measured_s);
  sums.unknown += hours * unknown;
  sums.alone += hours * part(ledger.alone_s);
  sums.low += hours * part(ledger.alone_low_s);
  sums.high += hours * part(ledger.alone_high_s);
  sums.occupied += occupied * (1 - unknown);
}

function addHours(row, { task, repeated }, wholeHours, hours, saved) {
  const smact = task.smact_mean ?? null;
  const energy = task.energy_j ?? null;
  row.held += hours;
  row.saved += saved;
  addLedger(row.ledger, task.ledger, hours, hours - saved);
  if (repeated) row.repeated += hours;
  if (smact === null) row.unknownActivity += hours;
  else row.used += smact * hours;
  if (smact !== null && smact < IDLE) row.idle += hours;
  if (energy === null || wholeHours <= 0) row.unknownEnergy += hours;
  else row.kwh += (energy / J_PER_KWH) * (hours / wholeHours);
}

// Calls `count(since, until, spans)` for each time between two changes in which spans hold the GPU.
function sweep(spans, count) {
  const changes = spans
    .flatMap((span) => [{ at: span.since, span, begins: true }, { at: span.until, span, begins: false }])
    .sort((a, b) => a.at - b.at);
  const present = new Set();
  let before = null;
  for (const { at, span, begins } of changes) {
    if (present.size && at > before) count(before, at, present);
    if (begins) present.add(span);
    else present.delete(span);
    before = at;
  }
}

// Completion times of the tasks alone on `n` GPUs, in the order of their submission.
function idealJct(tasks, n) {
  const free = new Array(n).fill(0);
  let sum = 0;
  for (const task of tasks) {
    const wanted = Math.min(Math.max(task.gpus_requested ?? 1, 1), n);
    free.sort((a, b) => a - b);
    const end = Math.max(task.submitted_at, free[wanted - 1]) + (task.exec_s ?? 0);
    free.fill(end, 0, wanted);
    sum += end - task.submitted_at;
  }
  return sum;
}

// The name of the row that counts the task's hours on a GPU.
function namer({ by, gpus, users }) {
  if (by === "gpu") {
    const labels = new Map(gpus.map((gpu) => [gpu.uuid, String(gpu.index)]));
    return (_, gpu) => labels.get(gpu) ?? gpu;
  }
  if (by === "user") return (task) => task.user;
  const projects = new Map(users.map((user) => [user.user, user.project]));
  return (task) => projects.get(task.user) ?? "default";
}

// Tasks and fairness of each row and of all.
function addTasks(rows, total, tasks, { from, until, by, gpuCount }, nameOf) {
  const ended = (task) => task.ended_at !== null && task.ended_at >= from && task.ended_at < until;
  const share = Math.max(1, Math.floor(gpuCount / Math.max(1, rows.size)));
  const sorted = [...tasks].sort((a, b) => a.submitted_at - b.submitted_at);
  total.tasks = sorted.length;
  if (by === "gpu") return;
  for (const row of rows.values()) {
    const own = sorted.filter((task) => nameOf(task) === row.name);
    row.tasks = own.length;
    row.jct = own.filter(ended).reduce((sum, task) => sum + (task.jct_s ?? 0), 0);
    row.idealJct = idealJct(own.filter(ended), share);
  }
}

// The report of [from, until): {gpuCount, freeHours, rows, total}. `tasks`, `gpus`, `users`: of the
// daemon's answers (docs/protocol.md); `by`: "user", "project" or "gpu".
export function makeReport({ tasks, gpus, users, from, until, by }) {
  const parents = new Set(gpus.map((gpu) => gpu.parent_uuid));
  const gpuCount = gpus.filter((gpu) => !parents.has(gpu.uuid)).length;
  const nameOf = namer({ by, gpus, users });
  const rows = new Map();
  const total = newRow(null);
  const counted = new Set();
  const perGpu = new Map();
  const whole = new Map();
  let freeHours = (gpuCount * (until - from)) / HOUR;
  for (const span of tasks.flatMap((task) => spansOf(task, until))) {
    whole.set(span.task, (whole.get(span.task) ?? 0) + (span.until - span.since) / HOUR);
    if (!perGpu.has(span.gpu)) perGpu.set(span.gpu, []);
    perGpu.get(span.gpu).push(span);
  }
  const count = (since, end, present) => {
    const hours = (Math.min(end, until) - Math.max(since, from)) / HOUR;
    if (hours <= 0) return;
    freeHours -= hours;
    for (const span of present) {
      const name = nameOf(span.task, span.gpu);
      if (!rows.has(name)) rows.set(name, newRow(name));
      for (const row of [rows.get(name), total])
        addHours(row, span, whole.get(span.task), hours, hours * (1 - 1 / present.size));
      counted.add(span.task);
    }
  };
  for (const spans of perGpu.values()) sweep(spans, count);
  addTasks(rows, total, counted, { from, until, by, gpuCount }, nameOf);
  const byName = (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true });
  return { gpuCount, freeHours, rows: [...rows.values()].sort(byName), total };
}

const ALL_UNKNOWN = 0.995; // the part of the held hours that is shown as 100 %, as in src/cli/saved_report.c

// GPU hours that sharing saved, below 0 those that it cost; null: not known, or nothing was shared.
export const savedOf = ({ ledger: l, held }) =>
  l.alone > 0 && l.shared > 0 && l.unknown < ALL_UNKNOWN * held ? l.alone - l.occupied : null;

// What is known of that, in a sentence.
export function ledgerText(row) {
  const { ledger: l, held } = row;
  const saved = savedOf(row);
  const part = (some, all) => (all > 0 ? `${((100 * some) / all).toFixed(0)} %` : UNKNOWN);
  if (saved === null)
    return l.shared > 0
      ? "What sharing saves or costs here is not known yet: no speed beside others is known."
      : "No task was beside others: nothing is known yet of what sharing saves or costs here.";
  return (
    `${hours(saved)} saved (${hours(l.low - l.occupied)} to ${hours(l.high - l.occupied)}) of ${hours(l.alone)} alone; ` +
    `speed beside others measured ${part(l.measured, l.shared)}, unknown ${part(l.unknown, held)}.`
  );
}

export const fairnessOf = (row) => (row.idealJct > 0 ? row.jct / row.idealJct : null);

// A sum of which a part is not known: "> 1.2 h", or "–" where nothing of it is known.
export function atLeast(text, unknown, row) {
  if (unknown <= 0) return text;
  return unknown >= row.held || Number.parseFloat(text) === 0 ? "–" : `> ${text}`;
}

// The report's rows for programs: hours, kWh and kg; empty where a sum or a part of it is not known.
export function reportCsv({ rows, total }, co2) {
  const known = (value, unknown) => (unknown > 0 || value === null ? "" : value.toFixed(4));
  // A name may have any letters: it is quoted, and one that a spreadsheet would run gets an apostrophe.
  const quoted = (text) => `"${String(text).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  const lines = [...rows, { ...total, name: "all" }].map((row) =>
    [
      quoted(row.name), row.tasks, known(row.held, 0), known(row.used, row.unknownActivity), known(row.idle, row.unknownActivity),
      known(row.repeated, 0), known(row.saved, 0), known(row.kwh, row.unknownEnergy),
      known((row.kwh * co2) / 1000, row.unknownEnergy), known(fairnessOf(row), 0),
    ].join(","),
  );
  return ["name,tasks,held_h,used_h,idle_h,repeated_h,saved_h,kwh,co2_kg,fairness", ...lines, ""].join("\n");
}

// The calendar months up to now, the newest first: [{label, from, until}], in the browser's time zone.
export function monthsUntil(now, count) {
  return Array.from({ length: count }, (_, back) => {
    const first = new Date(now.getFullYear(), now.getMonth() - back, 1);
    const next = new Date(first.getFullYear(), first.getMonth() + 1, 1);
    const label = `${first.getFullYear()}-${String(first.getMonth() + 1).padStart(2, "0")}`;
    return { label, from: first.getTime() / 1000, until: Math.min(next.getTime(), now.getTime()) / 1000 };
  });
}
