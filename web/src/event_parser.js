// SPDX-License-Identifier: Apache-2.0
// Splits a stream of server-sent events, which comes in pieces of any size, into events. EventSource
// would do it, but cannot send the session's header.

// Takes pieces of text; each returns the events that it completes: [{name, id, data}].
export function eventParser() {
  let text = "";
  return (piece) => {
    const blocks = (text + piece).split("\n\n");
    text = blocks.pop();
    return blocks.map(parseEvent);
  };
}

function parseEvent(block) {
  const event = { name: "message", id: undefined, data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue; // a comment, or a field without a value
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "event") event.name = value;
    else if (field === "id") event.id = value;
    else if (field === "data") event.data += event.data ? `\n${value}` : value;
  }
  return event;
}
