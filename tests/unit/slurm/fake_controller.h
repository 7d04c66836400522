/* SPDX-License-Identifier: Apache-2.0 */
/* A controller over a fake Slurm: how tests create one, and its rounds. */
#ifndef COLLOC_TESTS_FAKE_CONTROLLER_H
#define COLLOC_TESTS_FAKE_CONTROLLER_H

#include "fake_slurm.h"
#include "slurm/slurm_controller.h"

/* The defaults with the policy magm; what starts on a GPU is known after a second. */
struct core_settings fake_controller_settings(void);

/* gpu_memory_bytes: of each GPU. Returns NULL when memory is out. */
struct slurm_controller *fake_controller_create(
    const struct core_settings *settings, int64_t gpu_memory_bytes);

/* A round: the controller reads what Slurm shows, and its changes are made. Returns how many, or
 * -errno. */
int fake_controller_update(
    struct slurm_controller *controller, struct fake_slurm *fake, int64_t now_us);

/* Answers for each script that the controller wants that it has this request. */
void fake_controller_answer(
    struct slurm_controller *controller, const struct task_request *request);

#endif
