// SPDX-License-Identifier: Apache-2.0
// A curve without axes: a value over time, as a part of the most that it can be.
import { sparkPath } from "./curves.js";

const WIDTH = 300;
const HEIGHT = 32;

// `range`: its first and last moment; `most`: the value of its full height; `text`: what it shows.
export function Spark({ title, text, times, values, step, range, most, colour }) {
  return (
    <figure class="spark">
      <figcaption>
        {title} <b>{text}</b>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title} over the last hour`}>
        <path d={sparkPath(times, values, { step, range, most, width: WIDTH, height: HEIGHT })} style={{ fill: `var(${colour})` }} />
      </svg>
    </figure>
  );
}
