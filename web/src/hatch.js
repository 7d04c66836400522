// SPDX-License-Identifier: Apache-2.0
// A hatched pattern: the time in which a task was suspended or paused.
export function hatch(context, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  for (const [x, y] of [
    [-2, 2],
    [-2, 10],
    [6, 10],
  ]) {
    pen.moveTo(x, y);
    pen.lineTo(x + 8, y - 8);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
