// SPDX-License-Identifier: Apache-2.0
// A row of a list of tasks, and its cells. On a phone a row is a card (style.css).
import { useState } from "preact/hooks";

import { hueOf, labelOf } from "./tasks.js";

export const open = (id) => (location.hash = `#/task/${id}`);

export function State({ task }) {
  const kind =
    { RUNNING: "good", COMPLETED: "good", PENDING: "wait", COMPLETING: "good", SUSPENDED: "wait" }[task.state] ?? "bad";
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

// A text of which one line is shown; a press shows it whole.
export function Reason({ text }) {
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
export function TaskRow({ task, label = labelOf(task), onOpen = () => open(task.id), children }) {
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
