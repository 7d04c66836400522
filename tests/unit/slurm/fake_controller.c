/* SPDX-License-Identifier: Apache-2.0 */
/* As slurm_loop.c does it, without threads and waits. */
#include "fake_controller.h"

#include "policy/policies.h"

struct core_settings fake_controller_settings(void)
{
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_magm;
    settings.settle_us = settings.settle_max_us = 1;
    settings.conditions.margin_bytes = 0;
    return settings;
}

struct slurm_controller *fake_controller_create(
    const struct core_settings *settings, int64_t gpu_memory_bytes)
{
    const struct slurm_controller_options options = {.settings = *settings,
        .intake_partition = "intake",
        .run_partition = "run",
        .gpu_memory_bytes = gpu_memory_bytes};
    return slurm_controller_create(&options);
}

int fake_controller_update(
    struct slurm_controller *controller, struct fake_slurm *fake, int64_t now_us)
{
    struct slurm_change *changes;
    size_t n;
    struct slurm_snapshot snapshot = fake_slurm_list(fake);
    int r = slurm_controller_update(controller, &snapshot, now_us, fake->now_s, &changes, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        changes[i].result = fake_slurm_change(fake, &changes[i]);
        slurm_controller_changed(controller, &changes[i], "failed", now_us);
    }
    return (int)n;
}

void fake_controller_answer(struct slurm_controller *controller, const struct task_request *request)
{
    struct slurm_job_key key;
    while (slurm_controller_wanted_script(controller, &key))
        slurm_controller_set_request(controller, &key, request, NULL);
}
