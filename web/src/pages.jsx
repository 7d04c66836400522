// SPDX-License-Identifier: Apache-2.0
// The pages: overview, a task, history, GPUs.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { useAnswer } from "./answer.js";
import { get, getLog } from "./api.js";
import { Chart } from "./chart.jsx";
import {
  UNKNOWN, degrees, duration, energy, gpuName, listOr, memory, moment, overUnder, percent, watts,
} from "./format.js";
import { Lane } from "./lane.jsx";
import { Host, Shares } from "./overview_sums.jsx";
import {
  MEMORY_STEPS, bandsOf, countWaiting, hasEnded, hueOf, lanesOf, marksOf, matches, memoryVerdict, sortLive, withGaps,
} from "./model.js";

const open = (id) => (location.hash = `#/task/${id}`);

function State({ task }) {
  const kind =
    { RUNNING: "good", COMPLETED: "good", PENDING: "wait", COMPLETING: "good", SUSPENDED: "wait" }[task.state] ?? "bad";
  return <span class={`state ${kind}`}>{task.state}</span>;
}

function TaskRow({ task, children }) {
  return (
    <tr tabIndex={0} data-task={task.id} onClick={() => open(task.id)} onKeyDown={(e) => e.key === "Enter" && open(task.id)}>
      <td class="number">
        <a href={`#/task/${task.id}`}>{task.id}</a>
      </td>
      <td class="cut">
        <i class="dot" style={{ background: `hsl(${hueOf(task.id)} 55% 55%)` }} />
        {task.name}
      </td>
      <td>{task.user}</td>
      <td>
        <State task={task} />
      </td>
      {children}
    </tr>
  );
}

// ---- overview ----

const SPANS = [["10 min", 600], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800]];
const SHOWN = 100;

function GpuHead({ gpu }) {
  return (
    <h3>
      <b>GPU {gpu.index}</b> <span class="dim">{gpuName(gpu.name)}</span>
      <span class="figures">
        {memory(gpu.mem_used_mib)} of {memory(gpu.mem_total_mib)} · SM {percent(gpu.smact)} ·{" "}
        {watts(gpu.power_w)} · {degrees(gpu.temperature_c)}
        {gpu.health !== "ok" && <span class="state bad">{gpu.health}</span>}
      </span>
    </h3>
  );
}

