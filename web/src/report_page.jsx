// SPDX-License-Identifier: Apache-2.0
// The page of `colloc report`: what a month's tasks held and used of the GPUs.
import { useMemo, useState } from "preact/hooks";

import { useAnswer } from "./answer.js";
import { get, getAllTasks } from "./api.js";
import { UNKNOWN, hours, inThousandths } from "./format.js";
import { atLeast, fairnessOf, ledgerText, makeReport, monthsUntil, reportCsv, savedOf } from "./report.js";
import { Cell } from "./rows.jsx";

const MONTHS = 12;
const KEYS = [["user", "User"], ["project", "Project"], ["gpu", "GPU"]];
const COLUMNS = [
  ["Tasks", "tasks that held a GPU"],
  ["Held", "GPU hours that tasks held, each task counted for itself"],
  ["Used", "SM activity over time: an hour at 60 % is 0.6"],
  ["Idle", "of the held hours, those of tasks with a mean SM activity under 1 %"],
  ["Repeated", "of the held hours, those of attempts that were run again"],
  ["Saved", "what sharing saved against a GPU for each task, if none were slower beside others; the figure takes their speeds into account"],
  ["Energy", "the tasks' part of what the GPUs drew"],
  ["CO2", "by the setting co2-per-kwh"],
  ["Fairness", "mean completion time relative to that alone on an equal share of the GPUs"],
];

// What the cells of a row say, in the order of COLUMNS.
function cellsOf(row, co2, countsTasks) {
  const fairness = fairnessOf(row);
  return [
    countsTasks ? row.tasks : UNKNOWN,
    hours(row.held),
    atLeast(hours(row.used), row.unknownActivity, row),
    atLeast(hours(row.idle), row.unknownActivity, row),
    hours(row.repeated),
    hours(row.saved),
    atLeast(inThousandths(row.kwh, "kWh", "Wh"), row.unknownEnergy, row),
    atLeast(inThousandths((row.kwh * co2) / 1000, "kg", "g"), row.unknownEnergy, row),
    fairness === null ? UNKNOWN : fairness.toFixed(2),
  ];
}

function Row({ row, co2, countsTasks }) {
  return (
    <tr>
      <th scope="row">{row.name ?? "All"}</th>
      {cellsOf(row, co2, countsTasks).map((text, i) => (
        <Cell label={COLUMNS[i][0]} class="number" key={COLUMNS[i][0]}>
          {text}
        </Cell>
      ))}
    </tr>
  );
}

// Of each row: the part of its held hours with SM activity, and the rest.
function Figure({ rows }) {
  const most = Math.max(...rows.map((row) => row.held), 0);
  if (most <= 0) return null;
  return (
    <figure class="sums">
      <figcaption class="legend dim">
        <span><i class="swatch activity" /> used GPU hours</span>
        <span><i class="swatch external" /> held, but not used or not known</span>
      </figcaption>
      {rows.map((row) => (
        <div key={row.name} title={`${row.name}: ${hours(row.held)} held, ${atLeast(hours(row.used), row.unknownActivity, row)} used`}>
          <span>{row.name}</span>
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${row.name}: ${hours(row.held)} held`}>
            <rect class="held" width={(100 * row.held) / most} height="10" />
            <rect class="used" width={(100 * Math.min(row.used, row.held)) / most} height="10" />
          </svg>
          <span class="number">{hours(row.held)}</span>
        </div>
      ))}
    </figure>
  );
}

// Of each row: what its work would take on GPUs without others, and how much of that sharing saved.
function Ledger({ rows, total }) {
  const known = rows.filter((row) => savedOf(row) !== null);
  const most = Math.max(...known.map(({ ledger }) => Math.max(ledger.alone, ledger.occupied)), 0);
  if (!known.length) return rows.length > 0 && <p class="dim">{ledgerText(total)}</p>;
  return (
    <figure class="sums ledger">
      <figcaption class="legend dim">
        <span><i class="swatch activity" /> GPU hours that tasks occupied</span>
        <span><i class="swatch external" /> saved by sharing, against tasks alone on their GPUs</span>
      </figcaption>
      {known.map((row) => (
        <div key={row.name} title={`${row.name}: ${ledgerText(row)}`}>
          <span>{row.name}</span>
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${row.name}: ${ledgerText(row)}`}>
            <rect class="held" width={(100 * row.ledger.alone) / most} height="10" />
            <rect class="used" width={(100 * row.ledger.occupied) / most} height="10" />
          </svg>
          <span class="number">{hours(savedOf(row))}</span>
        </div>
      ))}
      <p class="dim">All: {ledgerText(total)}</p>
    </figure>
  );
}

function saveCsv(report, co2, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([reportCsv(report, co2)], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function Choice({ label, value, choices, onChange }) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {choices.map(([key, text]) => (
          <option value={key}>{text}</option>
        ))}
      </select>
    </label>
  );
}

// Tasks that ended before the period held no GPU in it.
async function askFor(month) {
  const [list, gpus, share, info] = await Promise.all([
    getAllTasks({ state: "all", limit: 1000000, since: Math.floor(month.from) }),
    get("/v1/gpus"),
    get("/v1/share"),
    get("/v1/info"),
  ]);
  const { tasks, warning } = list;
  // Before the first task colloc had no GPU to give.
  const from = Math.min(Math.max(month.from, info.first_submitted_at ?? 0), month.until);
  return { month, from, tasks, warning, gpus: gpus.gpus, users: share.users, co2: info.settings.co2_g_per_kwh };
}

export function Report() {
  const [months] = useState(() => monthsUntil(new Date(), MONTHS));
  const [chosen, setChosen] = useState(months[0].label);
  const [by, setBy] = useState("user");
  const { data, error } = useAnswer(() => askFor(months.find((month) => month.label === chosen)), null, chosen);
  const report = useMemo(
    () => data && makeReport({ ...data, until: data.month.until, by }),
    [data, by],
  );
  const all = data && report.gpuCount * ((data.month.until - data.from) / 3600);
  return (
    <section class="report">
      <h2>Report</h2>
      <div class="filters">
        <Choice label="Month" value={chosen} choices={months.map(({ label }) => [label, label])} onChange={setChosen} />
        <Choice label="By" value={by} choices={KEYS} onChange={setBy} />
      </div>
      {error && <p class="error">{error.message}</p>}
      {data?.warning && <p class="error">{data.warning}</p>}
      {!data && !error && <p class="dim">Loading…</p>}
      {report && (
        <>
          <p>
            {report.gpuCount} GPUs, free for {hours(report.freeHours)} of {hours(all)} of GPU time
          </p>
          <Figure rows={report.rows} />
          <Ledger rows={report.rows} total={report.total} />
          <div class="scroll">
            <table class="cards">
              <thead>
                <tr>
                  <th>{KEYS.find(([key]) => key === by)[1]}</th>
                  {COLUMNS.map(([name, meaning]) => (
                    <th class="number" title={meaning}>
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {report.rows.map((row) => (
                  <Row key={row.name} row={row} co2={data.co2} countsTasks={by !== "gpu"} />
                ))}
                <Row row={report.total} co2={data.co2} countsTasks />
              </tbody>
            </table>
          </div>
          <p>
            <button onClick={() => saveCsv(report, data.co2, `colloc-report-${chosen}-${by}.csv`)}>Save as CSV</button>
          </p>
          <dl class="meanings dim">
            {COLUMNS.map(([name, meaning]) => (
              <div>
                <dt>{name}</dt> <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
          <p class="dim">
            As <code>colloc report</code> prints it.
          </p>
        </>
      )}
    </section>
  );
}
