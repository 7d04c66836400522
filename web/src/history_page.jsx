// SPDX-License-Identifier: Apache-2.0
// The history: tasks that have ended.
import { useState } from "preact/hooks";

import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { UNKNOWN, duration, energy, listOr, memory, moment, percent } from "./format.js";
import { Cell, Reason, TaskRow } from "./rows.jsx";
import { endText, matches } from "./tasks.js";

const DAYS = [["today", 1], ["7 days", 7], ["30 days", 30], ["all", 0]];
const STATES = ["ended", "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED"];

export function History({ isSlurm }) {
  const [state, setState] = useState("ended");
  const [user, setUser] = useState("");
  const [days, setDays] = useState(7);
  const [words, setWords] = useState("");
  const { data, error } = useAnswer(
    () =>
      get("/v1/tasks", {
        state, user, limit: 500,
        since: days ? Math.floor(Date.now() / 1000 - days * 86400) : undefined,
      }),
    null,
    `${state} ${user} ${days}`,
  );
  const tasks = (data?.tasks ?? []).filter((task) => matches(task, words));
  return (
    <section>
      <h2>History</h2>
      <div class="filters">
        <label>
          State{" "}
          <select value={state} onChange={(e) => setState(e.target.value)}>
            {STATES.map((name) => (
              <option value={name}>{name === "ended" ? "any" : name}</option>
            ))}
          </select>
        </label>
        <label>
          User <input size={10} value={user} onChange={(e) => setUser(e.target.value.trim())} />
        </label>
        <label>
          Ended{" "}
          <select value={days} onChange={(e) => setDays(Number(e.target.value))}>
            {DAYS.map(([name, n]) => (
              <option value={n}>{name}</option>
            ))}
          </select>
        </label>
        <input id="filter" type="search" placeholder="Filter  /" aria-label="Filter tasks" value={words} onInput={(e) => setWords(e.target.value)} />
      </div>
      {isSlurm && <p class="dim">Only jobs that slurmctld still knows; <code>sacct</code> has those that ended long ago.</p>}
      {error && <p class="error">{error.message}</p>}
      {data?.warning && <p class="error">{data.warning}</p>}
      <div class="scroll" hidden={tasks.length === 0}>
        <table class="cards">
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
              <th>Why it ended</th>
            </tr>
          </thead>
          <tbody>
            {tasks.slice(0, 500).map((task) => (
              <TaskRow task={task} key={task.id}>
                <Cell label="GPU">{listOr(task.gpus?.length ? task.gpus : task.attempts?.[task.attempts.length - 1]?.gpus, UNKNOWN)}</Cell>
                <Cell label="Ended">{moment(task.ended_at)}</Cell>
                <Cell label="Waited" class="number">{duration(task.wait_s)}</Cell>
                <Cell label="Ran" class="number">{duration(task.exec_s)}</Cell>
                <Cell label="Peak" class="number">{memory(task.mem_peak_mib)}</Cell>
                <Cell label="SM" class="number">{percent(task.smact_mean)}</Cell>
                <Cell label="Energy" class="number">{energy(task.energy_j)}</Cell>
                <Reason text={task.state === "COMPLETED" ? "" : endText(task)} />
              </TaskRow>
            ))}
          </tbody>
        </table>
      </div>
      {data && tasks.length === 0 && <p class="dim">No such task has ended in this time.</p>}
      {data?.tasks.length === 500 && <p class="dim">The last 500 are shown; `colloc history` has all.</p>}
    </section>
  );
}