function Lanes({ gpus, live, span }) {
  const shown = gpus.filter((gpu) => gpu.health !== "mig-parent");
  const { data, error } = useAnswer(
    async () => {
      // Pages that ask at about the same time ask for the same.
      const since = Math.floor((Date.now() / 1000 - span) / 10) * 10;
      const [series, ended] = await Promise.all([
        get("/v1/gpus/all/series", { tasks: "yes", range: "no", since, metric: "mem_used_mib,external_mem_mib,smact,power_w" }),
        get("/v1/tasks", { state: "ended", since, limit: 500 }),
      ]);
      // A daemon that is young fills the lanes from its first sample on.
      const first = Math.min(...series.series.map((s) => s.times[0] ?? Infinity));
      const until = Date.now() / 1000;
      const from = Number.isFinite(first) ? Math.min(Math.max(since, first), until - 60) : since;
      return { since: from, until, step: series.step_s, lanes: lanesOf(series), ended: ended.tasks };
    },
    span <= 3600 ? 20 : 60, // the figures beside the lanes come with the events, each second
    `${span} ${gpus.length}`,
  );
  const tasks = useMemo(
    () => new Map([...(data?.ended ?? []), ...live.values()].map((task) => [task.id, task])),
    [data, live],
  );
  if (error && !data)
    return (
      <>
        <p class="dim note">{error.message}</p>
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

function Queue({ live, counts, loadAll, filter, setFilter }) {
  const [most, setMost] = useState(SHOWN);
  const found = useMemo(
    () => sortLive(live.values()).filter((task) => matches(task, filter)),
    [live, filter],
  );
  return (
    <section>
      <h2>
        Tasks <span class="dim">{counts.running} running, {countWaiting(live, counts.queued)} waiting</span>
        <input id="filter" type="search" placeholder="Filter  /" value={filter} aria-label="Filter tasks" onInput={(e) => setFilter(e.target.value)} />
      </h2>
      <div class="scroll" hidden={found.length === 0}>
        <table>
          <thead>
            <tr>
              <th class="number">ID</th>
              <th>Name</th>
              <th>User</th>
              <th>State</th>
              <th>GPU</th>
              <th class="number">Memory</th>
              <th class="number">Time</th>
              <th>Why it waits</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map((task) => (
              <TaskRow task={task} key={task.id}>
                <td>{listOr(task.gpus, UNKNOWN)}</td>
                <td class="number">{memory(task.mem_used_mib ?? task.need_mib)}</td>
                <td class="number">{duration(task.state === "PENDING" ? task.wait_s : task.exec_s)}</td>
                <td class="why" title={task.reason_text}>
                  {task.state === "PENDING" ? task.reason_text || task.reason : ""}
                </td>
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
      {loadAll && <button onClick={loadAll}>Load all tasks, not only the first {live.size}</button>}
    </section>
  );
}

export function Overview({ gpus, live, counts, loadAll }) {
  const [span, setSpan] = useState(3600);
  const [filter, setFilter] = useState("");
  return (
    <>
      <h2>
        GPUs
        <span class="spans" role="group" aria-label="Time shown">
          {SPANS.map(([label, seconds]) => (
            <button class={span === seconds ? "chosen" : ""} aria-pressed={span === seconds} onClick={() => setSpan(seconds)}>
              {label}
            </button>
          ))}
        </span>
      </h2>
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
      <div class="lanes">{gpus ? <Lanes gpus={gpus} live={live} span={span} /> : <p class="dim">Loading…</p>}</div>
      <Queue live={live} counts={counts} loadAll={loadAll} filter={filter} setFilter={setFilter} />
      <Host />
      <Shares />
    </>
  );
}

// ---- a task ----

const CURVES = [
  ["mem_used_mib", "GPU memory", "--memory", memory, 0, MEMORY_STEPS],
  ["smact", "SM activity", "--activity", percent, 1],
  ["smocc", "SM occupancy", "--activity", percent, 1],
  ["dram_active", "Memory bandwidth", "--activity", percent, 1],
  ["power_w", "Power", "--power", watts],
  ["pcie_rx_mib_s", "PCIe in", "--host", (v) => (v === null ? UNKNOWN : `${v.toFixed(1)} MiB/s`), 1],
  ["cpu_cores", "CPU", "--host", (v) => (v === null ? UNKNOWN : `${v.toFixed(1)} cores`), 1],
  ["host_mem_mib", "Host memory", "--host", memory, 0, MEMORY_STEPS],
  ["disk_read_mib_s", "Disk read", "--host", (v) => (v === null ? UNKNOWN : `${v.toFixed(1)} MiB/s`), 1],
];

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
  for (const series of answer.series)
    for (const [metric, title, colour, format, max, steps] of CURVES) {
      const values = series.values[metric];
      if (!values?.some((value) => value !== null)) continue;
      const data = withGaps(series.times, [values, series.min[metric], series.max[metric]], answer.step_s);
      const where = series.gpu !== null ? `GPU ${series.gpu}: ` : series.uuid ? "former GPU: " : "";
      charts.push(
        <Chart key={`${series.uuid} ${metric}`} title={where + title} data={data} colour={colour} format={format} max={max} steps={steps} levels={levelsOf(task, metric)} bands={bands} />,
      );
    }
  return <div class="charts">{charts.length ? charts : <p class="dim">No metrics are stored of this task.</p>}</div>;
}

function Log({ id, ended }) {
  const [text, setText] = useState("");
  const [stream, setStream] = useState("stdout");
  const [refused, setRefused] = useState(null);
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
        if (piece.text) setText((before) => (before + piece.text).slice(-262144));
        setRefused(null);
        if (!piece.ended || piece.text) timer = setTimeout(run, 1000);
      } catch (error) {
        if (!gone) setRefused(error.message);
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
        <span class="spans">
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

function Facts({ task }) {
  const verdict = memoryVerdict(task);
  const rows = [
    ["User", task.user],
    ["Command", task.command],
    ["Reason", [task.reason !== "None" && task.reason, task.reason_text].filter(Boolean).join(": ")],
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
    ["Energy", task.energy_j != null && energy(task.energy_j)],
    ["GPU memory crashes", task.oom_count || null],
    ["Exit", task.signal ? `signal ${task.signal}` : task.exit_code != null ? `code ${task.exit_code}` : null],
    ["Evidence", task.evidence],
  ].filter(([, value]) => value);
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name} class={String(value).length > 60 ? "wide" : ""}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

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
          <h2>Story</h2>
          <ul>
            {task.events.map((e) => (
              <li>
                <span class="dim">{moment(e.at)}</span> <b>{e.event}</b> {e.text}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
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

export function Task({ id, live }) {
  const changed = live.get(Number(id));
  const { data, error } = useAnswer(
    async () => {
      const answer = await get(`/v1/tasks/${id}`);
      return answer.task ?? answer;
    },
    null,
    `${id} ${changed?.state} ${changed?.attempt_count}`,
  );
  const ended = data ? hasEnded(data) : false;
  const series = useAnswer(() => get(`/v1/tasks/${id}/series`), ended ? null : 5, `${id} ${ended}`);
  if (error) return <p class="error">{error.message}</p>;
  if (!data) return <p class="dim">Loading…</p>;
  if (data.array?.states) return <ArrayStates array={data.array} />;
  const neighbours = [...new Set((series.data?.neighbours ?? []).map((n) => n.task))];
  return (
    <>
      <h2>
        <i class="dot" style={{ background: `hsl(${hueOf(data.id)} 55% 55%)` }} />
        Task {data.id}: {data.name} <State task={data} />
      </h2>
      <Facts task={data} />
      {neighbours.length > 0 && (
        <p>
          Beside it:{" "}
          {neighbours.map((task, i) => (
            <>
              {i ? ", " : ""}
              <a href={`#/task/${task}`}>task {task}</a>
            </>
          ))}
        </p>
      )}
      {series.data ? <Curves task={data} answer={series.data} /> : <p class="dim">{series.error?.message ?? "Loading…"}</p>}
      <Story task={data} />
      <Log id={id} ended={ended} />
    </>
  );
}

// ---- history ----

const DAYS = [["today", 1], ["7 days", 7], ["30 days", 30], ["all", 0]];
const STATES = ["ended", "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED"];

export function History({ slurm }) {
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
      {slurm && <p class="dim">Only jobs that slurmctld still knows; <code>sacct</code> has those that ended long ago.</p>}
      {error && <p class="error">{error.message}</p>}
      {data?.warning && <p class="error">{data.warning}</p>}
      <div class="scroll" hidden={tasks.length === 0}>
        <table>
          <thead>
            <tr>
              <th class="number">ID</th>
              <th>Name</th>
              <th>User</th>
              <th>State</th>
              <th>Ended</th>
              <th class="number">Waited</th>
              <th class="number">Ran</th>
              <th class="number">Peak</th>
              <th class="number">SM</th>
              <th class="number">Energy</th>
            </tr>
          </thead>
          <tbody>
            {tasks.slice(0, 500).map((task) => (
              <TaskRow task={task} key={task.id}>
                <td>{moment(task.ended_at)}</td>
                <td class="number">{duration(task.wait_s)}</td>
                <td class="number">{duration(task.exec_s)}</td>
                <td class="number">{memory(task.mem_peak_mib)}</td>
                <td class="number">{percent(task.smact_mean)}</td>
                <td class="number">{energy(task.energy_j)}</td>
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

// ---- GPUs ----

export function Gpus({ gpus }) {
  const { data } = useAnswer(() => get("/v1/gpus"), 5, "");
  const list = data?.gpus ?? gpus ?? [];
  return (
    <section>
      <h2>GPUs</h2>
      <div class="scroll">
        <table>
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
                <td>{gpu.index}</td>
                <td title={gpu.uuid}>
                  {gpuName(gpu.name)} {gpu.mig_profile ?? ""}
                </td>
                <td>
                  <span class={`state ${gpu.health === "ok" ? "good" : "bad"}`}>{gpu.health}</span> {gpu.health_text}
                  {gpu.hold_off && <div class="dim">{gpu.hold_off}</div>}
                </td>
                <td class="number">
                  {memory(gpu.mem_used_mib)} / {memory(gpu.mem_total_mib)}
                </td>
                <td class="number">{percent(gpu.smact)}</td>
                <td class="number">{watts(gpu.power_w)}</td>
                <td class="number">{degrees(gpu.temperature_c)}</td>
                <td>
                  {(gpu.tasks ?? []).map((task) => (
                    <div>
                      <a href={`#/task/${task.id}`}>{task.id}</a> {memory(task.mem_used_mib)} {percent(task.smact)}
                      {task.unused_for_long && <b class="bad"> idle for {duration(task.unused_s)}</b>}
                    </div>
                  ))}
                </td>
                <td>
                  {(gpu.foreign_processes ?? []).map((process) => (
                    <div>
                      {process.name ?? "process"} {process.pid}{" "}
                      <span class="dim">
                        {process.user ?? UNKNOWN}, {duration(process.started_at && Date.now() / 1000 - process.started_at)}
                      </span>{" "}
                      {memory(process.mem_used_mib)}
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
