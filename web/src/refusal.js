// SPDX-License-Identifier: Apache-2.0
// What to do about a request that failed.

export const RETRY_MS = 3000; // chosen: as the stream of events is opened again

// Is it worth asking again? A busy daemon (503) or a lost connection, which has no status, may be so for
// the moment only; a task that is not there, or not one's own, stays so.
export const isForNow = (error) => !(error.status < 500);
