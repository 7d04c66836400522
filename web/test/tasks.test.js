// SPDX-License-Identifier: Apache-2.0
// Lists of tasks, over recorded answers.
import assert from "node:assert/strict";
import test from "node:test";

import * as format from "../src/format.js";
import * as tasks from "../src/tasks.js";
import { recorded } from "./recorded.js";

const live = recorded("live").tasks;

test("waiting tasks of an array are one row until it is opened", () => {
  const task = (id, index, state = "PENDING") => ({ id, array_id: 8, array_index: index, state, reason: "Priority" });
  const array = [task(9, 0, "RUNNING"), task(10, 1), { id: 20, array_id: null, array_index: null, state: "PENDING" }, task(12, 3), task(11, 2)];
  assert.deepEqual(tasks.groupArrays(array, tasks.queueKey).map((row) => row.label), ["8_0", "8_[1-3]", "20"]);
  assert.deepEqual(tasks.groupArrays(array, tasks.queueKey, new Set([8])).map((row) => row.label), ["8_0", "8_1", "20", "8_3", "8_2"]);
  assert.equal(tasks.rangesOf([7, 1, 0, 2]), "0-2,7");
});

test("a list says which task is unused, and why a task ended", () => {
  const gpus = [{ tasks: [{ id: 1, unused_s: 667, unused_for_long: true }, { id: 2, unused_s: 3, unused_for_long: false }] }, {}];
  assert.deepEqual([...tasks.unusedOf(gpus)], [[1, 667]]);
  assert.deepEqual([...tasks.unusedOf(null)], []);
  const failed = { reason: "NonZeroExitCode", reason_text: "", exit_code: 3, signal: null, evidence: "ValueError: bad shape" };
  assert.equal(tasks.endText(failed), "ValueError: bad shape");
  assert.equal(tasks.endText({ ...failed, reason_text: "said: ValueError: bad shape" }), "said: ValueError: bad shape");
  assert.equal(tasks.endText({ reason: "None", reason_text: "", exit_code: 0, signal: null, evidence: null }), "");
});

test("running tasks come before waiting ones, those in order of their queue", () => {
  const order = tasks.sortLive([...live].reverse());
  const states = order.map((task) => task.state);
  assert.equal(states.lastIndexOf("RUNNING") < states.indexOf("PENDING"), true);
  const positions = order.filter((t) => t.position !== null).map((t) => t.position);
  assert.deepEqual(positions, [...positions].sort((a, b) => a - b));
});

test("tasks that ended leave by their ids", () => {
  const before = new Map(live.map((task) => [task.id, task]));
  const after = tasks.dropTasks(before, [live[0].id, 999999]);
  assert.equal(after.size, before.size - 1);
  assert.equal(after.has(live[0].id), false);
  assert.equal(before.has(live[0].id), true);
});

test("an event changes, adds and removes tasks", () => {
  const before = new Map(live.map((task) => [task.id, task]));
  const first = live[0];
  const after = tasks.mergeTasks(before, [
    { ...first, state: "COMPLETED" },
    { ...live[1], name: "renamed" },
    { ...first, id: 999, state: "PENDING" },
  ]);
  assert.equal(after.has(first.id), false);
  assert.equal(after.get(live[1].id).name, "renamed");
  assert.equal(after.get(999).state, "PENDING");
  assert.equal(before.has(first.id), true, "what was shown is not changed under the page");
});

test("every word of a filter must match", () => {
  const task = { id: 12, name: "resnet50", user: "ada", state: "PENDING", reason: "Priority" };
  assert.ok(tasks.matches(task, ""));
  assert.ok(tasks.matches(task, "ADA res"));
  assert.ok(!tasks.matches(task, "ada bert"));
});

test("the peak against the requirement", () => {
  assert.equal(tasks.memoryVerdict({ need_mib: null, mem_peak_mib: 5 }), null);
  assert.equal(tasks.memoryVerdict({ need_mib: 100, mem_peak_mib: 250, gpus_requested: 2 }).over, 25);
  assert.equal(format.overUnder(25), "over by 25 MiB per GPU");
  assert.equal(format.overUnder(-2048), "under by 2.0 GiB per GPU");
  assert.equal(format.overUnder(-0.4), "as required");
});

test("tasks that may not start yet wait, too", () => {
  const live = tasks.mergeTasks(new Map(), [
    { id: 1, state: "RUNNING" },
    { id: 2, state: "PENDING", reason: "JobHeldUser" },
    { id: 3, state: "PENDING", reason: "BeginTime" },
  ]);
  assert.equal(tasks.countWaiting(live, 0), 2);
  assert.equal(tasks.countWaiting(live, 2000), 2000);
});

test("the commands for a task fit its state and its server", () => {
  const typed = (state, isSlurm, reason = "Priority") =>
    tasks.commandsOf({ id: 30, array_id: 22, array_index: 3, state, reason }, isSlurm).map(([command]) => command);
  assert.deepEqual(typed("PENDING", false), ["colloc cancel 22_3", "colloc hold 22_3"]);
  assert.deepEqual(typed("PENDING", false, "JobHeldUser"), ["colloc cancel 22_3", "colloc release 22_3"]);
  assert.deepEqual(typed("RUNNING", false), ["colloc cancel 22_3", "colloc suspend 22_3"]);
  assert.deepEqual(typed("SUSPENDED", false), ["colloc cancel 22_3", "colloc resume 22_3"]);
  assert.deepEqual(typed("FAILED", false), ["colloc rerun 22_3"]);
  assert.deepEqual(typed("PENDING", true), ["scancel 22_3", "scontrol hold 22_3"]);
  assert.deepEqual(typed("RUNNING", true), ["scancel 22_3"]);
});

test("tasks of an array that ended alike are one row of the history", () => {
  const task = (index, more) => ({ id: 30 + index, array_id: 22, array_index: index, state: "FAILED", reason: "NonZeroExitCode", exit_code: 3, ...more });
  const alone = { id: 9, array_id: null, array_index: null, state: "FAILED", reason: "NonZeroExitCode", exit_code: 3 };
  const ended = [task(2, { gpus: ["10"], exec_s: 5, energy_j: 7 }), alone, task(1, { exit_code: 4 }), task(0, { gpus: ["9"], exec_s: 8, energy_j: 1 })];
  const rows = tasks.groupArrays(ended, tasks.historyKey);
  assert.deepEqual(rows.map((row) => row.label), ["22_[0,2]", "9", "22_1"]);
  const sums = tasks.endedSums(rows[0].members);
  assert.deepEqual([sums.gpus, sums.exec_s, sums.energy_j, sums.mem_peak_mib], [["9", "10"], 8, 8, null]);
  assert.equal(tasks.endedSums([...rows[0].members, {}]).energy_j, null, "a part is not known");
  assert.deepEqual([alone, { signal: 9 }, {}].map(tasks.exitText), ["3", "signal 9", ""]);
});
