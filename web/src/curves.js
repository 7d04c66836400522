// SPDX-License-Identifier: Apache-2.0
// Curves over time: their gaps, sums and axes.

// The usual time between the known values of a series, `step` at least: what is sampled more rarely
// than the answer's step is no gap.
export function spacingOf(times, values, step) {
  const known = times.filter((_, i) => (values[i] ?? null) !== null);
  const between = known.slice(1).map((time, i) => time - known[i]);
  between.sort((a, b) => a - b);
  return Math.max(step, between[between.length >> 1] ?? 0);
}

// Times further apart than two of the series' own steps get a null between them, so that curves show
// the gap.
export function withGaps(times, columns, step) {
  const spacing = spacingOf(times, columns[0], step);
  const outTimes = [];
  const out = columns.map(() => []);
  times.forEach((time, i) => {
    if (i > 0 && time - times[i - 1] > 2.5 * spacing) {
      outTimes.push(times[i - 1] + spacing);
      out.forEach((column) => column.push(null));
    }
    outTimes.push(time);
    out.forEach((column, k) => column.push(columns[k][i] ?? null));
  });
  return [outTimes, ...out];
}

// The values without a known neighbour, which a line does not show: their indexes.
export function isolatedOf(values) {
  const isKnown = (i) => (values[i] ?? null) !== null;
  return values.map((_, i) => i).filter((i) => isKnown(i) && !isKnown(i - 1) && !isKnown(i + 1));
}

// What a chart says of its values: {now, mean, most}. `now` is null where the last known value is
// older than three of the series' steps before `until`, or where `until` is null, as of an ended task.
export function summaryOf(times, values, spacing, until) {
  const known = values.map((value, i) => [times[i], value]).filter(([, value]) => (value ?? null) !== null);
  if (known.length === 0) return { now: null, mean: null, most: null };
  const [at, last] = known[known.length - 1];
  return {
    now: until !== null && until - at <= 3 * spacing + 2 ? last : null,
    mean: known.reduce((sum, [, value]) => sum + value, 0) / known.length,
    most: Math.max(...known.map(([, value]) => value)),
  };
}

// The first and last moment of an axis for these times: a minute at least, also for a single moment.
export function timeRange(times) {
  const last = times[times.length - 1];
  return [Math.min(times[0], last - 60), last];
}

// Steps of an axis in MiB: powers of two, so that labels in GiB are whole.
export const MEMORY_STEPS = Array.from({ length: 24 }, (_, i) => 2 ** i);

// The area under a curve as an SVG path: each value lasts until the next, at most 2.5 steps, so that a
// time without a value is a gap. `most` is at the top.
export function sparkPath(times, values, { step, range, most, width, height }) {
  const [first, last] = range;
  const x = (time) => ((Math.min(last, Math.max(first, time)) - first) / Math.max(1, last - first)) * width;
  const y = (value) => height * (1 - Math.min(1, Math.max(0, value / most)));
  const round = (n) => Math.round(n * 10) / 10;
  return times
    .map((time, i) => [time, values[i] ?? null, times[i + 1] ?? time + step])
    .filter(([time, value, next]) => value !== null && next > first && time < last)
    .map(([time, value, next]) => {
      const end = next - time > 2.5 * step ? time + step : next;
      return `M${round(x(time))} ${height}V${round(y(value))}H${round(x(end))}V${height}Z`;
    })
    .join("");
}
