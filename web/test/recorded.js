// SPDX-License-Identifier: Apache-2.0
// Answers of a daemon over emulated GPUs, which test/record has recorded.
import { readFileSync } from "node:fs";

export const recorded = (name) => JSON.parse(readFileSync(new URL(`answers/${name}.json`, import.meta.url), "utf8"));
