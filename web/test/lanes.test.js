// SPDX-License-Identifier: Apache-2.0
// Lanes, over recorded answers.
import assert from "node:assert/strict";
import test from "node:test";

import * as lanes from "../src/lanes.js";
import { recorded } from "./recorded.js";

const series = recorded("lanes");
const ended = recorded("ended").tasks;

test("an idle GPU's power is a part of its limit, not the whole strip", () => {
  assert.equal(lanes.powerScale(400, [50, null, 52]), 400);
  assert.equal(lanes.powerScale(400, [410]), 410);
  assert.equal(lanes.powerScale(null, [50, null]), 50);
  assert.equal(lanes.powerScale(undefined, []), 1);
});

test("a name of a layer lies within it", () => {
  const xs = [0, 100, 200, 300];
  assert.deepEqual(lanes.labelBox(xs, [96, 96, 96], [94, 60, 50], 13), { from: 100, to: 300, top: 60, bottom: 96 });
  assert.equal(lanes.labelBox(xs, [96, 96, 96], [90, 90, null], 13), null);
});

test("tasks are stacked up to what the GPU uses", () => {
  const found = lanes.lanesOf(series);
  assert.deepEqual([...found.keys()].sort(), ["0", "1"]);
  for (const lane of found.values()) {
    const stack = lanes.stackLane(lane, series.step_s);
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
  assert.deepEqual(lanes.stackLane(undefined, 1), { times: [], layers: [], used: [] });
});

test("a layer has the name of its task, which may have ended", () => {
  const times = [0, 1];
  const own = { times, values: { mem_used_mib: [5, 5] } };
  const task = { task: 5, label: "3_1", times, values: { mem_used_mib: [5, 5] } };
  const stack = lanes.stackLane({ own, tasks: [task] }, 1);
  assert.deepEqual(stack.layers.map((layer) => layer.label), ["3_1", "external processes"]);
});

test("the layer under the pointer is found", () => {
  const stack = { layers: [{ task: 3, low: [0], high: [100] }, { task: null, low: [100], high: [null] }] };
  assert.equal(lanes.layerAt(stack, 0, 50), 3);
  assert.equal(lanes.layerAt(stack, 0, 150), undefined);
});

test("a crash and the attempt after it are marked", () => {
  const marks = lanes.marksOf(ended);
  const crash = marks.find((mark) => mark.kind === "crash");
  assert.ok(crash, "the recorded history has a crash");
  const task = ended.find((t) => t.id === crash.task);
  assert.equal(crash.at, task.attempts.find((a) => a.reason === "OutOfMemory").ended_at);
  assert.ok(marks.some((m) => m.task === crash.task && (m.kind === "recover" || m.kind === "move")));
  assert.deepEqual(lanes.marksOf([{ id: 1, attempts: [{ gpus: ["0"], reason: "None" }] }]), []);
});

test("times are found", () => {
  assert.equal(lanes.indexAt([1, 2, 4, 8], 5), 2);
  assert.equal(lanes.indexAt([1, 2, 4, 8], 0), 0);
  assert.equal(lanes.indexAt([1, 2, 4, 8], 99), 3);
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
    lanes.bandsOf([task]).map(({ gpu, kind, since, until }) => [gpu, kind, since, until]),
    [
      ["0", "suspended", 20, 30],
      ["1", "paused", 40, 50],
      ["1", "suspended", 60, null],
    ],
  );
  assert.deepEqual(lanes.marksOf([task]), [{ at: 30, gpu: "1", kind: "move", task: 7 }]);
  assert.deepEqual(lanes.bandsOf([{ id: 1, attempts: [{ gpus: ["0"] }] }]), [], "of an older daemon");
});
