// SPDX-License-Identifier: Apache-2.0
// The secret of a login in several tabs of one browser, over pretend storage and channels.
import assert from "node:assert/strict";
import test from "node:test";

import { createSession } from "../src/session.js";

// A browser: each tab has its storage, and a message of one tab reaches all others a turn later.
function openBrowser() {
  const tabs = [];
  const open = (stored = null) => {
    const kept = new Map(stored ? [["session", stored]] : []);
    const tab = { restarts: 0, channel: {} };
    tab.channel.postMessage = (data) => {
      for (const other of tabs) if (other !== tab) setImmediate(() => other.channel.onmessage({ data }));
    };
    const storage = {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    };
    tab.session = createSession({ storage, channel: tab.channel, restart: () => tab.restarts++ });
    tab.secret = () => tab.session.headers()["Colloc-Session"];
    tabs.push(tab);
    return tab;
  };
  return { open };
}

const turn = () => new Promise((done) => setImmediate(() => setImmediate(done)));

test("a tab without a session asks the others", async () => {
  const { open } = openBrowser();
  open("a");
  const tab = open();
  assert.equal(await tab.session.find(), true);
  assert.equal(tab.secret(), "a");
  assert.equal(tab.restarts, 0);
});

test("alone, it has none", async () => {
  const { open } = openBrowser();
  const tab = open();
  assert.equal(await tab.session.find(), false);
  assert.deepEqual(tab.session.headers(), {});
});

test("a login reaches the tabs without one, and no other", async () => {
  const { open } = openBrowser();
  const [without, other, tab] = [open(), open("of another user"), open()];
  tab.session.begin("a");
  await turn();
  assert.deepEqual([without.secret(), without.restarts], ["a", 1]);
  assert.deepEqual([other.secret(), other.restarts], ["of another user", 0]);
});

test("a logout ends the same session only", async () => {
  const { open } = openBrowser();
  const [same, other, tab] = [open("a"), open("b"), open("a")];
  tab.session.end();
  await turn();
  assert.deepEqual([tab.secret(), same.secret(), other.secret()], [undefined, undefined, "b"]);
  assert.deepEqual([tab.restarts, same.restarts, other.restarts], [1, 1, 0]);
});

test("a refused secret is forgotten, unless it was replaced meanwhile", () => {
  const { open } = openBrowser();
  const tab = open("old");
  const sent = tab.session.headers();
  tab.session.begin("new");
  tab.session.forget(sent);
  assert.equal(tab.secret(), "new");
  tab.session.forget(tab.session.headers());
  assert.equal(tab.secret(), undefined);
});
