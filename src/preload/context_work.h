/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a context on its GPU, which must have ended before memory is unmapped. */
#ifndef COLLOC_PRELOAD_CONTEXT_WORK_H
#define COLLOC_PRELOAD_CONTEXT_WORK_H

#include "preload/driver_abi.h"

/* Makes a context the thread's current one. Returns the driver's result. */
CUresult context_enter(CUcontext context);

/* Waits until the GPU has done all work of a context, which need not be the current one. The caller
 * has entered the gate. Returns the driver's result. */
CUresult context_synchronise(CUcontext context);

#endif
