// SPDX-License-Identifier: Apache-2.0
// The tasks that run and wait, in the order of the queue.
import { useMemo, useState } from "preact/hooks";

import { UNKNOWN, duration, listOr, memory } from "./format.js";
import { Cell, Reason, TaskRow } from "./rows.jsx";
import { countWaiting, groupArrays, labelOf, matches, queueKey, sortLive, unusedOf } from "./tasks.js";

const SHOWN = 100;

export function Queue({ gpus, live, counts, loadAll, filter, setFilter, isSlurm }) {
  const [most, setMost] = useState(SHOWN);
  const [opened, setOpened] = useState(new Set());
  const unused = unusedOf(gpus);
  const found = useMemo(
    () => groupArrays(sortLive(live.values()).filter((task) => matches(task, filter)), queueKey, opened),
    [live, filter, opened],
  );
  return (
    <section>
      <h2>
        Tasks <span class="dim">{counts.running} running, {countWaiting(live, counts.queued)} waiting</span>
        <input id="filter" type="search" placeholder="Filter  /" value={filter} aria-label="Filter tasks" onInput={(e) => setFilter(e.target.value)} />
      </h2>
      <div class="scroll" hidden={found.length === 0}>
        <table class="cards">
          <thead>
            <tr>
              <th class="number">ID</th>
              <th>Name</th>
              <th>User</th>
              <th>State</th>
              <th>GPU</th>
              <th class="number">Memory</th>
              <th class="number">Time</th>
              <th>Why it waits, or what is odd</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map(({ task, label, members }) => (
              <TaskRow
                task={task}
                key={task.id}
                count={members.length}
                mark={unused.has(task.id) ? "unused" : null}
                label={label}
                onOpen={members.length > 1 ? () => setOpened(new Set([...opened, task.array_id])) : undefined}
              >
                <Cell label="GPU">{listOr(task.gpus, UNKNOWN)}</Cell>
                <Cell label="Memory" class="number">{memory(task.mem_used_mib ?? task.need_mib)}</Cell>
                <Cell label="Time" class="number">{duration(task.state === "PENDING" ? task.wait_s : task.exec_s)}</Cell>
                <Reason
                  text={
                    unused.has(task.id)
                      ? `has not used its GPU for ${duration(unused.get(task.id))}`
                      : task.reason_text || (task.state === "PENDING" ? task.reason : "")
                  }
                />
              </TaskRow>
            ))}
          </tbody>
        </table>
      </div>
      {found.length === 0 && (
        <p class="dim">
          No tasks wait or run{filter ? " that match the filter." : "."}
          {!filter && <> In a terminal, <code>colloc submit train.sh</code> submits one.</>}
        </p>
      )}
      {found.length > most && (
        <button onClick={() => setMost(most + 10 * SHOWN)}>Show more ({found.length - most} of those loaded)</button>
      )}
      {found.length > 0 && (
        <p class="dim note">
          This page is read-only; <code>{isSlurm ? "scancel" : "colloc cancel"} ID</code> in a terminal ends a task.
        </p>
      )}
      {loadAll && <button onClick={loadAll}>Load all tasks, not only the first {live.size}</button>}
    </section>
  );
}
