// SPDX-License-Identifier: Apache-2.0
// When the page loads its lists. Each list costs the daemon work for every open page, and an answer
// may come later than the next event that asks for one.

// Loads run one at a time. What is asked for during one is loaded once more, after it.
export function oneAtATime(load) {
  let running = null;
  let isWanted = false;
  const run = async () => {
    try {
      do {
        isWanted = false;
        await load();
      } while (isWanted);
    } finally {
      running = null;
    }
  };
  return () => {
    isWanted = true;
    running ??= run();
    return running;
  };
}

const ALL_PERIOD_MS = 30_000; // chosen: ten of the controller's events

// Does a load read all tasks, or only the first page? The controller of a Slurm cluster asks for a
// load every three seconds, and names jobs that ended; all its tasks are read again after a while
// only, for those that came at the end of the queue.
export function readsAll({ isWanted, isSlurm, sinceMs }) {
  return isWanted && (!isSlurm || sinceMs >= ALL_PERIOD_MS);
}
