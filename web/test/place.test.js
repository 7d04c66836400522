// SPDX-License-Identifier: Apache-2.0
// What the address shows.
import assert from "node:assert/strict";
import test from "node:test";

import * as place from "../src/place.js";

test("places in the address", () => {
  assert.deepEqual(place.parsePlace(""), { page: "overview", id: "" });
  assert.deepEqual(place.parsePlace("#/task/12"), { page: "task", id: "12" });
});
