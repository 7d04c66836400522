/* SPDX-License-Identifier: Apache-2.0 */
/* Xids as the driver reports them, to the troubles of the cards they are of. Where there are no
 * events nothing comes.
 */
#ifndef COLLOC_GPU_XID_EVENTS_H
#define COLLOC_GPU_XID_EVENTS_H

#include <stdint.h>

struct gpu_source;

void xid_events_open(struct gpu_source *source);

/* Takes what has come since; does not wait. */
void xid_events_take(struct gpu_source *source, int64_t now_us);

void xid_events_close(struct gpu_source *source);

#endif
