// SPDX-License-Identifier: Apache-2.0
// The page's functions over answers of a daemon, recorded by test/record (over emulated GPUs).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import * as format from "../src/format.js";
import * as model from "../src/model.js";

const answer = (name) =>
  JSON.parse(readFileSync(new URL(`answers/${name}.json`, import.meta.url), "utf8"));

const live = answer("live").tasks;
const ended = answer("ended").tasks;
const lanes = answer("lanes");

test("unknown is a dash, never 0", () => {
  for (const show of Object.values(format))
    if (typeof show === "function" && show !== format.gpuName && show !== format.listOr)
      assert.equal(show(null), format.UNKNOWN);
  assert.equal(format.memory(0), "0 MiB");
  assert.equal(format.memory(11673.6), "11.4 GiB");
  assert.equal(format.percent(0.834), "83 %");
  assert.equal(format.duration(3675), "1:01:15");
  assert.equal(format.duration(90061), "1 d 1:01");
  assert.equal(format.energy(18000), "5.0 Wh");
  assert.equal(format.gpuName("NVIDIA H200"), "H200");
});

test("an idle GPU's power is a part of its limit, not the whole strip", () => {
  assert.equal(model.powerScale(400, [50, null, 52]), 400);
  assert.equal(model.powerScale(400, [410]), 410);
  assert.equal(model.powerScale(null, [50, null]), 50);
  assert.equal(model.powerScale(undefined, []), 1);
});

test("rare samples are a curve, and a value without neighbours is a point", () => {
  const times = [0, 5, 10, 15, 40, 45];
  const values = [1, 2, 3, 4, 5, 6];
  assert.equal(model.spacingOf(times, values, 1), 5);
  assert.deepEqual(model.withGaps(times, [values], 1), [[0, 5, 10, 15, 20, 40, 45], [1, 2, 3, 4, null, 5, 6]]);
  assert.equal(model.spacingOf([0, 1, 2], [1, null, null], 1), 1);
  assert.deepEqual(model.isolatedOf([1, null, 2, 3, null, 4]), [0, 5]);
});

test("an old value is not now's", () => {
  const times = [0, 1, 2, 3];
  assert.deepEqual(model.summaryOf(times, [1, 3, null, null], 1, 4), { now: 3, mean: 2, most: 3 });
  assert.deepEqual(model.summaryOf(times, [1, 3, null, null], 1, 100), { now: null, mean: 2, most: 3 });
  assert.deepEqual(model.summaryOf(times, [0, 0, 0, 0], 1, null), { now: null, mean: 0, most: 0 });
  assert.deepEqual(model.summaryOf(times, [null, null, null, null], 1, 4), { now: null, mean: null, most: null });
});

test("waiting tasks of an array are one row until it is opened", () => {
  const task = (id, index, state = "PENDING") => ({ id, array_id: 8, array_index: index, state, reason: "Priority" });
  const tasks = [task(9, 0, "RUNNING"), task(10, 1), { id: 20, array_id: null, array_index: null, state: "PENDING" }, task(12, 3), task(11, 2)];
  assert.deepEqual(model.groupArrays(tasks).map((row) => row.label), ["8_0", "8_[1-3]", "20"]);
  assert.deepEqual(model.groupArrays(tasks, new Set([8])).map((row) => row.label), ["8_0", "8_1", "20", "8_3", "8_2"]);
  assert.equal(model.rangesOf([7, 1, 0, 2]), "0-2,7");
});

test("a list says which task is unused, and why a task ended", () => {
  const gpus = [{ tasks: [{ id: 1, unused_s: 667, unused_for_long: true }, { id: 2, unused_s: 3, unused_for_long: false }] }, {}];
  assert.deepEqual([...model.unusedOf(gpus)], [[1, 667]]);
  assert.deepEqual([...model.unusedOf(null)], []);
  const failed = { reason: "NonZeroExitCode", reason_text: "", exit_code: 3, signal: null, evidence: "ValueError: bad shape" };
  assert.equal(model.endText(failed), "exit code 3: NonZeroExitCode: ValueError: bad shape");
  assert.equal(model.endText({ ...failed, reason_text: "said: ValueError: bad shape" }), "exit code 3: said: ValueError: bad shape");
  assert.equal(model.endText({ reason: "None", reason_text: "", exit_code: 0, signal: null, evidence: null }), "");
});

