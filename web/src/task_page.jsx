// SPDX-License-Identifier: Apache-2.0
// A task: its facts, its curves, what happened to it, and its log.
import { useAnswer } from "./answer.js";
import { get } from "./api.js";
import { Chart } from "./chart.jsx";
import { MEMORY_STEPS, spacingOf, withGaps } from "./curves.js";
import { UNKNOWN, duration, energy, listOr, memory, moment, overUnder, perSecond, percent, rate, watts } from "./format.js";
import { bandsOf } from "./lanes.js";
import { NOT_RECORDED, State, Words } from "./rows.jsx";
import { Log } from "./task_log.jsx";
import { commandsOf, hasEnded, hueOf, labelOf, memoryVerdict } from "./tasks.js";

const CURVES = [
  ["mem_used_mib", "GPU memory", "--memory", memory, 0, MEMORY_STEPS],
  ["smact", "SM activity", "--activity", percent, 1],
  ["smocc", "SM occupancy", "--activity", percent, 1],
  ["dram_active", "Memory bandwidth", "--activity", percent, 1],
  ["power_w", "Power", "--power", watts],
  ["pcie_rx_mib_s", "PCIe in", "--host", rate, 1],
  ["steps_per_s", "Steps a second", "--activity", perSecond, 0],
  ["cpu_cores", "CPU", "--host", (v) => (v === null ? UNKNOWN : `${v.toFixed(1)} cores`), 1],
  ["host_mem_mib", "Host memory", "--host", memory, 0, MEMORY_STEPS],
  ["disk_read_mib_s", "Disk read", "--host", rate, 1],
];
const ALONE_ONLY = ["smocc", "dram_active", "pcie_rx_mib_s"]; // docs/protocol.md: of a task on a GPU

function levelsOf(task, metric) {
  if (metric !== "mem_used_mib") return [];
  const levels = [];
  if (task.need_mib) levels.push({ value: task.need_mib, label: `requirement ${memory(task.need_mib)}` });
  if (task.estimate_mib && task.estimate_mib !== task.need_mib)
    levels.push({ value: task.estimate_mib, label: `estimate ${memory(task.estimate_mib)}` });
  return levels;
}

function Curves({ task, answer }) {
  const charts = [];
  const bands = bandsOf([{ ...task, attempts: task.attempts?.map((one) => ({ ...one, gpus: one.gpus?.slice(0, 1) })) }]);
  const times = answer.series.flatMap((series) => [series.times[0], series.times[series.times.length - 1]]).filter(Boolean);
  const range = [Math.min(...times), Math.max(...times)];
  const isShared = (gpu) => answer.neighbours?.some((one) => one.gpu === gpu);
  for (const series of answer.series)
    for (const [metric, title, colour, format, max, steps] of CURVES) {
      const values = series.values[metric];
      if (!values?.some((value) => value !== null)) continue;
      const data = withGaps(series.times, [values, series.min[metric], series.max[metric]], answer.step_s);
      const where = series.gpu !== null ? `GPU ${series.gpu}: ` : series.uuid ? "former GPU: " : "";
      charts.push(
        <Chart key={`${series.uuid} ${metric}`} title={where + title} data={data} colour={colour} format={format} max={max} steps={steps} levels={levelsOf(task, metric)} bands={bands}
          range={range} spacing={spacingOf(series.times, values, answer.step_s)} until={hasEnded(task) ? null : range[1]}
          note={ALONE_ONLY.includes(metric) && isShared(series.gpu) ? "(unknown while it shares the GPU)" : null} />,
      );
    }
  return <div class="charts">{charts.length ? charts : <p class="dim">No metrics are stored of this task.</p>}</div>;
}

