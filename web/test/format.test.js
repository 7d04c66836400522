// SPDX-License-Identifier: Apache-2.0
// Values as people read them.
import assert from "node:assert/strict";
import test from "node:test";

import * as format from "../src/format.js";

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

test("an axis names hours of 24, and days where they matter", () => {
  const at = new Date(2026, 10, 22, 18, 5, 9).getTime() / 1000;
  assert.equal(format.tick(at, 10), "18:05:09");
  assert.equal(format.tick(at, 300), "18:05");
  assert.equal(format.tick(at, 86400), "Nov 22");
  assert.equal(format.tick(new Date(2026, 10, 23).getTime() / 1000, 3600), "Nov 23");
});
