/* SPDX-License-Identifier: Apache-2.0 */
/* What `simulate` and `sweep` have in common: reading what their options name. */
#ifndef COLLOC_CLI_SIMULATING_H
#define COLLOC_CLI_SIMULATING_H

#include "base/fault.h"
#include "sim/catalogue.h"
#include "sim/cluster.h"
#include "sim/oracle.h"
#include "sim/simulate.h"

/* The built-in kinds of GPUs, and those of the file unless it is NULL. 0 or -errno with a fault. */
int simulating_kinds(const char *path, struct fault *fault, struct gpu_kinds *ret_kinds);

/* 0, or -EINVAL with the known names in the fault. */
int simulating_policy(const char *name, struct fault *fault, struct sim_policy *ret_policy);

/* What tasks say of themselves besides memory, in words; ended by NULL. */
extern const char *const simulating_knowns[];

/* Sets what tasks say in the simulation. 0, or -EINVAL with a fault. */
int simulating_known(const char *name, struct fault *fault, struct simulation *simulation);

/* catalogue_read, which also says on stderr what it had to assume. */
int simulating_catalogue(const char *path, const struct catalogue_settings *settings,
    struct fault *fault, struct catalogue *ret_catalogue);

#endif
