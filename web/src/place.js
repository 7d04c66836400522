// SPDX-License-Identifier: Apache-2.0
// What the address shows.

// Parses "#/task/12?gpu=0" into {page: "task", id: "12"}.
export function parsePlace(hash) {
  const [, page = "", id = ""] = hash.replace(/^#/, "").split("/");
  return { page: page || "overview", id };
}