test("a name of a layer lies within it", () => {
  const xs = [0, 100, 200, 300];
  assert.deepEqual(model.labelBox(xs, [96, 96, 96], [94, 60, 50], 13), { from: 100, to: 300, top: 60, bottom: 96 });
  assert.equal(model.labelBox(xs, [96, 96, 96], [90, 90, null], 13), null);
});

test("an axis of time has a minute at least, also for a single moment", () => {
  assert.deepEqual(model.timeRange([1000]), [940, 1000]);
  assert.deepEqual(model.timeRange([990, 1000]), [940, 1000]);
  assert.deepEqual(model.timeRange([800, 1000]), [800, 1000]);
});

test("an axis names hours of 24, and days where they matter", () => {
  const at = new Date(2026, 10, 22, 18, 5, 9).getTime() / 1000;
  assert.equal(format.tick(at, 10), "18:05:09");
  assert.equal(format.tick(at, 300), "18:05");
  assert.equal(format.tick(at, 86400), "Nov 22");
  assert.equal(format.tick(new Date(2026, 10, 23).getTime() / 1000, 3600), "Nov 23");
});

test("memory in GiB has whole labels", () => {
  const steps = model.MEMORY_STEPS.filter((step) => step >= 1024);
  for (const step of steps) assert.match(format.memory(step), /^\d+\.0 GiB$/);
});

test("running tasks come before waiting ones, those in order of their queue", () => {
  const order = model.sortLive([...live].reverse());
  const states = order.map((task) => task.state);
  assert.equal(states.lastIndexOf("RUNNING") < states.indexOf("PENDING"), true);
  const positions = order.filter((t) => t.position !== null).map((t) => t.position);
  assert.deepEqual(positions, [...positions].sort((a, b) => a - b));
});

test("tasks that ended leave by their ids", () => {
  const before = new Map(live.map((task) => [task.id, task]));
  const after = model.dropTasks(before, [live[0].id, 999999]);
  assert.equal(after.size, before.size - 1);
  assert.equal(after.has(live[0].id), false);
  assert.equal(before.has(live[0].id), true);
});

test("an event changes, adds and removes tasks", () => {
  const before = new Map(live.map((task) => [task.id, task]));
  const first = live[0];
  const after = model.mergeTasks(before, [
    { ...first, state: "COMPLETED" },
    { ...live[1], name: "renamed" },
    { ...first, id: 999, state: "PENDING" },
  ]);
  assert.equal(after.has(first.id), false);
  assert.equal(after.get(live[1].id).name, "renamed");
  assert.equal(after.get(999).state, "PENDING");
  assert.equal(before.has(first.id), true, "what was shown is not changed under the page");
});

test("tasks are stacked up to what the GPU uses", () => {
  const found = model.lanesOf(lanes);
  assert.deepEqual([...found.keys()].sort(), ["0", "1"]);
  for (const lane of found.values()) {
    const stack = model.stackLane(lane, lanes.step_s);
    assert.equal(stack.layers.at(-1).task, null, "external processes are on top");
    for (let i = 0; i < stack.times.length; i++) {
      let top = 0;
      for (const layer of stack.layers) {
        if (layer.high[i] === null) continue;
        assert.equal(layer.low[i], top);
        assert.ok(layer.high[i] >= layer.low[i]);
        top = layer.high[i];
      }
      assert.ok(top <= 40960 * 1.02, `${top} MiB at ${stack.times[i]}`);
    }
  }
  assert.deepEqual(model.stackLane(undefined, 1), { times: [], layers: [], used: [] });
});

