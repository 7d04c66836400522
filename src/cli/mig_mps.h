/* SPDX-License-Identifier: Apache-2.0 */
/* MPS servers without clients, which keep an instance from being removed. */
#ifndef COLLOC_CLI_MIG_MPS_H
#define COLLOC_CLI_MIG_MPS_H

#include "cli/command.h"

struct mig_gpu;

/*
 * Asks the daemon to stop its MPS control daemons on instances of the GPU that no task uses. One
 * that has clients stays. So does each where no daemon answers: what is still on the GPU is seen by
 * its processes (mig_check_idle).
 *
 * invocation: whose --socket names the daemon.
 */
void mig_mps_release(const struct invocation *invocation, const struct mig_gpu *gpu);

#endif
