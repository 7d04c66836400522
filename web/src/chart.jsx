// SPDX-License-Identifier: Apache-2.0
// Curves over time by uPlot; the mean with its minimum and maximum as a band.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { isolatedOf, summaryOf, timeRange } from "./curves.js";
import { tickLabels, timesWithin } from "./format.js";
import { hatch } from "./hatch.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Horizontal lines: [{value, label}]
function drawLevels(levels) {
  return (plot) => {
    const pen = plot.ctx;
    for (const { value, label } of levels) {
      const y = plot.valToPos(value, "y", true);
      pen.save();
      pen.strokeStyle = pen.fillStyle = css("--dim");
      pen.setLineDash([6, 4]);
      pen.beginPath();
      pen.moveTo(plot.bbox.left, y);
      pen.lineTo(plot.bbox.left + plot.bbox.width, y);
      pen.stroke();
      pen.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.fillText(label, plot.bbox.left + 6, y - 4);
      pen.restore();
    }
  };
}

// Times behind the curves that are hatched: [{since, until}]; `until` null: to the end.
function drawBands(bands) {
  return (plot) => {
    const { left, top, width, height } = plot.bbox;
    const pen = plot.ctx;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.fillStyle = hatch(pen, css("--line"));
    for (const { since, until } of bands) {
      const from = plot.valToPos(since, "x", true);
      const to = until === null ? left + width : plot.valToPos(until, "x", true);
      pen.fillRect(from, top, Math.max(2, to - from), height);
    }
    pen.restore();
  };
}

// A value without neighbours is no curve: it is drawn as a point.
const pointsOf = (line) => ({ show: false, filter: (plot, series) => isolatedOf(plot.data[series]), size: 6, fill: line });

// The axis is as wide as its longest label.
function axisSize(plot, labels, axis, cycle) {
  const own = plot.axes[axis];
  if (cycle > 1) return own._size;
  const longest = (labels ?? []).reduce((most, text) => (text.length > most.length ? text : most), "");
  plot.ctx.font = own.font[0];
  return Math.ceil(plot.ctx.measureText(longest).width / devicePixelRatio + own.gap + 6);
}

// The labels of the axis of time, without those that would lie over the other axis or end outside.
function timeLabels(plot, times, axis, space, step) {
  plot.ctx.font = plot.axes[axis].font[0];
  const widths = tickLabels(times, step).flat().map((text) => plot.ctx.measureText(text).width / devicePixelRatio);
  const xOf = (at) => plot.valToPos(at, "x");
  const shown = timesWithin(times, xOf, plot.bbox.width / devicePixelRatio, Math.max(0, ...widths) / 2);
  const lines = tickLabels(shown, step);
  return times.map((at) => (lines[shown.indexOf(at)] ?? []).join("\n"));
}

// A second line, where a label has one.
const timeAxisSize = (plot, labels) => ((labels ?? []).some((text) => text.includes("\n")) ? 46 : 30);

// `range`: the first and last moment that is shown; `until`: now, or null of a task that has ended;
// `spacing`: seconds between values; `note`: why values may be missing.
export function Chart({ title, data, colour, format, levels = [], bands = [], max, steps, range, spacing, until, note }) {
  const host = useRef(null);
  const plot = useRef(null);
  const shown = useRef(range);
  shown.current = range;
  const key = JSON.stringify([title, colour, levels, bands, max]);
  useEffect(() => {
    const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
    const line = css(colour);
    const most = Math.max(...levels.map((l) => l.value), max ?? 0);
    plot.current = new uPlot(
      {
        width: host.current.clientWidth,
        height: 150,
        legend: { show: false },
        cursor: { y: false, sync: { key: "task" } },
        scales: { x: { range: () => timeRange(shown.current) }, y: { range: (u, low, high) => [0, Math.max(most, (high ?? 0) * 1.08) || 1] } },
        axes: [
          { ...axis, size: timeAxisSize, space: 70, values: timeLabels },
          { ...axis, size: axisSize, values: (u, splits) => splits.map(format), ...(steps && { incrs: steps }) },
        ],
        series: [
          {},
          { stroke: line, width: 1.5, spanGaps: false, points: pointsOf(line) },
          { stroke: "transparent", points: { show: false } },
          { stroke: "transparent", points: { show: false } },
        ],
        bands: [{ series: [3, 2], fill: line + "33" }],
        hooks: { drawClear: [drawBands(bands)], draw: [drawLevels(levels)] },
      },
      data,
      host.current,
    );
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: host.current.clientWidth, height: 150 }),
    );
    observer.observe(host.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [key]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [data]);
  const { now, mean, most } = summaryOf(data[0], data[1], spacing, until);
  return (
    <figure class="chart">
      <figcaption>
        <b>{title}</b> {now !== null && `now ${format(now)}, `}mean {format(mean)}, most {format(most)}
        {note && <span class="why-unknown"> {note}</span>}
      </figcaption>
      <div ref={host} />
    </figure>
  );
}
