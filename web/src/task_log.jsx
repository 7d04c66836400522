// SPDX-License-Identifier: Apache-2.0
// A task's log, as it grows.
import { useEffect, useRef, useState } from "preact/hooks";

import { getLog } from "./api.js";
import { RETRY_MS, isForNow } from "./refusal.js";

export function Log({ id, ended }) {
  const [text, setText] = useState("");
  const [stream, setStream] = useState("stdout");
  const [refused, setRefused] = useState(null);
  const [isMerged, setMerged] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    let gone = false;
    let timer = null;
    let offset = null;
    setText("");
    const run = async () => {
      try {
        const piece = await getLog(id, stream, offset, 65536);
        if (gone) return;
        offset = piece.next;
        setMerged(piece.merged);
        if (piece.text) setText((before) => (before + piece.text).slice(-262144));
        setRefused(null);
        if (!piece.ended || piece.text) timer = setTimeout(run, 1000);
      } catch (error) {
        if (gone) return;
        setRefused(error.message);
        if (isForNow(error)) timer = setTimeout(run, RETRY_MS);
      }
    };
    run();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [id, stream]);
  useEffect(() => {
    const at = box.current;
    if (at && at.scrollHeight - at.scrollTop - at.clientHeight < 200) at.scrollTop = at.scrollHeight;
  }, [text]);
  return (
    <section>
      <h2>
        Log
        {isMerged && <span class="dim">output and errors, which go to one file</span>}
        <span class="spans" hidden={isMerged}>
          {["stdout", "stderr"].map((name) => (
            <button class={stream === name ? "chosen" : ""} aria-pressed={stream === name} onClick={() => setStream(name)}>
              {name}
            </button>
          ))}
        </span>
      </h2>
      {refused ? <p class="dim">{refused}</p> : <pre class="log" ref={box} tabIndex={0}>{text || (ended ? "(nothing)" : "")}</pre>}
    </section>
  );
}
