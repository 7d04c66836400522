// SPDX-License-Identifier: Apache-2.0
// A row of a list of tasks, and its cells. On a phone a row is a card (style.css).
import { useState } from "preact/hooks";

import { hueOf, labelOf } from "./tasks.js";

// What a Slurm controller does not have, and is not asked for.
export const NOT_RECORDED = "The controller of a Slurm cluster does not record GPUs and jobs over time.";

export const open = (id) => (location.hash = `#/task/${id}`);

const STATE_KINDS = { RUNNING: "good", COMPLETED: "good", COMPLETING: "good", PENDING: "wait", SUSPENDED: "wait", PAUSED: "wait" };

export function State({ task }) {
  const kind = STATE_KINDS[task.state] ?? "bad";
  return <span class={`state ${kind}`}>{task.state}</span>;
}

// A cell; on a phone, where a row is a card, its label stands before the value.
export function Cell({ label, children, ...more }) {
  return (
    <td data-label={label} {...more}>
      {children}
    </td>
  );
}

// A text of the daemon, in which `commands` are quoted as on a terminal.
export function Words({ text }) {
  const parts = String(text).split("`");
  if (parts.length % 2 === 0) return text; // a quote without its end
  return parts.map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part));
}

const LONG = 50; // chosen: letters that fit into the column on most screens

// A text of which one line is shown; a press, or Enter, shows it whole.
export function Reason({ text }) {
  const [isOpen, setOpen] = useState(false);
  if (!text) return <td class="why" />;
  const toggle = (event) => {
    event.stopPropagation();
    setOpen(!isOpen);
  };
  return (
    <td class={`why ${isOpen ? "whole" : ""}`}>
      <button class={`plain ${text.length > LONG ? "long" : ""}`} aria-expanded={isOpen} title={isOpen ? "" : text} onClick={toggle} onKeyDown={(e) => e.stopPropagation()}>
        <Words text={text} />
      </button>
    </td>
  );
}

// `label`: of several tasks of an array that one row shows, which `onOpen` then shows each; `mark` and
// `count`, of those tasks: beside the state.
export function TaskRow({ task, label = labelOf(task), onOpen, mark, count = 1, children }) {
  const run = onOpen ?? (() => open(task.id));
  const within = (event) => event.stopPropagation(); // the link does its part itself
  return (
    <tr tabIndex={0} data-task={task.id} onClick={run} onKeyDown={(e) => e.key === "Enter" && run()}>
      <td class="number id">
        {onOpen ? (
          <button class="plain link" title="Show each task" onClick={(e) => (within(e), onOpen())} onKeyDown={within}>{label}</button>
        ) : (
          <a href={`#/task/${task.id}`} onClick={within} onKeyDown={within}>{label}</a>
        )}
      </td>
      <td class="cut">
        <i class="dot" style={{ background: `hsl(${hueOf(task.id)} 55% 55%)` }} />
        {task.name}
      </td>
      <Cell label="User">{task.user}</Cell>
      <td>
        <State task={task} />
        {mark && <b class="mark">{mark}</b>}
        {count > 1 && <span class="count dim">{count} tasks</span>}
      </td>
      {children}
    </tr>
  );
}
