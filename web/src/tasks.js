// SPDX-License-Identifier: Apache-2.0
// Lists of tasks, as pure functions over the answers of docs/protocol.md.

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
