/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Xid events from the driver and adds each to its card's `trouble`. Drivers without events
 * report none. */
#ifndef COLLOC_GPU_XID_EVENTS_H
#define COLLOC_GPU_XID_EVENTS_H

#include <stdint.h>

struct gpu_source;

/* Begins to listen to Xid errors, where the driver reports them. */
void xid_events_open(struct gpu_source *source);

/* Reads the events since the last call. Does not block. */
void xid_events_read(struct gpu_source *source, int64_t now_us);

/* Ends that. */
void xid_events_close(struct gpu_source *source);

#endif
