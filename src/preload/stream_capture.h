/* SPDX-License-Identifier: Apache-2.0 */
/* Which capture of a CUDA graph a stream takes part in: also one that has joined by an event. */
#ifndef COLLOC_PRELOAD_STREAM_CAPTURE_H
#define COLLOC_PRELOAD_STREAM_CAPTURE_H

#include <stdint.h>

#include "preload/driver_abi.h"

/* Returns the number of the capture, which no other one of this process ever has; 0: the stream is
 * not captured, as far as the driver says. Asks only while a stream of the process is captured. */
uint64_t stream_capture(CUstream stream);

#endif
