/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate before the driver's synchronising calls.
 *
 * A process whose first call after a checkpoint is cuCtxSynchronize or cuStreamSynchronize dies of
 * SIGSEGV inside the driver (seen in 6 of 6 trials on driver 580; kernel launches, copies and
 * allocations wait as they should). So to suspend a process the daemon closes the gate, waits until
 * no such call is in flight, suspends, resumes, and opens the gate; meanwhile the calls wait here.
 *
 * Between gate_enter and gate_leave a call is counted in the page's `in_flight`.
 */
#ifndef COLLOC_PRELOAD_GATE_H
#define COLLOC_PRELOAD_GATE_H

#include "preload/process_state.h"

/*
 * Waits while the gate is closed and counts the call. If the daemon ends while the gate is closed,
 * the process may be suspended: it waits until a daemon opens the gate.
 *
 * state: of this process.
 *
 * Returns the page in which the call was counted, for gate_leave.
 */
struct preload_page *gate_enter(struct process_state *state);
void gate_leave(struct preload_page *page);

/* Waits while the gate is closed, without counting: for calls that the driver holds by itself. */
void gate_wait(struct process_state *state);

#endif
