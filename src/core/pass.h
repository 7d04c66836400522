/* SPDX-License-Identifier: Apache-2.0 */
/* For drivers that apply many samples before a step: is one due? */
#ifndef COLLOC_CORE_PASS_H
#define COLLOC_CORE_PASS_H

#include "core/core.h"

/* Has an event been applied after which a task might be placed that could not be before? The next
 * core_step tries it. */
bool core_wants_pass(const struct core *core);

#endif
