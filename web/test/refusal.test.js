// SPDX-License-Identifier: Apache-2.0
// Which failures of a request are worth another one.
import assert from "node:assert/strict";
import test from "node:test";

import { isForNow } from "../src/refusal.js";

test("a busy daemon and a lost connection are asked again, a refusal is not", () => {
  assert.equal(isForNow({ status: 503 }), true);
  assert.equal(isForNow(new TypeError("Failed to fetch")), true);
  for (const status of [400, 401, 403, 404, 409]) assert.equal(isForNow({ status }), false, `status ${status}`);
});
