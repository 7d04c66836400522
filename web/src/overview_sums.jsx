// SPDX-License-Identifier: Apache-2.0
// Below the queue: the server's own memory and CPUs, and whose task is next.
import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { duration, hours, memory } from "./format.js";
import { Cell } from "./rows.jsx";

const PERIOD_S = 60; // chosen: both change slowly, and many pages may be open

function Amount({ label, text, value, max }) {
  return (
    <p class="amount">
      <span class="dim">{label}</span> <meter min={0} max={max} high={0.9 * max} value={value} aria-label={label} /> {text}
    </p>
  );
}

export function Host() {
  const { data } = useAnswer(() => get("/v1/info"), PERIOD_S, "");
  const host = data?.host;
  if (!host) return null;
  const used = host.memory_mib - host.memory_available_mib;
  return (
    <section class="host">
      <h2>
        Host <span class="dim">policy {data.policy}</span>
      </h2>
      <Amount label="Memory in use" text={`${memory(used)} of ${memory(host.memory_mib)}`} value={used} max={host.memory_mib} />
      <Amount
        label="Memory that running tasks requested"
        text={`${memory(host.memory_tasks_mib)} of ${memory(host.memory_tasks_max_mib)}`}
        value={host.memory_tasks_mib}
        max={host.memory_tasks_max_mib}
      />
      <Amount
        label="CPUs that running tasks requested"
        text={`${host.cpus_tasks} of ${host.cpus_tasks_max}`}
        value={host.cpus_tasks}
        max={host.cpus_tasks_max}
      />
    </section>
  );
}


function ShareRow({ user }) {
  return (
    <tr>
      <th scope="row">{user.user}</th>
      <Cell label="Rank" class="number">{user.fair_rank}</Cell>
      <Cell label="Project">{user.project}</Cell>
      <Cell label="Shares" class="number">{user.shares}</Cell>
      <Cell label="Used lately" class="number">{hours(user.usage)}</Cell>
      <Cell label="GPUs" class="number">{user.gpus}</Cell>
      <Cell label="Running" class="number">{user.running}</Cell>
      <Cell label="Waiting" class="number">{user.pending}</Cell>
    </tr>
  );
}

export function Shares() {
  const { data } = useAnswer(() => get("/v1/share"), PERIOD_S, "");
  const users = [...(data?.users ?? [])].sort((a, b) => a.fair_rank - b.fair_rank || a.user.localeCompare(b.user));
  if (users.length === 0) return null;
  return (
    <section class="shares">
      <h2>
        Shares <span class="dim">{data.order === "fair" ? "the task of rank 1 is next" : `the queue's order is ${data.order}`}</span>
      </h2>
      <div class="scroll">
        <table class="cards">
          <thead>
            <tr>
              <th>User</th>
              <th class="number">Rank</th>
              <th>Project</th>
              <th class="number">Shares</th>
              <th class="number">Used lately</th>
              <th class="number">GPUs</th>
              <th class="number">Running</th>
              <th class="number">Waiting</th>
            </tr>
          </thead>
          <tbody>
            {users.map((user) => (
              <ShareRow user={user} key={user.uid} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="dim note">
        Used lately: charged GPU hours, which count half after {duration(data.half_life_s)}. GPUs: that the user's tasks hold,
        a shared one for each task.
      </p>
    </section>
  );
}
