// SPDX-License-Identifier: Apache-2.0
// One GPU over time on a canvas: tasks stacked by memory, below it SM activity and power.
import { useEffect, useRef, useState } from "preact/hooks";

import { duration, memory, moment, percent, tickLabels, timesWithin, watts } from "./format.js";
import { hatch } from "./hatch.js";
import { indexAt, labelBox, layerAt, powerScale, stackLane } from "./lanes.js";
import { hueOf } from "./tasks.js";

const MEMORY_HEIGHT = 96;
const LINE_HEIGHT = 26;
const GAP = 16; // above a strip, with its name and scale
const STRIP_HEIGHT = 6;
const LABEL_HEIGHT = 13; // of the letters
const AXIS_LINE = 12;
const STRIPS_HEIGHT = MEMORY_HEIGHT + 2 * (LINE_HEIGHT + GAP);
const AXIS_STEPS = [10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400];
const LABEL_WIDTH = 70;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Fills between two rows of values where both are known.
function fillBand(pen, x, y, low, high) {
  for (let i = 0; i < high.length; ) {
    if (high[i] === null) {
      i++;
      continue;
    }
    let end = i;
    while (end + 1 < high.length && high[end + 1] !== null && x(end + 1) - x(end) < 60) end++;
    pen.beginPath();
    pen.moveTo(x(i), y(low[i]));
    for (let k = i; k <= end; k++) {
      pen.lineTo(x(k), y(high[k]));
      pen.lineTo(x(k + 1), y(high[k]));
    }
    for (let k = end; k >= i; k--) {
      pen.lineTo(x(k + 1), y(low[k]));
      pen.lineTo(x(k), y(low[k]));
    }
    pen.closePath();
    pen.fill();
    i = end + 1;
  }
}

function drawMarks(pen, marks, xOf, top) {
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.font = "bold 13px system-ui, sans-serif";
  for (const mark of marks) {
    const x = xOf(mark.at);
    pen.fillStyle = mark.kind === "crash" ? css("--bad") : css("--good");
    pen.fillRect(x - 0.75, top, 1.5, MEMORY_HEIGHT);
    pen.fillText(mark.kind === "crash" ? "✕" : mark.kind === "move" ? "➜" : "↻", x, top + 1);
  }
}

const colourOf = (task) => `hsl(${hueOf(task)} 55% ${css("--lightness")})`;

// While a task gave way: its memory, as far as it stayed, is hatched, and so is a strip at the bottom.
function drawBand(pen, band, stack, x, y, left, right) {
  const layer = stack.layers.find((one) => one.task === band.task);
  const pattern = hatch(pen, css("--on-lane"));
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, Math.max(2, right - left), MEMORY_HEIGHT);
  pen.clip();
  pen.fillStyle = pattern;
  if (layer) fillBand(pen, x, y, layer.low, layer.high);
  for (const style of [colourOf(band.task), pattern]) {
    pen.fillStyle = style;
    pen.fillRect(left, MEMORY_HEIGHT - STRIP_HEIGHT, Math.max(2, right - left), STRIP_HEIGHT);
  }
  pen.restore();
}

function drawLabels(pen, stack, x, y, tasks) {
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.font = "12px system-ui, sans-serif";
  const xs = Array.from({ length: stack.times.length + 1 }, (_, i) => x(i));
  for (const layer of stack.layers) {
    const rows = (values) => values.map((value) => (value === null ? null : y(value)));
    const box = labelBox(xs, rows(layer.low), rows(layer.high), LABEL_HEIGHT);
    if (!box) continue;
    const name = tasks.get(layer.task)?.name ?? "";
    const texts = layer.task === null ? ["external"] : [`${layer.label} ${name}`, layer.label];
    const text = texts.find((one) => pen.measureText(one).width <= box.to - box.from - 8);
    pen.fillStyle = css("--on-lane");
    if (text) pen.fillText(text, box.from + 5, (box.top + box.bottom) / 2);
  }
}

// Above a strip its name, and what its full height stands for.
function drawScale(pen, name, text, width, top) {
  pen.textBaseline = "bottom";
  pen.font = "10px system-ui, sans-serif";
  pen.fillStyle = css("--dim");
  pen.textAlign = "left";
  pen.fillText(name, 0, top - 1);
  pen.textAlign = "right";
  pen.fillText(text, width, top - 1);
}

function drawLine(pen, values, x, width, top, max, colour) {
  const y = (value) => top + LINE_HEIGHT * (1 - Math.min(1, value / max));
  pen.fillStyle = css("--lane");
  pen.fillRect(0, top, width, LINE_HEIGHT);
  pen.fillStyle = colour;
  fillBand(
    pen,
    x,
    y,
    values.map(() => 0),
    values.map((value) => value ?? null),
  );
}

