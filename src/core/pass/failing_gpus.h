/* SPDX-License-Identifier: Apache-2.0 */
/* The stage that empties GPUs that fail. */
#ifndef COLLOC_CORE_PASS_FAILING_GPUS_H
#define COLLOC_CORE_PASS_FAILING_GPUS_H

#include "core/state/state.h"

/* Moves tasks away from GPUs that fail, as far as others have room. Returns 0 or -ENOMEM. */
int core_empty_failing_gpus(struct core *core, int64_t now_us);

#endif
