// SPDX-License-Identifier: Apache-2.0
// When the page loads its lists: one load at a time, and all tasks of a cluster only now and then.
import assert from "node:assert/strict";
import test from "node:test";

import { oneAtATime, readsAll } from "../src/loads.js";

// A load that ends when the test says so, and counts.
function slowLoad() {
  const seen = { started: 0, running: 0, end: null };
  const load = async () => {
    seen.started++;
    seen.running++;
    assert.equal(seen.running, 1, "two loads at a time");
    const error = await new Promise((end) => (seen.end = end));
    seen.running--;
    if (error) throw error;
  };
  return [load, seen];
}

const turn = () => new Promise((done) => setImmediate(done));

test("events during a load cause one more, after it", async () => {
  const [load, seen] = slowLoad();
  const ask = oneAtATime(load);
  const asked = [ask(), ask(), ask()];
  assert.equal(seen.started, 1);
  seen.end();
  await turn();
  assert.equal(seen.started, 2);
  seen.end();
  await Promise.all(asked);
  assert.equal(seen.started, 2);
  const later = ask();
  assert.equal(seen.started, 3);
  seen.end();
  await later;
  assert.equal(seen.started, 3);
});

test("a load that fails does not end all loads", async () => {
  const [load, seen] = slowLoad();
  const ask = oneAtATime(load);
  const failed = ask();
  seen.end(new Error("gone"));
  await assert.rejects(failed, /gone/);
  const later = ask();
  assert.equal(seen.started, 2);
  seen.end();
  await later;
});

test("all tasks of a cluster are read at most every 30 s", () => {
  const wanted = { isWanted: true, isSlurm: true };
  assert.equal(readsAll({ ...wanted, sinceMs: Infinity }), true);
  assert.equal(readsAll({ ...wanted, sinceMs: 3000 }), false);
  assert.equal(readsAll({ ...wanted, sinceMs: 30_000 }), true);
  assert.equal(readsAll({ isWanted: true, isSlurm: false, sinceMs: 0 }), true);
  assert.equal(readsAll({ isWanted: false, isSlurm: false, sinceMs: Infinity }), false);
});