function draw(canvas, { lane, stack, total, powerLimit, since, until, marks, tasks, bands }) {
  const width = canvas.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const xOf = (at) => ((at - since) / (until - since)) * width;
  const step = lane.step;
  // Whole pixels: between bars that end within one the ground would be seen.
  const x = (i) =>
    Math.round(xOf(i < stack.times.length ? stack.times[i] : (stack.times[stack.times.length - 1] ?? since) + step));
  const y = (mib) => MEMORY_HEIGHT * (1 - mib / (total || 1));
  pen.fillStyle = css("--lane");
  pen.fillRect(0, 0, width, MEMORY_HEIGHT);
  for (const layer of stack.layers) {
    pen.fillStyle =
      layer.task === null ? css("--external") : colourOf(layer.task);
    fillBand(pen, x, y, layer.low, layer.high);
  }
  for (const band of bands) drawBand(pen, band, stack, x, y, xOf(band.since), xOf(band.until ?? until));
  drawLabels(pen, stack, x, y, tasks);
  drawMarks(pen, marks, xOf, 0);
  const values = lane.own?.values ?? {};
  drawLine(pen, values.smact ?? [], x, width, MEMORY_HEIGHT + GAP, 1, css("--activity"));
  const most = powerScale(powerLimit, values.power_w ?? []);
  drawLine(pen, values.power_w ?? [], x, width, MEMORY_HEIGHT + 2 * GAP + LINE_HEIGHT, most, css("--power"));
  drawAxis(pen, since, until, width, xOf);
  drawScale(pen, "SM activity", "100 %", width, MEMORY_HEIGHT + GAP);
  drawScale(pen, "Power", watts(most), width, MEMORY_HEIGHT + 2 * GAP + LINE_HEIGHT);
}

function drawAxis(pen, since, until, width, xOf) {
  const step = AXIS_STEPS.find((s) => ((until - since) / s) * LABEL_WIDTH < width) ?? AXIS_STEPS[AXIS_STEPS.length - 1];
  pen.fillStyle = css("--dim");
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "top";
  const offset = new Date(since * 1000).getTimezoneOffset() * 60;
  const times = [];
  for (let at = Math.ceil((since - offset) / step) * step + offset; at < until; at += step) times.push(at);
  pen.globalAlpha = 0.25;
  for (const at of times) pen.fillRect(xOf(at), 0, 1, STRIPS_HEIGHT);
  pen.globalAlpha = 1;
  const widths = tickLabels(times, step).flat().map((text) => pen.measureText(text).width);
  const shown = timesWithin(times, xOf, width, Math.max(0, ...widths) / 2);
  tickLabels(shown, step).forEach((lines, i) =>
    lines.forEach((text, k) => pen.fillText(text, xOf(shown[i]), STRIPS_HEIGHT + 3 + k * AXIS_LINE)),
  );
}

export function Lane({ gpu, lane, since, until, marks, tasks, bands, onOpen }) {
  const canvas = useRef(null);
  const [tip, setTip] = useState(null);
  const stack = stackLane(lane, lane.step);
  const axisLines = new Date(since * 1000).toDateString() === new Date().toDateString() ? 1 : 2;
  useEffect(() => {
    const paint = () =>
      draw(canvas.current, {
        lane, stack, total: gpu.mem_total_mib, powerLimit: gpu.power_limit_w, since, until, marks, tasks, bands,
      });
    paint();
    const observer = new ResizeObserver(paint);
    observer.observe(canvas.current);
    return () => observer.disconnect();
  });
  const pointed = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const at = since + ((event.clientX - box.left) / box.width) * (until - since);
    const i = indexAt(stack.times, at);
    if (!stack.times.length || Math.abs(stack.times[i] - at) > 3 * lane.step) return null;
    const mib = (1 - (event.clientY - box.top) / MEMORY_HEIGHT) * gpu.mem_total_mib;
    const task = event.clientY - box.top < MEMORY_HEIGHT ? layerAt(stack, i, mib) : undefined;
    return { i, task, x: event.clientX - box.left, width: box.width };
  };
  const values = lane.own?.values ?? {};
  const layer = tip && stack.layers.find((l) => l.task === tip.task);
  const known = tip?.task ? tasks.get(tip.task) : null;
  return (
    <div class="lane">
      <canvas
        ref={canvas}
        style={{ height: `${STRIPS_HEIGHT + 4 + axisLines * AXIS_LINE}px` }}
        role="img"
        aria-label={`GPU ${gpu.index}: memory by task, SM activity and power over ${duration(until - since)}`}
        onMouseMove={(event) => setTip(pointed(event))}
        onMouseLeave={() => setTip(null)}
        onClick={(event) => {
          const found = pointed(event);
          if (found?.task) onOpen(found.task);
        }}
      />
      {tip && (
        <div class="tip" style={tip.x > tip.width / 2 ? { right: `${tip.width - tip.x + 12}px` } : { left: `${tip.x + 12}px` }}>
          <b>{moment(stack.times[tip.i])}</b>
          {layer && (
            <div>
              {layer.task === null ? layer.label : `task ${layer.label} ${known?.name ?? ""}`}
              {known ? ` (${known.user})` : ""}: {memory(layer.high[tip.i] - layer.low[tip.i])}
            </div>
          )}
          <div>
            {memory(stack.used[tip.i])} used, SM activity {percent(values.smact?.[tip.i])},{" "}
            {watts(values.power_w?.[tip.i])}
          </div>
        </div>
      )}
    </div>
  );
}
