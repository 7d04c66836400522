// SPDX-License-Identifier: Apache-2.0
// Values as people read them.
import assert from "node:assert/strict";
import test from "node:test";

import * as format from "../src/format.js";

test("unknown is a dash, never 0", () => {
  for (const show of Object.values(format))
    if (typeof show === "function" && ![format.gpuName, format.listOr, format.tickLabels, format.timesWithin].includes(show))
      assert.equal(show(null), format.UNKNOWN);
  assert.equal(format.memory(0), "0 MiB");
  assert.equal(format.memory(11673.6), "11.4 GiB");
  assert.equal(format.percent(0.834), "83 %");
  assert.equal(format.duration(3675), "1:01:15");
  assert.equal(format.duration(90061), "1 d 1:01");
  assert.equal(format.duration(604800), "7 d");
  assert.equal(format.perSecond(8.3126), "8.31");
  assert.equal(format.perSecond(1234.5), "1235");
  assert.equal(format.energy(18000), "5.0 Wh");
  assert.equal(format.gpuName("NVIDIA H200"), "H200");
  assert.deepEqual([20.06, 0.3, 0.1, -0.025, 0.0099, 0.0001, 0, null].map(format.hours), [
    "20.1 h", "0.3 h", "6.0 min", "-1.5 min", "36 s", "0.0 h", "0.0 h", "–",
  ]);
  assert.deepEqual([1.014, 0.0124, -0.05, 0.00001, null].map((kwh) => format.inThousandths(kwh, "kWh", "Wh")), [
    "1.01 kWh", "12.4 Wh", "-50.0 Wh", "0.00 kWh", "–",
  ]);
});

test("an axis names hours of 24, or days", () => {
  const at = new Date(2026, 10, 22, 18, 5, 9).getTime() / 1000;
  assert.equal(format.tick(at, 10), "18:05:09");
  assert.equal(format.tick(at, 300), "18:05");
  assert.equal(format.tick(at, 86400), "Nov 22");
});

test("labels that are not of today have the day below the first of each day", () => {
  const at = (day, hour) => new Date(2026, 10, day, hour).getTime() / 1000;
  const times = [at(22, 18), at(22, 21), at(23, 0), at(23, 3)];
  assert.deepEqual(format.tickLabels(times, 10800, at(23, 4)), [["18:00", "Nov 22"], ["21:00"], ["00:00", "Nov 23"], ["03:00"]]);
  assert.deepEqual(format.tickLabels(times.slice(2), 10800, at(23, 4)), [["00:00"], ["03:00"]]);
  assert.deepEqual(format.tickLabels(times.slice(2), 10800, at(25, 4)), [["00:00", "Nov 23"], ["03:00"]]);
  assert.deepEqual(format.tickLabels([at(22, 0), at(23, 0)], 86400, at(23, 4)), [["Nov 22"], ["Nov 23"]]);
  assert.deepEqual(format.tickLabels([], 60), []);
});

test("a label that would end outside of its axis is left out", () => {
  const xOf = (at) => at * 10; // an axis of 0 to 10, 100 px wide
  assert.deepEqual(format.timesWithin([0, 2, 2.5, 5, 7.5, 8, 10], xOf, 100, 25), [2.5, 5, 7.5]);
  assert.deepEqual(format.timesWithin([1], xOf, 30, 16), []);
});
