// SPDX-License-Identifier: Apache-2.0
// The GPUs: their health, and the memory of each task and process.
import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { UNKNOWN, degrees, duration, gpuName, memory, percent, watts } from "./format.js";
import { Cell } from "./rows.jsx";
import { labelOf } from "./tasks.js";

export function Gpus({ gpus, live }) {
  const { data } = useAnswer(() => get("/v1/gpus"), 5, "");
  const list = data?.gpus ?? gpus ?? [];
  return (
    <section>
      <h2>GPUs</h2>
      <div class="scroll">
        <table class="cards">
          <thead>
            <tr>
              <th>GPU</th>
              <th>Name</th>
              <th>Health</th>
              <th class="number">Memory</th>
              <th class="number">SM</th>
              <th class="number">Power</th>
              <th class="number">Temp.</th>
              <th>Tasks</th>
              <th>External processes</th>
            </tr>
          </thead>
          <tbody>
            {list.map((gpu) => (
              <tr key={gpu.uuid}>
                <td class="id">GPU {gpu.index}</td>
                <td title={gpu.uuid}>
                  {gpuName(gpu.name)} {gpu.mig_profile ?? ""}
                </td>
                <td>
                  <span class={`state ${gpu.health === "ok" ? "good" : "bad"}`}>{gpu.health}</span> {gpu.health_text}
                  {gpu.hold_off && <div class="dim">{gpu.hold_off}</div>}
                </td>
                <Cell label="Memory" class="number">
                  {memory(gpu.mem_used_mib)} / {memory(gpu.mem_total_mib)}{" "}
                  {gpu.mem_total_mib > 0 && typeof gpu.mem_used_mib === "number" && (
                    <meter min={0} max={gpu.mem_total_mib} value={gpu.mem_used_mib} aria-label="GPU memory in use" />
                  )}
                </Cell>
                <Cell label="SM" class="number">{percent(gpu.smact)}</Cell>
                <Cell label="Power" class="number">{watts(gpu.power_w)}</Cell>
                <Cell label="Temperature" class="number">{degrees(gpu.temperature_c)}</Cell>
                <Cell label="Tasks">
                  {(gpu.tasks ?? []).map((task) => (
                    <div>
                      <a href={`#/task/${task.id}`}>{live.has(task.id) ? labelOf(live.get(task.id)) : task.id}</a>{" "}
                      {live.get(task.id)?.name} <span class="dim">{live.get(task.id)?.user}</span> {memory(task.mem_used_mib)} {percent(task.smact)}
                      {task.unused_for_long && <b class="bad"> idle for {duration(task.unused_s)}</b>}
                    </div>
                  ))}
                </Cell>
                <Cell label="External">
                  {(gpu.foreign_processes ?? []).map((process) => (
                    <div>
                      {process.name ?? "process"} {process.pid}{" "}
                      <span class="dim">
                        {process.user ?? UNKNOWN}, {duration(process.started_at && Date.now() / 1000 - process.started_at)}
                      </span>{" "}
                      {memory(process.mem_used_mib)}
                    </div>
                  ))}
                </Cell>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
