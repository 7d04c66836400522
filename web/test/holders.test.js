// SPDX-License-Identifier: Apache-2.0
// The holders of a GPU's memory.
import assert from "node:assert/strict";
import test from "node:test";

import { holdersOf, restOf } from "../src/holders.js";

const ENDED = { mem_used_mib: 0, uid: null, user: null, name: null, started_at: null };
const GPU = {
  mem_used_mib: 10000,
  tasks: [
    { id: 12, mem_used_mib: 6000, smact: 0.4, settled: true, unused_s: 0, unused_for_long: false },
    { id: 13, mem_used_mib: 0, smact: 0, settled: false, unused_s: 667, unused_for_long: true },
  ],
  misplaced_processes: [{ task: 9, pid: 77, mem_used_mib: 1000 }],
  foreign_processes: [
    { pid: 500, mem_used_mib: 2000, uid: 1000, user: "ada", name: "jupyter", started_at: 50 },
    { pid: 501, mem_used_mib: 500, uid: null, user: null, name: null, started_at: null },
    { ...ENDED, pid: 502, left_behind: { task: 12, holder: { pid: 510, uid: 1000, user: "ada", name: "python", started_at: 60 } } },
    { ...ENDED, pid: 503, left_behind: { task: null, holder: null } },
  ],
};
const LIVE = new Map([
  [12, { id: 12, name: "bert", user: "bob", started_at: 10, array_id: 8, array_index: 3 }],
  [13, { id: 13, name: "shell", user: "eve", started_at: 20, array_id: null, array_index: null }],
]);

test("each holder has its number, name and user, and says what is odd", () => {
  const rows = holdersOf(GPU, LIVE).map(({ kind, label, name, user, unused, note }) => [kind, label, name, user, unused, note]);
  assert.deepEqual(rows, [
    ["task", "8_3", "bert", "bob", null, ""],
    ["task", "13", "shell", "eve", 667, ""],
    ["misplaced", "9", "process 77", null, null, "was given another GPU: its script sets CUDA_VISIBLE_DEVICES"],
    ["external", "pid 500", "jupyter", "ada", null, "not started by colloc"],
    ["external", "pid 501", "process", null, null, "not started by colloc; it ended after the sample"],
    ["left", "pid 502", "memory left behind", "ada", null, "left behind by task 12, which has ended; held by pid 510 (ada: python): end that process"],
    ["left", "pid 503", "memory left behind", null, null, "left behind by a process that has ended; colloc doctor names the holder"],
  ]);
});

test("memory of no process is the rest, and not known where a part is not", () => {
  const holders = holdersOf(GPU, LIVE);
  assert.equal(restOf(GPU, holders), 500);
  assert.equal(restOf({ ...GPU, mem_used_mib: null }, holders), null);
  assert.equal(restOf({ ...GPU, foreign_processes: null }, holders), null);
  assert.equal(restOf({ ...GPU, health: "mig-parent" }, holders), null);
  const sum = holders.reduce((total, one) => total + one.mib, 0);
  assert.equal(restOf({ ...GPU, mem_used_mib: sum + 0.3 }, holders), 0);
  assert.equal(restOf(GPU, [...holders, { mib: null }]), null);
  assert.equal(restOf({ ...GPU, mem_used_mib: 9000 }, holders), 0);
});

test("a GPU of a Slurm cluster has jobs only", () => {
  const gpu = { mem_used_mib: null, tasks: [{ id: 4, mem_used_mib: null, smact: null, settled: true, unused_s: null, unused_for_long: false }] };
  assert.equal(holdersOf(gpu, new Map())[0].label, "4");
  assert.equal(restOf(gpu, holdersOf(gpu, new Map())), null);
});
