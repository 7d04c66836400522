// SPDX-License-Identifier: Apache-2.0
// Lists of tasks, as pure functions over the answers of docs/protocol.md.

const ENDED = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "STOPPED"];

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

// What waiting tasks of an array need in common to be one row of the queue; null: the task is a row.
export const queueKey = (task) =>
  task.state === "PENDING" && Number.isInteger(task.array_index) ? `${task.array_id} ${task.reason}` : null;

// The same of tasks that have ended, for the history.
export const historyKey = (task) =>
  Number.isInteger(task.array_index) ? `${task.array_id} ${task.state} ${exitText(task)} ${endText(task)}` : null;

// The rows of a list: tasks of an array with the same key are one row, unless the array is in `opened`:
// [{task, label, members}], where `task` is the first of `members`.
export function groupArrays(tasks, keyOf, opened = new Set()) {
  const rows = [];
  const groups = new Map();
  for (const task of tasks) {
    const key = opened.has(task.array_id) ? null : keyOf(task);
    if (key !== null && groups.has(key)) groups.get(key).members.push(task);
    else {
      const row = { task, members: [task] };
      rows.push(row);
      if (key !== null) groups.set(key, row);
    }
  }
  for (const row of rows)
    row.label =
      row.members.length === 1
        ? labelOf(row.task)
        : `${row.task.array_id}_[${rangesOf(row.members.map((task) => task.array_index))}]`;
  return rows;
}

const atMost = (values) => {
  const known = values.filter((value) => typeof value === "number");
  return known.length ? Math.max(...known) : null;
};

const gpusOf = (task) => (task.gpus?.length ? task.gpus : (task.attempts?.[task.attempts.length - 1]?.gpus ?? []));

// What a row of the history says of its tasks: of several the last end, the most of what each took, and
// their energy together.
export function endedSums(members) {
  const of = (key) => members.map((task) => task[key] ?? null);
  const energy = of("energy_j");
  return {
    gpus: [...new Set(members.flatMap(gpusOf))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })),
    ended_at: atMost(of("ended_at")),
    wait_s: atMost(of("wait_s")),
    exec_s: atMost(of("exec_s")),
    mem_peak_mib: atMost(of("mem_peak_mib")),
    smact_mean: atMost(of("smact_mean")),
    energy_j: energy.includes(null) ? null : energy.reduce((sum, joules) => sum + joules, 0),
  };
}

// Tasks that have not used a GPU of theirs for long, as the daemon sees it: {id: seconds}.
export function unusedOf(gpus) {
  const found = new Map();
  for (const gpu of gpus ?? [])
    for (const task of gpu.tasks ?? [])
      if (task.unused_for_long) found.set(task.id, Math.max(task.unused_s, found.get(task.id) ?? 0));
  return found;
}

// How a task's main process ended: "0", "signal 9", "" where it is not known.
export const exitText = (task) => (task.signal ? `signal ${task.signal}` : String(task.exit_code ?? ""));

// Why a task ended: the reason where it says more than the exit does, and the evidence where the reason
// does not have it yet.
export function endText(task) {
  const word = ["None", "NonZeroExitCode", "RaisedSignal"].includes(task.reason) ? "" : task.reason;
  const reason = task.reason_text || word || "";
  const evidence = task.evidence && !reason.includes(task.evidence.slice(0, 40)) ? task.evidence : "";
  return [reason, evidence].filter(Boolean).join(": ");
}

// What a filter's words match: id, name, user, state.
export function matches(task, filter) {
  const text = `${labelOf(task)} ${task.id} ${task.name} ${task.user} ${task.state} ${task.reason}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

// Tasks that took more memory than was known before, and by how much: estimate against peak.
export function memoryVerdict(task) {
  if (typeof task.mem_peak_mib !== "number" || typeof task.need_mib !== "number") return null;
  const peak = task.mem_peak_mib / Math.max(1, task.gpus_requested ?? 1);
  return { peak, need: task.need_mib, over: peak - task.need_mib };
}

// What its owner can type in a terminal, since the page changes nothing: [[command, what it does]].
export function commandsOf(task, isSlurm) {
  const id = labelOf(task);
  const command = (word, means) => [`${isSlurm ? "scontrol" : "colloc"} ${word} ${id}`, means];
  if (hasEnded(task)) return isSlurm ? [] : [command("rerun", "runs it again")];
  const commands = [[isSlurm ? `scancel ${id}` : `colloc cancel ${id}`, "ends it"]];
  if (task.state === "PENDING")
    commands.push(task.reason === "JobHeldUser" ? command("release", "lets it start") : command("hold", "keeps it from starting"));
  else if (task.state === "RUNNING" && !isSlurm) commands.push(command("suspend", "takes it off its GPUs for a while"));
  else if (task.state === "SUSPENDED" && !isSlurm) commands.push(command("resume", "lets it go on"));
  return commands;
}
