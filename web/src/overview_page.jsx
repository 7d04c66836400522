// SPDX-License-Identifier: Apache-2.0
// The overview: a lane for each GPU over the time chosen, the queue, the host, and the shares.
import { useMemo, useState } from "preact/hooks";

import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { GpuHead } from "./gpu_head.jsx";
import { Lane } from "./lane.jsx";
import { bandsOf, firstShown, lanesOf, marksOf } from "./lanes.js";
import { Host, Shares } from "./overview_sums.jsx";
import { Queue } from "./queue.jsx";
import { NOT_RECORDED, open } from "./rows.jsx";

const SPANS = [["10 min", 600], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800]];

function Lanes({ gpus, live, span, isSlurm }) {
  const shown = gpus.filter((gpu) => gpu.health !== "mig-parent");
  const { data, error } = useAnswer(
    isSlurm === false && (async () => {
      // Pages that ask at about the same time ask for the same.
      const since = Math.floor((Date.now() / 1000 - span) / 10) * 10;
      const [series, ended] = await Promise.all([
        get("/v1/gpus/all/series", { tasks: "yes", range: "no", since, metric: "mem_used_mib,external_mem_mib,smact,power_w" }),
        get("/v1/tasks", { state: "ended", since, limit: 500 }),
      ]);
      const until = Date.now() / 1000;
      return { since: firstShown(series, since, until), until, step: series.step_s, lanes: lanesOf(series), ended: ended.tasks };
    }),
    span <= 3600 ? 20 : 60, // the figures beside the lanes come with the events, each second
    `${span} ${gpus.length} ${isSlurm}`,
  );
  const tasks = useMemo(
    () => new Map([...(data?.ended ?? []), ...live.values()].map((task) => [task.id, task])),
    [data, live],
  );
  if (isSlurm || (error && !data))
    return (
      <>
        <p class="dim note">{isSlurm ? NOT_RECORDED : error.message}</p>
        {shown.map((gpu) => (
          <section class="gpu" key={gpu.uuid}>
            <GpuHead gpu={gpu} />
            <p class="dim note">{[gpu.health_text, gpu.hold_off].filter(Boolean).join("; ")}</p>
          </section>
        ))}
      </>
    );
  if (!data) return <p class="dim">Loading…</p>;
  const marks = marksOf(tasks.values()).filter((mark) => mark.at >= data.since);
  const bands = bandsOf(tasks.values()).filter((band) => (band.until ?? Infinity) >= data.since);
  return shown.map((gpu) => (
    <section class="gpu" key={gpu.uuid}>
      <GpuHead gpu={gpu} />
      <Lane
        gpu={gpu}
        lane={{ step: data.step, ...(data.lanes.get(gpu.index) ?? { own: null, tasks: [] }) }}
        since={data.since}
        until={data.until}
        marks={marks.filter((mark) => mark.gpu === gpu.index)}
        tasks={tasks}
        bands={bands.filter((band) => band.gpu === gpu.index)}
        onOpen={open}
      />
      {gpu.hold_off && <p class="dim note">{gpu.hold_off}</p>}
    </section>
  ));
}

function Spans({ span, setSpan }) {
  return (
    <span class="spans" role="group" aria-label="Time shown">
      {SPANS.map(([label, seconds]) => (
        <button class={span === seconds ? "chosen" : ""} aria-pressed={span === seconds} onClick={() => setSpan(seconds)}>
          {label}
        </button>
      ))}
    </span>
  );
}

function Legend() {
  return (
    <p class="legend dim">
      <span>Memory by task</span>
      <span><i class="swatch external" /> external</span>
      <span><i class="swatch activity" /> SM activity</span>
      <span><i class="swatch power" /> power</span>
      <span><b class="bad">✕</b> crashed</span>
      <span><b class="good">↻</b> recovered</span>
      <span><b class="good">➜</b> on another GPU</span>
      <span><i class="swatch hatched" /> suspended or paused</span>
    </p>
  );
}

export function Overview({ gpus, live, counts, loadAll, isSlurm }) {
  const [span, setSpan] = useState(3600);
  const [filter, setFilter] = useState("");
  return (
    <>
      <h2>
        GPUs
        {!isSlurm && <Spans span={span} setSpan={setSpan} />}
      </h2>
      {!isSlurm && <Legend />}
      <div class="lanes">{gpus ? <Lanes gpus={gpus} live={live} span={span} isSlurm={isSlurm} /> : <p class="dim">Loading…</p>}</div>
      <Queue gpus={gpus} live={live} counts={counts} loadAll={loadAll} filter={filter} setFilter={setFilter} isSlurm={isSlurm} />
      <Host />
      {isSlurm === false && <Shares />}
    </>
  );
}
