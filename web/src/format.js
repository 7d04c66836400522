// SPDX-License-Identifier: Apache-2.0
// Values as people read them. What is unknown (null) is "–", never 0.

export const UNKNOWN = "–";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function memory(mib) {
  if (!isNumber(mib)) return UNKNOWN;
  return mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

// How far a peak is from the memory requirement, which is in whole MiB.
export function overUnder(mib) {
  if (!isNumber(mib)) return UNKNOWN;
  if (Math.abs(mib) < 1) return "as required";
  return `${mib > 0 ? "over by" : "under by"} ${memory(Math.abs(mib))} per GPU`;
}

export const percent = (fraction) =>
  isNumber(fraction) ? `${Math.round(100 * fraction)} %` : UNKNOWN;

export const watts = (w) => (isNumber(w) ? `${Math.round(w)} W` : UNKNOWN);

// MiB/s, with a digit behind the point for small ones only: labels of axes stay short.
export const rate = (mibPerS) =>
  isNumber(mibPerS) ? `${mibPerS < 10 ? mibPerS.toFixed(1) : Math.round(mibPerS)} MiB/s` : UNKNOWN;

// Steps a second: three digits that count.
export const perSecond = (n) => (isNumber(n) ? (n < 100 ? String(Number(n.toPrecision(3))) : String(Math.round(n))) : UNKNOWN);

export const degrees = (c) => (isNumber(c) ? `${Math.round(c)} °C` : UNKNOWN);

export function energy(joules) {
  if (!isNumber(joules)) return UNKNOWN;
  const wh = joules / 3600;
  return wh < 1000 ? `${wh.toFixed(wh < 10 ? 1 : 0)} Wh` : `${(wh / 1000).toFixed(2)} kWh`;
}

// Hours, kWh and kg of reports, in a smaller unit where little would be rounded to nothing, as in
// src/cli/hours.h: "20.1 h", "1.4 min", "35 s", "0.0 h"; "1.01 kWh", "12.4 Wh", "0.00 kWh".
export function hours(h) {
  if (!isNumber(h)) return UNKNOWN;
  const s = Math.abs(h) * 3600;
  if (s < 0.5) return "0.0 h";
  if (Math.abs(h) >= 0.2) return `${h.toFixed(1)} h`;
  return s < 60 ? `${(h * 3600).toFixed(0)} s` : `${(h * 60).toFixed(1)} min`;
}

export function inThousandths(sum, whole, small) {
  if (!isNumber(sum)) return UNKNOWN;
  if (Math.abs(sum) * 1000 < 0.05) return `0.00 ${whole}`;
  return Math.abs(sum) >= 0.1 ? `${sum.toFixed(2)} ${whole}` : `${(sum * 1000).toFixed(1)} ${small}`;
}

// 75 → "1:15", 3675 → "1:01:15", 90061 → "1 d 1:01", 86400 → "1 d"
export function duration(seconds) {
  if (!isNumber(seconds)) return UNKNOWN;
  const s = Math.max(0, Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d) return h || m ? `${d} d ${h}:${two(m)}` : `${d} d`;
  return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

export function moment(seconds, now = Date.now() / 1000) {
  if (!isNumber(seconds)) return UNKNOWN;
  const date = new Date(seconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return new Date(now * 1000).toDateString() === date.toDateString() ? clock : `${day} ${clock}`;
}

const dayOf = (seconds) => new Date(seconds * 1000).toDateString(); // "Sun Nov 22 2026"

// What an axis of time says at `seconds`, where it says something every `step` seconds.
export function tick(seconds, step) {
  if (!isNumber(seconds)) return UNKNOWN;
  if (step >= 86400) return dayOf(seconds).slice(4, 10);
  const clock = new Date(seconds * 1000).toTimeString().slice(0, 8);
  return step < 60 ? clock : clock.slice(0, 5);
}

// The labels of an axis of time, each a list of lines. Where one is not of today, the first label of
// each day has the day below it.
export function tickLabels(times, step, now = Date.now() / 1000) {
  const isDated = step < 86400 && times.some((at) => dayOf(at) !== dayOf(now));
  return times.map((at, i) => {
    const isFirst = i === 0 || dayOf(times[i - 1]) !== dayOf(at);
    return isDated && isFirst ? [tick(at, step), dayOf(at).slice(4, 10)] : [tick(at, step)];
  });
}

// The times of an axis whose labels, `half` wide to each side, lie within its width. `xOf`: where a time is.
export const timesWithin = (times, xOf, width, half) => times.filter((at) => xOf(at) >= half && xOf(at) <= width - half);

export const gpuName = (name) => (name || "").replace(/^NVIDIA /, "");

export const listOr = (list, otherwise) => (list && list.length ? list.join(", ") : otherwise);
