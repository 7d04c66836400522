// SPDX-License-Identifier: Apache-2.0
// The holders of a GPU's memory, as a pure function over a GPU of docs/protocol.md and the live tasks.
//
// A process that colloc did not start is external, and a process of a task that was given another GPU
// is misplaced. The driver may go on listing a process that has ended with its memory: that is left
// behind. What is in use beyond these is the driver's own.

import { labelOf } from "./tasks.js";

const NOT_STARTED = "not started by colloc";

function taskHolder(one, live) {
  const task = live.get(one.id);
  return {
    kind: "task", key: `task ${one.id}`, task: one.id, name: task?.name ?? "", label: task ? labelOf(task) : String(one.id),
    user: task?.user ?? null, since: task?.started_at ?? null, mib: one.mem_used_mib ?? null, smact: one.smact ?? null,
    unused: one.unused_for_long ? one.unused_s : null, note: "",
  };
}

function misplacedHolder(one, live) {
  const task = live.get(one.task);
  return {
    kind: "misplaced", key: `misplaced ${one.pid}`, task: one.task, name: `process ${one.pid}`, label: task ? labelOf(task) : String(one.task),
    user: task?.user ?? null, since: null, mib: one.mem_used_mib ?? null, smact: null, unused: null,
    note: "was given another GPU: its script sets CUDA_VISIBLE_DEVICES",
  };
}

// "left behind by task 12, which has ended; held by pid 4720 (ada: python): end that process"
function leftNote({ task, holder }) {
  const of = task === null ? "a process that has ended" : `task ${task}, which has ended`;
  const by = holder ? `held by pid ${holder.pid} (${holder.user ?? "?"}: ${holder.name ?? "ended"}): end that process` : "colloc doctor names the holder";
  return `left behind by ${of}; ${by}`;
}

const leftHolder = (one) => ({
  kind: "left", key: `left ${one.pid}`, task: null, name: "memory left behind", label: `pid ${one.pid}`, user: one.left_behind.holder?.user ?? null,
  since: null, mib: one.mem_used_mib ?? null, smact: null, unused: null, note: leftNote(one.left_behind),
});

const externalHolder = (one) => ({
  kind: "external", key: `external ${one.pid}`, task: null, name: one.name ?? "process", label: `pid ${one.pid}`, user: one.user ?? null,
  since: one.started_at ?? null, mib: one.mem_used_mib ?? null, smact: null, unused: null,
  note: one.name === null ? `${NOT_STARTED}; it ended after the sample` : NOT_STARTED,
});

// The holders in this order: tasks, misplaced processes, external ones and what is left behind.
export function holdersOf(gpu, live) {
  return [
    ...(gpu.tasks ?? []).map((one) => taskHolder(one, live)),
    ...(gpu.misplaced_processes ?? []).map((one) => misplacedHolder(one, live)),
    ...(gpu.foreign_processes ?? []).map((one) => (one.left_behind ? leftHolder(one) : externalHolder(one))),
  ];
}

const SHOWN_MIB = 1; // below it, a rest is the rounding of the values

// Memory in use that no holder has; null where one of the values is not known, and of a GPU whose MIG
// instances have the holders.
export function restOf(gpu, holders) {
  if (gpu.health === "mig-parent") return null;
  const values = holders.map((one) => one.mib);
  if (typeof gpu.mem_used_mib !== "number" || !gpu.foreign_processes || values.includes(null)) return null;
  const rest = gpu.mem_used_mib - values.reduce((sum, mib) => sum + mib, 0);
  return rest < SHOWN_MIB ? 0 : rest;
}
