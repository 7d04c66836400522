// SPDX-License-Identifier: Apache-2.0
// The pages: overview, a task, history, GPUs.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { useAnswer } from "./answer.js";
import { get, getLog } from "./api.js";
import { Chart } from "./chart.jsx";
import {
  UNKNOWN, degrees, duration, energy, gpuName, listOr, memory, moment, overUnder, percent, rate, watts,
} from "./format.js";
import { Lane } from "./lane.jsx";
import { Host, Shares } from "./overview_sums.jsx";
import {
  MEMORY_STEPS, bandsOf, countWaiting, endText, groupArrays, hasEnded, hueOf, labelOf, lanesOf, marksOf, matches,
  memoryVerdict, sortLive, spacingOf, unusedOf, withGaps,
} from "./model.js";

const open = (id) => (location.hash = `#/task/${id}`);

function State({ task }) {
  const kind =
    { RUNNING: "good", COMPLETED: "good", PENDING: "wait", COMPLETING: "good", SUSPENDED: "wait" }[task.state] ?? "bad";
  return <span class={`state ${kind}`}>{task.state}</span>;
}

// A cell; on a phone, where a row is a card, its label stands before the value.
function Cell({ label, children, ...more }) {
  return (
    <td data-label={label} {...more}>
      {children}
    </td>
  );
}

// A text of which one line is shown; a press shows it whole.
function Reason({ text }) {
  const [isOpen, setOpen] = useState(false);
  if (!text) return <td class="why" />;
  const toggle = (event) => {
    event.stopPropagation();
    setOpen(!isOpen);
  };
  return (
    <td class={`why ${isOpen ? "whole" : ""}`}>
      <button class="plain" aria-expanded={isOpen} title={isOpen ? "" : text} onClick={toggle} onKeyDown={(e) => e.stopPropagation()}>
        {text}
      </button>
    </td>
  );
}

// `label`: of several tasks of an array that one row shows, which `onOpen` then shows each.
function TaskRow({ task, label = labelOf(task), onOpen = () => open(task.id), children }) {
  return (
    <tr tabIndex={0} data-task={task.id} onClick={onOpen} onKeyDown={(e) => e.key === "Enter" && onOpen()}>
      <td class="number id">
        <a href={`#/task/${task.id}`} onClick={(e) => { e.preventDefault(); e.stopPropagation(); onOpen(); }}>{label}</a>
      </td>
      <td class="cut">
        <i class="dot" style={{ background: `hsl(${hueOf(task.id)} 55% 55%)` }} />
        {task.name}
      </td>
      <Cell label="User">{task.user}</Cell>
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

function Queue({ gpus, live, counts, loadAll, filter, setFilter }) {
  const [most, setMost] = useState(SHOWN);
  const [opened, setOpened] = useState(new Set());
  const unused = unusedOf(gpus);
  const found = useMemo(
    () => groupArrays(sortLive(live.values()).filter((task) => matches(task, filter)), opened),
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
                      : task.state === "PENDING" ? task.reason_text || task.reason : ""
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
      <Queue gpus={gpus} live={live} counts={counts} loadAll={loadAll} filter={filter} setFilter={setFilter} />
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
  ["pcie_rx_mib_s", "PCIe in", "--host", rate, 1],
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

function Log({ id, ended }) {
  const [text, setText] = useState("");
  const [stream, setStream] = useState("stdout");
  const [refused, setRefused] = useState(null);
  const [isMerged, setMerged] = useState(false);
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
        setMerged(piece.merged);
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
        {isMerged && <span class="dim">output and errors, which go to one file</span>}
        <span class="spans" hidden={isMerged}>
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
    ["Evidence", (task.reason_text ?? "").includes((task.evidence ?? "").slice(0, 40)) ? null : task.evidence],
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
        Task {labelOf(data)}: {data.name} <State task={data} />
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

// ---- GPUs ----

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
