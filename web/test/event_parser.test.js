// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { eventParser } from "../src/event_parser.js";

const STREAM = 'event: reset\nid: 7\ndata: {}\n\nevent: gpus\ndata: {"gpus": []}\n\n: idle\n\ndata:a\ndata: b\n\n';
const EVENTS = [
  { name: "reset", id: "7", data: "{}" },
  { name: "gpus", id: undefined, data: '{"gpus": []}' },
  { name: "message", id: undefined, data: "" },
  { name: "message", id: undefined, data: "a\nb" },
];

test("a stream in pieces of any size", () => {
  for (const size of [1, 2, 7, STREAM.length]) {
    const parse = eventParser();
    const found = [];
    for (let at = 0; at < STREAM.length; at += size) found.push(...parse(STREAM.slice(at, at + size)));
    assert.deepEqual(found, EVENTS, `pieces of ${size}`);
  }
});

test("an event without its end is none yet", () => {
  const parse = eventParser();
  assert.deepEqual(parse("event: tasks\ndata: {}\n"), []);
  assert.equal(parse("\n").length, 1);
});