test("the layer under the pointer is found", () => {
  const stack = { layers: [{ task: 3, low: [0], high: [100] }, { task: null, low: [100], high: [null] }] };
  assert.equal(model.layerAt(stack, 0, 50), 3);
  assert.equal(model.layerAt(stack, 0, 150), undefined);
});

test("a crash and the attempt after it are marked", () => {
  const marks = model.marksOf(ended);
  const crash = marks.find((mark) => mark.kind === "crash");
  assert.ok(crash, "the recorded history has a crash");
  const task = ended.find((t) => t.id === crash.task);
  assert.equal(crash.at, task.attempts.find((a) => a.reason === "OutOfMemory").ended_at);
  assert.ok(marks.some((m) => m.task === crash.task && (m.kind === "recover" || m.kind === "move")));
  assert.deepEqual(model.marksOf([{ id: 1, attempts: [{ gpus: ["0"], reason: "None" }] }]), []);
});

test("curves show a gap where nothing was sampled", () => {
  const [times, values] = model.withGaps([0, 1, 2, 10, 11], [[1, 2, 3, 4, 5]], 1);
  assert.deepEqual(times, [0, 1, 2, 3, 10, 11]);
  assert.deepEqual(values, [1, 2, 3, null, 4, 5]);
});

test("times are found", () => {
  assert.equal(model.indexAt([1, 2, 4, 8], 5), 2);
  assert.equal(model.indexAt([1, 2, 4, 8], 0), 0);
  assert.equal(model.indexAt([1, 2, 4, 8], 99), 3);
});

test("every word of a filter must match", () => {
  const task = { id: 12, name: "resnet50", user: "ada", state: "PENDING", reason: "Priority" };
  assert.ok(model.matches(task, ""));
  assert.ok(model.matches(task, "ADA res"));
  assert.ok(!model.matches(task, "ada bert"));
});

test("places in the address", () => {
  assert.deepEqual(model.parsePlace(""), { page: "overview", id: "" });
  assert.deepEqual(model.parsePlace("#/task/12"), { page: "task", id: "12" });
});

test("the peak against the requirement", () => {
  assert.equal(model.memoryVerdict({ need_mib: null, mem_peak_mib: 5 }), null);
  assert.equal(model.memoryVerdict({ need_mib: 100, mem_peak_mib: 250, gpus_requested: 2 }).over, 25);
  assert.equal(format.overUnder(25), "over by 25 MiB per GPU");
  assert.equal(format.overUnder(-2048), "under by 2.0 GiB per GPU");
  assert.equal(format.overUnder(-0.4), "as required");
});

test("an interruption is a band where the task was and a mark where it went on", () => {
  const task = {
    id: 7,
    attempts: [
      {
        gpus: ["0"],
        started_at: 10,
        ended_at: null,
        reason: null,
        interruptions: [
          { kind: "suspended", since: 20, until: 30, gpus: ["1"] },
          { kind: "paused", since: 40, until: 50, gpus: null },
          { kind: "suspended", since: 60, until: null, gpus: null },
        ],
      },
    ],
  };
  assert.deepEqual(
    model.bandsOf([task]).map(({ gpu, kind, since, until }) => [gpu, kind, since, until]),
    [
      ["0", "suspended", 20, 30],
      ["1", "paused", 40, 50],
      ["1", "suspended", 60, null],
    ],
  );
  assert.deepEqual(model.marksOf([task]), [{ at: 30, gpu: "1", kind: "move", task: 7 }]);
  assert.deepEqual(model.bandsOf([{ id: 1, attempts: [{ gpus: ["0"] }] }]), [], "of an older daemon");
});

test("tasks that may not start yet wait, too", () => {
  const live = model.mergeTasks(new Map(), [
    { id: 1, state: "RUNNING" },
    { id: 2, state: "PENDING", reason: "JobHeldUser" },
    { id: 3, state: "PENDING", reason: "BeginTime" },
  ]);
  assert.equal(model.countWaiting(live, 0), 2);
  assert.equal(model.countWaiting(live, 2000), 2000);
});
