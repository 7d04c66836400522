/* SPDX-License-Identifier: Apache-2.0 */
/* The stage in which lent memory of a GPU is given back to it. */
#ifndef COLLOC_CORE_PASS_NEIGHBOUR_PASS_H
#define COLLOC_CORE_PASS_NEIGHBOUR_PASS_H

#include "core/state/state.h"

/* Has the copies that lie on a GPU whose memory a task wants go to the host. Returns 0 or -ENOMEM.
 */
int core_return_lent_memory(struct core *core, int64_t now_us);

#endif
