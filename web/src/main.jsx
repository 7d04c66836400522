// SPDX-License-Identifier: Apache-2.0
// The page's frame: what is live, which page is shown, and the keys.
import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";

import { follow, get, getAllTasks, logIn, logOut } from "./api.js";
import { Gpus } from "./gpus_page.jsx";
import { History } from "./history_page.jsx";
import { oneAtATime, readsAll } from "./loads.js";
import { Overview } from "./overview_page.jsx";
import { parsePlace } from "./place.js";
import { RETRY_MS, isForNow } from "./refusal.js";
import { Report } from "./report_page.jsx";
import "./style.css";
import { Task } from "./task_page.jsx";
import { dropTasks, mergeTasks } from "./tasks.js";

const PAGES = [
  ["overview", "Overview"],
  ["history", "History"],
  ["gpus", "GPUs"],
  ["report", "Report"],
];
const PAGE_SIZE = 300; // tasks that are loaded first: a queue may have thousands

function useLive() {
  const [live, setLive] = useState({ tasks: new Map(), hasMore: false, gpus: null, counts: { running: 0, queued: 0 }, info: null, problem: null });
  const [connected, setConnected] = useState(null);
  const known = useRef(false);
  const set = (change) => setLive((before) => ({ ...before, ...change(before) }));
  const all = useRef({ isWanted: false, readAt: -Infinity, isSlurm: false });
  const again = useRef(null); // the timer of a load that the daemon had no time for
  const endedMeanwhile = useRef(new Set()); // during a load, of which the answer may still have them
  const loadOnce = async () => {
    const { isWanted, isSlurm, readAt } = all.current;
    const ended = (endedMeanwhile.current = new Set());
    const now = performance.now();
    const takesAll = readsAll({ isWanted, isSlurm, sinceMs: now - readAt });
    if (takesAll) all.current.readAt = now;
    try {
      const [list, gpus, info] = await Promise.all([
        takesAll ? getAllTasks() : get("/v1/tasks", { page: PAGE_SIZE }),
        get("/v1/gpus"),
        get("/v1/info"),
      ]);
      known.current = true;
      all.current.isSlurm = Boolean(info.slurm);
      const addsTo = isWanted && !takesAll; // the first page, to all tasks as they were read last
      set((before) => ({
        tasks: dropTasks(mergeTasks(addsTo ? before.tasks : new Map(), list.tasks), ended),
        hasMore: addsTo ? before.hasMore : Boolean(list.next),
        gpus: gpus.gpus,
        info,
        counts: { running: info.running, queued: info.queued },
        problem: null,
      }));
    } catch (error) {
      set(() => ({ problem: error }));
      clearTimeout(again.current);
      if (isForNow(error)) again.current = setTimeout(load, RETRY_MS);
    }
  };
  const load = useMemo(() => oneAtATime(loadOnce), []);
  useEffect(() => {
    // The stream begins with a reset, which loads the lists: no change can be missed between the two.
    return follow({
      onTasks: (changed) => set((before) => ({ tasks: mergeTasks(before.tasks, changed) })),
      onEnded: (ids) => {
        for (const id of ids) endedMeanwhile.current.add(id);
        set((before) => ({ tasks: dropTasks(before.tasks, ids) }));
      },
      onGpus: (data) =>
        set((before) => ({
          gpus: before.gpus?.map((gpu) => ({ ...gpu, ...data.gpus.find((g) => g.index === gpu.index) })) ?? null,
          counts: { running: data.running, queued: data.queued },
        })),
      onReset: (data) => {
        if (data.all) all.current.readAt = -Infinity;
        load();
      },
      onState: (on) => {
        setConnected(on);
        if (!on && !known.current) load(); // it says why
      },
      onRefused: (problem) => {
        setConnected(false);
        set(() => ({ problem }));
      },
    });
  }, []);
  const loadAll = () => {
    Object.assign(all.current, { isWanted: true, readAt: -Infinity });
    return load();
  };
  return { ...live, connected, loadAll };
}

function usePlace() {
  const [place, setPlace] = useState(parsePlace(location.hash));
  // With the first rendering, not after it: a change in between would be lost.
  useLayoutEffect(() => {
    const changed = () => {
      setPlace(parsePlace(location.hash));
      window.scrollTo(0, 0);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}

// 1 to 4: pages; j, k: rows; /: filter; Escape: back.
function onKey(event) {
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const page = PAGES[Number(event.key) - 1];
  const rows = [...document.querySelectorAll("tr[data-task]")];
  if (page) location.hash = `#/${page[0]}`;
  else if (event.key === "/") document.getElementById("filter")?.focus();
  else if (event.key === "Escape") history.back();
  else if ((event.key === "j" || event.key === "k") && rows.length) {
    const at = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    rows[Math.max(0, Math.min(rows.length - 1, at))].focus();
  } else return;
  event.preventDefault();
}

function setTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  dispatchEvent(new Event("resize"));
}

function Problem({ problem }) {
  return (
    <main>
      <h1>colloc</h1>
      <p class="error">{problem.message}</p>
      {problem.status === 401 && (
        <p>
          Run <code>colloc web --print-url</code> and open the address that it prints.
        </p>
      )}
    </main>
  );
}

function App() {
  const live = useLive();
  const { page, id, query } = usePlace();
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const isSlurm = live.info ? Boolean(live.info.slurm) : null; // null: not known yet
  if (live.problem && (!live.gpus || live.problem.status === 401)) return <Problem problem={live.problem} />;
  return (
    <>
      <header>
        <a class="brand" href="#/overview">
          colloc
        </a>
        <nav>
          {PAGES.filter(([name]) => name !== "report" || !isSlurm).map(([name, label], i) => (
            <a href={`#/${name}`} class={page === name ? "chosen" : ""} title={`key ${i + 1}`}>
              {label}
            </a>
          ))}
        </nav>
        <span class={`live ${live.connected ? "good" : "bad"}`} role="status">
          {live.connected === null ? "connecting" : live.connected ? "live" : "not connected"}
        </span>
        <button class="theme" onClick={setTheme} aria-label="Dark or light">
          ◐
        </button>
        <button class="theme" onClick={logOut} title="ends this login in all tabs">
          Log out
        </button>
      </header>
      <main>
        {page === "task" ? (
          <Task id={id} live={live.tasks} isSlurm={isSlurm} key={id} />
        ) : page === "history" ? (
          <History query={query} isSlurm={isSlurm} />
        ) : page === "gpus" ? (
          <Gpus gpus={live.gpus} live={live.tasks} isSlurm={isSlurm} />
        ) : page === "report" ? (
          <Report />
        ) : (
          <Overview gpus={live.gpus} live={live.tasks} counts={live.counts} loadAll={live.hasMore ? live.loadAll : null} isSlurm={isSlurm} />
        )}
      </main>
    </>
  );
}

// When the first rows were there, for measurements.
const watch = new MutationObserver(() => {
  if (!document.querySelector("tr[data-task], .lane canvas")) return;
  performance.mark("first-view");
  watch.disconnect();
});
watch.observe(document.getElementById("app"), { childList: true, subtree: true });

const stored = localStorage.getItem("theme");
if (stored === "dark" || stored === "light") document.documentElement.dataset.theme = stored;
logIn().then((refusal) => render(refusal ? <Problem problem={refusal} /> : <App />, document.getElementById("app")));
