// SPDX-License-Identifier: Apache-2.0
// What the address shows, so that a link or the browser's "back" shows it again:
//
//     #/task/12
//     #/history?state=FAILED&user=ada&days=30&after=2.812.999900
//
// A list that comes in pages has in `after` the places that the daemon gave as `next`, of each page from
// the second to the one shown.

// Parses the part of the address from "#" on into {page, id, query}.
export function parsePlace(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const [, page = "", id = ""] = path.split("/");
  return { page: page || "overview", id, query: Object.fromEntries(new URLSearchParams(query)) };
}

// The address of a page, without what is empty in its query.
export function addressOf(page, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return `#/${page}` + (given.length ? `?${new URLSearchParams(given)}` : "");
}

// The pages of a list around the one shown: {number, after, newer, older}. `after`: where it begins,
// undefined for the first; `newer`, `older`: what `after` of the address is there, null where there is no
// such page. `next`: of the daemon's answer.
export function pagesOf(text, next) {
  const places = (text ?? "").split(",").filter(Boolean);
  return {
    number: places.length + 1,
    after: places[places.length - 1],
    newer: places.length ? places.slice(0, -1).join(",") : null,
    older: next ? [...places, next].join(",") : null,
  };
}
