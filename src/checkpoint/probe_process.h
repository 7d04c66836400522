/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tiny process that holds GPU memory, for others to suspend, resume and move: `colloc-checkpoint
 * --probe`. It writes a pattern to a GPU and then lines to its output: "ready" (or "error TEXT"),
 * and for each line of its input "same" or "differs": what it reads back from the GPU.
 */
#ifndef COLLOC_CHECKPOINT_PROBE_PROCESS_H
#define COLLOC_CHECKPOINT_PROBE_PROCESS_H

/* Returns the exit status: 0, or 1 when CUDA cannot be used. */
int probe_process_run(void);

#endif
