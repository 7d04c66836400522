/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stub before each function of the driver that a program finds and that has no hook, and before
 * those of NVML: the first call of NVML in a suspended process waits in the driver, too (seen on
 * driver 580: PyTorch counts GPUs by it).
 *
 * A stub needs no knowledge of the function: it notes in the page that the process calls CUDA,
 * waits while the gate is closed, and jumps to the function with all its arguments untouched. So
 * the daemon sees when a process was last at work, whatever it calls and whatever runs beside it on
 * the GPU, and that a suspended one wants its GPU back.
 *
 * A call costs about 2 ns more than without. Unlike the calls of gate.h it is not counted while it
 * runs: the driver itself makes it wait in mid-suspension.
 *
 * The carrier (carrier.h) takes memory away without the driver's help, so in a process whose memory
 * it carries each call of the driver is counted from its entry to its return, and is held at the
 * gate before it is counted: once the gate is closed and the count is 0, no call is in the driver.
 */
#ifndef COLLOC_PRELOAD_CALL_STUBS_H
#define COLLOC_PRELOAD_CALL_STUBS_H

#include <stdbool.h>

#include "preload/hook_table.h"
#include "preload/page.h"

enum { CALL_STUBS_MAX = 1024 }; /* CUDA 13's driver has about 600 functions */

/*
 * symbol:   a name of the function, with or without its version's suffix.
 * function: of the driver, or the library's own in its place.
 *
 * Returns a stub before it, always the same one; `function` itself where that never waits for a
 * GPU, or when there are no more stubs.
 */
any_function *call_stub_before(const char *symbol, any_function *function);

/*
 * Returns a stub before a function of the driver that counts its calls, or `function` itself where
 * calls are not counted. The carrier refuses to begin in a process that has more functions than
 * stubs.
 */
any_function *call_stub_counted(const char *symbol, any_function *function);

/* Returns whether this process counts its calls: its environment has PRELOAD_CARRIER_VARIABLE. */
bool calls_are_counted(void);

/* Count a call of the driver that goes through no counted stub (gate.h). */
void calls_enter(void);
void calls_leave(void);

/* Returns whether a thread is in a call of the driver, or may be unseen. */
bool calls_are_in_flight(void);

/* From now on stubs look at this page. It stays mapped as long as the process lives. */
void call_stubs_use(struct preload_page *page);

#endif
