// SPDX-License-Identifier: Apache-2.0
// Curves over time.
import assert from "node:assert/strict";
import test from "node:test";

import * as curves from "../src/curves.js";
import * as format from "../src/format.js";

test("rare samples are a curve, and a value without neighbours is a point", () => {
  const times = [0, 5, 10, 15, 40, 45];
  const values = [1, 2, 3, 4, 5, 6];
  assert.equal(curves.spacingOf(times, values, 1), 5);
  assert.deepEqual(curves.withGaps(times, [values], 1), [[0, 5, 10, 15, 20, 40, 45], [1, 2, 3, 4, null, 5, 6]]);
  assert.equal(curves.spacingOf([0, 1, 2], [1, null, null], 1), 1);
  assert.deepEqual(curves.isolatedOf([1, null, 2, 3, null, 4]), [0, 5]);
});

test("an old value is not now's", () => {
  const times = [0, 1, 2, 3];
  assert.deepEqual(curves.summaryOf(times, [1, 3, null, null], 1, 4), { now: 3, mean: 2, most: 3 });
  assert.deepEqual(curves.summaryOf(times, [1, 3, null, null], 1, 100), { now: null, mean: 2, most: 3 });
  assert.deepEqual(curves.summaryOf(times, [0, 0, 0, 0], 1, null), { now: null, mean: 0, most: 0 });
  assert.deepEqual(curves.summaryOf(times, [null, null, null, null], 1, 4), { now: null, mean: null, most: null });
});

test("an axis of time has a minute at least, also for a single moment", () => {
  assert.deepEqual(curves.timeRange([1000]), [940, 1000]);
  assert.deepEqual(curves.timeRange([990, 1000]), [940, 1000]);
  assert.deepEqual(curves.timeRange([800, 1000]), [800, 1000]);
});

test("memory in GiB has whole labels", () => {
  const steps = curves.MEMORY_STEPS.filter((step) => step >= 1024);
  for (const step of steps) assert.match(format.memory(step), /^\d+\.0 GiB$/);
});

test("curves show a gap where nothing was sampled", () => {
  const [times, values] = curves.withGaps([0, 1, 2, 10, 11], [[1, 2, 3, 4, 5]], 1);
  assert.deepEqual(times, [0, 1, 2, 3, 10, 11]);
  assert.deepEqual(values, [1, 2, 3, null, 4, 5]);
});

test("a spark line has a gap where nothing is known, and ends at its range", () => {
  const shape = { step: 10, range: [100, 200], most: 2, width: 100, height: 10 };
  assert.equal(curves.sparkPath([100, 110, 120, 180], [1, null, 2, 4], shape), "M0 10V5H10V10ZM20 10V0H30V10ZM80 10V0H90V10Z");
  assert.equal(curves.sparkPath([50, 95, 300], [1, 1, 1], shape), "M0 10V5H5V10Z");
  assert.equal(curves.sparkPath([], [], shape), "");
});
