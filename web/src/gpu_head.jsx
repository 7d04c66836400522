// SPDX-License-Identifier: Apache-2.0
// The heading of a GPU: which one it is, its last sample, and its health where that is not ok.
import { degrees, gpuName, memory, percent, watts } from "./format.js";

export function GpuHead({ gpu }) {
  return (
    <h3 title={gpu.uuid}>
      <b>GPU {gpu.index}</b> <span class="dim">{gpuName(gpu.name)}</span>
      <span class="figures">
        {memory(gpu.mem_used_mib)} of {memory(gpu.mem_total_mib)} · SM {percent(gpu.smact)} ·{" "}
        {watts(gpu.power_w)} · {degrees(gpu.temperature_c)}
        {gpu.health !== "ok" && <span class={`state ${gpu.health === "mig-parent" ? "dim" : "bad"}`}>{gpu.health}</span>}
      </span>
    </h3>
  );
}
