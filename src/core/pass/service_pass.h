/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of services. */
#ifndef COLLOC_CORE_PASS_SERVICE_PASS_H
#define COLLOC_CORE_PASS_SERVICE_PASS_H

#include "core/state/state.h"

/* Lets tasks give way to services that miss their targets, and resumes them. Returns 0 or
 * -ENOMEM. */
int core_schedule_services(struct core *core, int64_t now_us);

#endif
