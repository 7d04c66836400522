// SPDX-License-Identifier: Apache-2.0
// The report as CSV. tests/unit/cli/test_report.py compares its sums with those of `colloc report`.
import assert from "node:assert/strict";
import test from "node:test";

import { ledgerText, reportCsv, savedOf } from "../src/report.js";

const row = (name, more) => ({
  name, tasks: 2, held: 1.5, used: 0.5, idle: 0, repeated: 0, saved: 0.25, kwh: 0.1, unknownActivity: 0, unknownEnergy: 0, jct: 0, idealJct: 0, ...more,
});
const namesOf = (csv) => csv.trim().split("\n").slice(1).map((line) => line.match(/^"((?:[^"]|"")*)"/)[1]);

test("no name of a user, project or GPU is a formula of a spreadsheet", () => {
  const names = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", 'a"b', "a,b", "ada"];
  const csv = reportCsv({ rows: names.map((name) => row(name)), total: row(null) }, 300);
  assert.deepEqual(namesOf(csv.replaceAll("\r", "R")), ["'=1+1", "'+1", "'-1", "'@SUM(1)", "'\t=1", "'R=1", 'a""b', "a,b", "ada", "all"]);
});

test("what is not known is empty", () => {
  const csv = reportCsv({ rows: [row("ada", { unknownActivity: 1 })], total: row(null, { unknownEnergy: 1 }) }, 300);
  assert.equal(csv.split("\n")[1], '"ada",2,1.5000,,,0.0000,0.2500,0.1000,0.0300,');
  assert.equal(csv.split("\n")[2], '"all",2,1.5000,0.5000,0.0000,0.0000,0.2500,,,');
});

test("the ledger says what is known: little in minutes, and what is not known is no 0", () => {
  const ledger = { shared: 0.05, measured: 0.025, unknown: 0, alone: 0.08, low: 0.06, high: 0.09, occupied: 0.05 };
  const known = row("ada", { held: 0.1, ledger });
  assert.equal(savedOf(known).toFixed(2), "0.03");
  assert.equal(
    ledgerText(known),
    "1.8 min saved (36 s to 2.4 min) of 4.8 min alone; speed beside others measured 50 %, unknown 0 %.",
  );
  const alone = row("bob", { held: 0.1, ledger: { ...ledger, shared: 0, alone: 0.1, occupied: 0.1 } });
  assert.equal(savedOf(alone), null);
  assert.match(ledgerText(alone), /^No task was beside others: nothing is known/);
  const unknown = row("eve", { held: 0.1, ledger: { ...ledger, alone: 0, unknown: 0.1 } });
  assert.equal(savedOf(unknown), null);
  assert.match(ledgerText(unknown), /not known yet/);
  assert.equal(savedOf(row("sam", { held: 0.1, ledger: { ...ledger, alone: 0.0001, unknown: 0.0999 } })), null);
});