function Facts({ task, start }) {
  const verdict = memoryVerdict(task);
  const rows = [
    ["User", task.user],
    ["Command", task.command],
    ["Reason", [task.reason !== "None" && task.reason, task.reason_text].filter(Boolean).join(": ")],
    ["Expected start", start && moment(start)],
    ["Submitted", moment(task.submitted_at)],
    ["Started", task.started_at && moment(task.started_at)],
    ["Ended", task.ended_at && moment(task.ended_at)],
    ["Waited", duration(task.wait_s)],
    ["Ran", duration(task.exec_s)],
    ["GPUs", listOr(task.gpus, task.gpus_requested)],
    ["Sharing", [task.sharing, task.sharing_text].filter(Boolean).join(": ")],
    ["Memory requirement", task.need_mib && `${memory(task.need_mib)}${task.estimator ? ` (${task.estimator})` : ""}`],
    ["Memory peak", task.mem_peak_mib && memory(task.mem_peak_mib)],
    ["Against the requirement", verdict && overUnder(verdict.over)],
    ["Memory note", task.mem_text],
    ["SM activity, mean", task.smact_mean != null && percent(task.smact_mean)],
    ["Steps a second", task.steps_per_s != null && perSecond(task.steps_per_s)],
    ["Steps a second, mean", task.steps_per_s_mean != null && perSecond(task.steps_per_s_mean)],
    ["Steps", task.steps],
    ["Energy", task.energy_j != null && energy(task.energy_j)],
    ["GPU memory crashes", task.oom_count || null],
    ["Exit", task.signal ? `signal ${task.signal}` : task.exit_code != null ? `code ${task.exit_code}` : null],
    ["Evidence", (task.reason_text ?? "").includes((task.evidence ?? "").slice(0, 40)) ? null : task.evidence],
  ].filter(([, value]) => value);
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name} class={String(value).length > 60 ? "wide" : ""}>
          <dt>{name}</dt>
          <dd>
            <Words text={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const EVENTS = {
  SUBMIT: "submitted", ELIGIBLE: "may start from now on", ESTIMATE: "memory estimated", PLACE: "placed on", STARTED: "started",
  UNSTARTED: "could not be started", EXITED: "its processes ended", RECOVER: "waits to be run again", REQUEUE: "back in the queue",
  RESTART: "starts again", CANCEL: "cancelled", HOLD: "held", RELEASE: "released", UPDATE: "changed", END: "ended",
  EXPIRE: "reached its time limit", EVICT: "stopped for another task", SUSPENDING: "is being suspended",
};

// An event of the daemon's log in words; the others are words already.
const eventWords = (name) => EVENTS[name] ?? name.toLowerCase().replaceAll("_", " ");

function Story({ task }) {
  return (
    <section class="story">
      {task.attempts?.length > 0 && (
        <>
          <h2>Attempts</h2>
          <ol>
            {task.attempts.map((a) => (
              <li>
                GPU {listOr(a.gpus, UNKNOWN)}, {moment(a.started_at)} to {a.ended_at ? moment(a.ended_at) : "now"}
                {a.reason && a.reason !== "None" ? <b class="bad"> {a.reason}</b> : ""}
              </li>
            ))}
          </ol>
        </>
      )}
      {task.events?.length > 0 && (
        <>
          <h2>Events</h2>
          <ul>
            {task.events.map((e) => (
              <li>
                <span class="dim">{moment(e.at)}</span> <b title={e.event}>{eventWords(e.event)}</b> {e.text}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

// Why there is no button, and what to type.
function ReadOnly({ task, isSlurm }) {
  const commands = commandsOf(task, isSlurm);
  if (commands.length === 0) return null;
  return (
    <p class="dim read-only">
      This page is read-only, so that a login in a browser can harm no task. In a terminal, its owner types{" "}
      {commands.map(([command, means], i) => (
        <span key={command}>
          {i ? ", or " : ""}
          <code>{command}</code> ({means})
        </span>
      ))}
      .
    </p>
  );
}

// An array of Slurm of which tasks wait.
function ArrayStates({ array }) {
  return (
    <>
      <h2>
        Array {array.id}: {array.name}
      </h2>
      <p>
        {Object.entries(array.states ?? {})
          .map(([state, count]) => `${count} ${state}`)
          .join(", ")}
      </p>
    </>
  );
}

const REFRESH_S = 5; // of a task that waits or runs: its reason and its use change without an event
const START_REFRESH_S = 30; // the daemon predicts the queue for each answer

// The moment at which a waiting task is expected to start; null: it does not wait, or nothing is known.
function useStart(id, isWaiting) {
  const { data } = useAnswer(
    isWaiting && (async () => (await get("/v1/starts")).starts.find((start) => start.id === Number(id))?.expected_start),
    START_REFRESH_S,
    `${id} ${isWaiting}`,
  );
  return isWaiting ? data : null;
}

export function Task({ id, live, isSlurm }) {
  const changed = live.get(Number(id));
  const { data, error } = useAnswer(
    async () => {
      const answer = await get(`/v1/tasks/${id}`);
      return answer.task ?? answer;
    },
    changed ? REFRESH_S : null,
    `${id} ${changed?.state} ${changed?.attempt_count}`,
  );
  const start = useStart(id, changed?.state === "PENDING" && isSlurm === false);
  const ended = data ? hasEnded(data) : false;
  const series = useAnswer(isSlurm === false && (() => get(`/v1/tasks/${id}/series`)), ended ? null : 5, `${id} ${ended} ${isSlurm}`);
  if (error && !data) return <p class="error">{error.message}</p>;
  if (!data) return <p class="dim">Loading…</p>;
  if (data.array?.states) return <ArrayStates array={data.array} />;
  const neighbours = [...new Map((series.data?.neighbours ?? []).map((n) => [n.task, n.label]))];
  return (
    <>
      <h2>
        <span>
          <i class="dot" style={{ background: `hsl(${hueOf(data.id)} 55% 55%)` }} />
          Task {labelOf(data)}: {data.name}
        </span>{" "}
        <State task={data} />
      </h2>
      <Facts task={data} start={start} />
      <ReadOnly task={data} isSlurm={isSlurm} />
      {neighbours.length > 0 && (
        <p>
          Beside it:{" "}
          {neighbours.map(([task, label], i) => (
            <>
              {i ? ", " : ""}
              <a href={`#/task/${task}`}>task {label}</a>
            </>
          ))}
        </p>
      )}
      {series.data ? <Curves task={data} answer={series.data} /> : <p class="dim">{isSlurm ? NOT_RECORDED : (series.error?.message ?? "Loading…")}</p>}
      <Story task={data} />
      {isSlurm === false && <Log id={id} ended={ended} />}
      {isSlurm && <p class="dim">Its output is in the file that Slurm names: <code>scontrol show job {labelOf(data)}</code>.</p>}
    </>
  );
}
