/* SPDX-License-Identifier: Apache-2.0 */
/* The stage in which contexts of suspended tasks leave a GPU. */
#ifndef COLLOC_CORE_PASS_CONTEXT_PASS_H
#define COLLOC_CORE_PASS_CONTEXT_PASS_H

#include "core/state/state.h"

/* Has the contexts of suspended tasks leave a GPU where the next task could start without them.
 * Returns 0 or -ENOMEM. */
int core_free_of_contexts(struct core *core, int64_t now_us);

#endif
