/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of the options that `simulate` and `sweep` share. */
#ifndef COLLOC_CLI_SIMULATING_H
#define COLLOC_CLI_SIMULATING_H

#include "base/fault.h"
#include "sim/catalogue.h"
#include "sim/cluster.h"
#include "sim/oracle.h"
#include "sim/simulate.h"

/* Reads the built-in kinds of GPUs and those of the file `path`, which may be NULL. Returns 0, or
 * -errno with a fault. */
int simulating_kinds(const char *path, struct fault *fault, struct gpu_kinds *ret_kinds);

/* Finds a policy or oracle. Returns 0, or -EINVAL with the known names in the fault. */
int simulating_policy(const char *name, struct fault *fault, struct sim_policy *ret_policy);

/* The values of --known: the scheduler's knowledge of a task besides memory; ended by NULL. */
extern const char *const simulating_knowns[];

/* Sets the scheduler's knowledge by such a value. Returns 0, or -EINVAL with a fault. */
int simulating_known(const char *name, struct fault *fault, struct simulation *simulation);

/* Does the same as catalogue_read, and prints its assumptions to stderr. */
int simulating_catalogue(const char *path, const struct catalogue_settings *settings,
    struct fault *fault, struct catalogue *ret_catalogue);

#endif
