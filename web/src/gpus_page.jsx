// SPDX-License-Identifier: Apache-2.0
// The GPUs: for each its health, the holders of its memory, and the last hour of SM activity and power.
import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { UNKNOWN, duration, memory, percent, watts } from "./format.js";
import { GpuHead } from "./gpu_head.jsx";
import { holdersOf, restOf } from "./holders.js";
import { firstShown, lanesOf, powerScale } from "./lanes.js";
import { Cell, NOT_RECORDED } from "./rows.jsx";
import { Spark } from "./spark.jsx";
import { hueOf } from "./tasks.js";

const SPAN_S = 3600;
const LIST_PERIOD_S = 5;
const CURVES_PERIOD_S = 20; // as the lanes of the overview

const REST = "of no process that the driver lists";

const COLOURS = { external: "var(--external)", left: "var(--bad)" };

const colourOf = (holder) => (holder.task === null ? COLOURS[holder.kind] : `hsl(${hueOf(holder.task)} 55% var(--lightness))`);

// The parts of the GPU's memory, in the order of the list below it; memory in use of which the
// holder is not known is last.
function MemoryBar({ gpu, holders, rest }) {
  if (!(gpu.mem_total_mib > 0) || typeof gpu.mem_used_mib !== "number") return <p class="dim note">Memory in use: not known</p>;
  const part = (mib) => `${(100 * Math.max(0, mib)) / gpu.mem_total_mib}%`;
  const known = holders.filter((one) => one.mib !== null);
  const beyond = gpu.mem_used_mib - known.reduce((sum, one) => sum + one.mib, 0);
  return (
    <div class="bar" role="img" aria-label={`Memory: ${memory(gpu.mem_used_mib)} of ${memory(gpu.mem_total_mib)} in use`}>
      {known.map((one) => (
        <i key={one.key} title={`${one.label} ${one.name}: ${memory(one.mib)}`} style={{ width: part(one.mib), background: colourOf(one) }} />
      ))}
      {rest > 0 && <i class="rest" title={`${memory(rest)} ${REST}`} style={{ width: part(rest) }} />}
      {rest === null && beyond > 0 && <i title={`${memory(beyond)} in use`} style={{ width: part(beyond), background: "var(--memory)" }} />}
    </div>
  );
}

function HolderRow({ holder }) {
  return (
    <tr>
      <td class="id">
        <i class="dot" style={{ background: colourOf(holder) }} />
        {holder.task ? <a href={`#/task/${holder.task}`}>{holder.label}</a> : holder.label}
      </td>
      <td class="cut">{holder.name}</td>
      <Cell label="User">{holder.user ?? UNKNOWN}</Cell>
      <Cell label="Memory" class="number">{memory(holder.mib)}</Cell>
      <Cell label="SM" class="number">{percent(holder.smact)}</Cell>
      <Cell label="Time" class="number">{duration(holder.since && Date.now() / 1000 - holder.since)}</Cell>
      <td class="why">
        {holder.unused !== null ? <b class="wait">unused for {duration(holder.unused)}</b> : holder.note}
      </td>
    </tr>
  );
}

function Holders({ holders }) {
  return (
    <table class="cards holders">
      <thead>
        <tr>
          <th>Task</th>
          <th>Name</th>
          <th>User</th>
          <th class="number">Memory</th>
          <th class="number">SM</th>
          <th class="number">Time</th>
          <th />
        </tr>
      </thead>
      <tbody>
        {holders.map((holder) => (
          <HolderRow holder={holder} key={holder.key} />
        ))}
      </tbody>
    </table>
  );
}

function Curves({ gpu, lane, step, range }) {
  const { times = [], values = {} } = lane?.own ?? {};
  const most = powerScale(gpu.power_limit_w, values.power_w ?? []);
  const common = { times, step, range };
  const isKnown = (value, list) => (value ?? null) !== null || list?.some((one) => one !== null);
  return (
    <div class="sparks">
      {isKnown(gpu.smact, values.smact) && <Spark title="SM activity" text={percent(gpu.smact)} values={values.smact ?? []} most={1} colour="--activity" {...common} />}
      {isKnown(gpu.power_w, values.power_w) && <Spark title="Power" text={`${watts(gpu.power_w)} of ${watts(gpu.power_limit_w)}`} values={values.power_w ?? []} most={most} colour="--power" {...common} />}
    </div>
  );
}

function Gpu({ gpu, live, series }) {
  const holders = holdersOf(gpu, live);
  const rest = restOf(gpu, holders);
  return (
    <section class="gpu" data-gpu={gpu.index}>
      <GpuHead gpu={gpu} />
      <MemoryBar gpu={gpu} holders={holders} rest={rest} />
      {series && <Curves gpu={gpu} lane={series.lanes.get(gpu.index)} step={series.step} range={series.range} />}
      {[gpu.health_text, gpu.hold_off, gpu.activity_text].filter(Boolean).map((text) => (
        <p class="dim note" key={text}>{text}</p>
      ))}
      {holders.length > 0 && <Holders holders={holders} />}
      {rest > 0 && (
        <p class="dim note">
          <i class="swatch rest" /> {memory(rest)} {REST}
        </p>
      )}
      {gpu.foreign_processes === null && gpu.health !== "mig-parent" && <p class="dim note">The driver does not list processes.</p>}
    </section>
  );
}

async function askForSeries() {
  const since = Math.floor((Date.now() / 1000 - SPAN_S) / 10) * 10; // pages that ask at about the same time ask for the same
  const answer = await get("/v1/gpus/all/series", { range: "no", since, metric: "smact,power_w" });
  const until = Date.now() / 1000;
  return { lanes: lanesOf(answer), step: answer.step_s, range: [firstShown(answer, since, until), until] };
}

export function Gpus({ gpus, live, isSlurm }) {
  const { data } = useAnswer(() => get("/v1/gpus"), LIST_PERIOD_S, "");
  const series = useAnswer(isSlurm === false && askForSeries, CURVES_PERIOD_S, isSlurm);
  const list = data?.gpus ?? gpus;
  return (
    <>
      <h2>
        GPUs {series.data && <span class="dim">now, and the last hour</span>}
      </h2>
      {isSlurm && <p class="dim note">{NOT_RECORDED}</p>}
      {series.error && !series.data && <p class="dim note">{series.error.message}</p>}
      <div class="lanes gpus">
        {list ? list.map((gpu) => <Gpu gpu={gpu} live={live} series={series.data} key={gpu.uuid} />) : <p class="dim">Loading…</p>}
      </div>
    </>
  );
}
