// SPDX-License-Identifier: Apache-2.0
// The history: tasks that have ended, the newest first, in pages. The address has what is chosen.
import { useState } from "preact/hooks";

import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { UNKNOWN, duration, energy, listOr, memory, moment, percent } from "./format.js";
import { addressOf, pagesOf } from "./place.js";
import { Cell, Reason, TaskRow } from "./rows.jsx";
import { endText, endedSums, exitText, groupArrays, historyKey, matches } from "./tasks.js";

const PAGE_SIZE = 100;
const LIMIT = 1_000_000; // of the daemon: all
const DAYS = [["today", "1"], ["7 days", "7"], ["30 days", "30"], ["all", "all"]];
const DAYS_USUAL = "7";
const STATES = ["ended", "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED", "STOPPED"];

function askFor({ state = "ended", user, days = DAYS_USUAL }, after) {
  const isAll = !(Number(days) > 0);
  return get("/v1/tasks", {
    state, user, after, limit: LIMIT, page: PAGE_SIZE,
    since: isAll ? undefined : Math.floor(Date.now() / 1000 - Number(days) * 86400),
  });
}

function Filters({ query, words, setWords }) {
  const choose = (change) => (location.hash = addressOf("history", { ...query, ...change, after: undefined }));
  return (
    <div class="filters">
      <label>
        State{" "}
        <select value={query.state ?? "ended"} onChange={(e) => choose({ state: e.target.value })}>
          {STATES.map((name) => (
            <option value={name}>{name === "ended" ? "any" : name}</option>
          ))}
        </select>
      </label>
      <label>
        User <input size={10} value={query.user ?? ""} onChange={(e) => choose({ user: e.target.value.trim() })} />
      </label>
      <label>
        Ended{" "}
        <select value={query.days ?? DAYS_USUAL} onChange={(e) => choose({ days: e.target.value })}>
          {DAYS.map(([name, value]) => (
            <option value={value}>{name}</option>
          ))}
        </select>
      </label>
      <input id="filter" type="search" placeholder="Filter this page  /" aria-label="Filter the tasks of this page" value={words} onInput={(e) => setWords(e.target.value)} />
    </div>
  );
}

function EndedRow({ task, label, members, onOpen }) {
  const sums = endedSums(members);
  const isGroup = members.length > 1;
  const most = (text) => (isGroup && text !== UNKNOWN ? `≤ ${text}` : text);
  return (
    <TaskRow task={task} label={label} onOpen={isGroup ? onOpen : undefined} count={members.length}>
      <Cell label="GPU">{listOr(sums.gpus, UNKNOWN)}</Cell>
      <Cell label="Ended">{moment(sums.ended_at)}</Cell>
      <Cell label="Waited" class="number">{most(duration(sums.wait_s))}</Cell>
      <Cell label="Ran" class="number">{most(duration(sums.exec_s))}</Cell>
      <Cell label="Peak" class="number">{most(memory(sums.mem_peak_mib))}</Cell>
      <Cell label="SM" class="number">{most(percent(sums.smact_mean))}</Cell>
      <Cell label="Energy" class="number">{energy(sums.energy_j)}</Cell>
      <Cell label="Exit" class="number">{exitText(task) || UNKNOWN}</Cell>
      <Reason text={task.state === "COMPLETED" ? "" : endText(task)} />
    </TaskRow>
  );
}

function Paging({ query, pages }) {
  const to = (after) => addressOf("history", { ...query, after });
  if (pages.newer === null && pages.older === null) return null;
  return (
    <nav class="paging" aria-label="Pages of the history">
      {pages.newer !== null && <a href={to(pages.newer)}>← Newer</a>}
      <span class="dim">page {pages.number}</span>
      {pages.older !== null && <a href={to(pages.older)}>Older →</a>}
    </nav>
  );
}

export function History({ query, isSlurm }) {
  const [words, setWords] = useState("");
  const [opened, setOpened] = useState(new Set());
  const { after } = pagesOf(query.after);
  const key = JSON.stringify([query, after]);
  const { data, error } = useAnswer(async () => ({ key, ...(await askFor(query, after)) }), null, key);
  const isCurrent = data?.key === key; // else it is of what was chosen before
  const pages = pagesOf(query.after, isCurrent ? data.next : null);
  const rows = groupArrays((data?.tasks ?? []).filter((task) => matches(task, words)), historyKey, opened);
  return (
    <section>
      <h2>History</h2>
      <Filters query={query} words={words} setWords={setWords} />
      {isSlurm && <p class="dim">Only jobs that slurmctld still knows; <code>sacct</code> has those that ended long ago.</p>}
      {error && <p class="error">{error.message}</p>}
      {data?.warning && <p class="error">{data.warning}</p>}
      {!data && !error && <p class="dim">Loading…</p>}
      <div class="scroll" hidden={rows.length === 0}>
        <table class="cards dense">
          <thead>
            <tr>
              <th class="number">ID</th>
              <th>Name</th>
              <th>User</th>
              <th>State</th>
              <th>GPU</th>
              <th>Ended</th>
              <th class="number">Waited</th>
              <th class="number">Ran</th>
              <th class="number">Peak</th>
              <th class="number">SM</th>
              <th class="number">Energy</th>
              <th class="number">Exit</th>
              <th>Why it ended</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <EndedRow key={row.task.id} {...row} onOpen={() => setOpened(new Set([...opened, row.task.array_id]))} />
            ))}
          </tbody>
        </table>
      </div>
      {isCurrent && rows.length === 0 && (
        <p class="dim">{words ? "No task of this page matches the filter." : "No such task has ended in this time."}</p>
      )}
      <Paging query={query} pages={pages} />
    </section>
  );
}
