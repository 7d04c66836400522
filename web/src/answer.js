// SPDX-License-Identifier: Apache-2.0
// An answer of the daemon that a component shows.
import { useEffect, useState } from "preact/hooks";

import { RETRY_MS, isForNow } from "./refusal.js";

// A request that is made again every `period` seconds while the page is looked at, and anew when `key`
// changes. `period`: null to ask until there is an answer. `ask`: null where there is nothing to ask for.
export function useAnswer(ask, period, key) {
  const [answer, setAnswer] = useState({ data: null, error: null });
  useEffect(() => {
    if (!ask) return undefined;
    let timer = null;
    let gone = false;
    const run = async () => {
      if (document.hidden) {
        document.addEventListener("visibilitychange", run, { once: true });
        return;
      }
      let wait = period && period * 1000;
      try {
        const data = await ask();
        if (!gone) setAnswer({ data, error: null });
      } catch (error) {
        if (!gone) setAnswer((before) => ({ ...before, error }));
        if (isForNow(error)) wait ??= RETRY_MS;
      }
      if (!gone && wait) timer = setTimeout(run, wait);
    };
    run();
    return () => {
      gone = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", run);
    };
  }, [key]);
  return answer;
}
