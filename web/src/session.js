// SPDX-License-Identifier: Apache-2.0
// The secret of this login: where it is kept, and how other tabs get it.
//
// It is in sessionStorage, which belongs to the page's origin with its port, and goes to the daemon
// in a header. A cookie would go to every port of the host, so also to servers of other users there.
// A link or an image cannot carry a header: what a user downloads has to come from a request's answer.
//
//     /login?token=T   POST /login?token=T -> the secret, kept for this tab, and sent to other tabs without one
//     reload           the secret is still there
//     another tab      asks the open tabs of the same origin
//     logout           POST /logout; the other tabs forget it, too
const KEY = "session";
const ANSWER_MS = 300; // chosen: tabs in the background answer in some 10 ms

// In private windows without storage the secret lives as long as the page.
function openStorage() {
  try {
    sessionStorage.getItem(KEY);
    return sessionStorage;
  } catch {
    const kept = new Map();
    return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  }
}

export function createSession({ storage, channel, restart }) {
  let waiting = null; // of a tab that asks the others
  const read = () => storage.getItem(KEY);
  const keep = (secret) => storage.setItem(KEY, secret);

  channel.onmessage = ({ data }) => {
    const own = read();
    if (data.asks && own) channel.postMessage({ secret: own });
    else if (data.ended && data.ended === own) {
      storage.removeItem(KEY);
      restart();
    } else if (data.secret && !own) {
      keep(data.secret);
      if (waiting) waiting();
      else restart();
    }
  };

  return {
    headers: () => (read() ? { "Colloc-Session": read() } : {}),

    // A login in this tab, of which tabs without one learn.
    begin(secret) {
      keep(secret);
      channel.postMessage({ secret });
    },

    // Whether this tab or another one has a session.
    async find() {
      if (read()) return true;
      const answered = new Promise((done) => (waiting = done));
      channel.postMessage({ asks: true });
      await Promise.race([answered, new Promise((done) => setTimeout(done, ANSWER_MS))]);
      waiting = null;
      return Boolean(read());
    },

    // The daemon refused the secret that a request had: it has ended.
    forget(headers) {
      if (headers["Colloc-Session"] === read()) storage.removeItem(KEY);
    },

    end() {
      channel.postMessage({ ended: read() });
      storage.removeItem(KEY);
      restart();
    },
  };
}

export const openSession = () =>
  createSession({
    storage: openStorage(),
    channel: new BroadcastChannel("colloc"),
    restart: () => location.reload(),
  });
