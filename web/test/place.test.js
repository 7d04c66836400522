// SPDX-License-Identifier: Apache-2.0
// What the address shows.
import assert from "node:assert/strict";
import test from "node:test";

import * as place from "../src/place.js";

test("places in the address", () => {
  assert.deepEqual(place.parsePlace(""), { page: "overview", id: "", query: {} });
  assert.deepEqual(place.parsePlace("#/task/12"), { page: "task", id: "12", query: {} });
  const query = { state: "FAILED", user: "a&b", after: "2.5.9,2.1.8" };
  assert.deepEqual(place.parsePlace(place.addressOf("history", { ...query, days: "" })), { page: "history", id: "", query });
  assert.equal(place.addressOf("history"), "#/history");
});

test("pages of a list go both ways", () => {
  assert.deepEqual(place.pagesOf(undefined, null), { number: 1, after: undefined, newer: null, older: null });
  assert.deepEqual(place.pagesOf("", "2.9.1"), { number: 1, after: undefined, newer: null, older: "2.9.1" });
  assert.deepEqual(place.pagesOf("2.9.1", "2.5.1"), { number: 2, after: "2.9.1", newer: "", older: "2.9.1,2.5.1" });
  assert.deepEqual(place.pagesOf("2.9.1,2.5.1", undefined), { number: 3, after: "2.5.1", newer: "2.9.1", older: null });
});
