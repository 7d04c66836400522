/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that start on kinds of GPUs that the head cannot use. */
#ifndef COLLOC_CORE_PASS_OTHER_KINDS_H
#define COLLOC_CORE_PASS_OTHER_KINDS_H

#include "core/state/state.h"

/* Starts tasks behind the head on GPUs of kinds that the head cannot use (other_kinds.c). Returns 0
 * or -ENOMEM. */
int core_pass_other_kinds(struct core *core, const struct task *head, int64_t now_us);

#endif
