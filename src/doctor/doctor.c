/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of checks, in the order in which their failures explain each other: without a driver
 * there are no GPUs, and without GPUs nothing can be suspended. A user repairs the first failure
 * and runs the command again.
 *
 *     driver  ok      version 580.159.04
 *     mps     failed  nvidia-cuda-mps-control is not on PATH. Advice: install the driver's ...
 *
 * The GPUs are opened once, before the first check, and all checks read the results.
 */
#include "doctor/doctor.h"

#include "base/array.h"

static const struct {
    const char *name;
    void (*run)(struct doctor *, struct doctor_check *);
} checks[] = {
    {"nvml", check_nvml},
    {"driver", check_driver},
    {"gpus", check_gpus},
    {"persistence", check_persistence},
    {"gpm", check_gpm},
    {"dcgm", check_dcgm},
    {"mps", check_mps},
    {"mig", check_mig},
    {"left-memory", check_left_memory},
    {"cgroup", check_cgroup},
    {"limits", check_limits},
    {"gpu-filter", check_gpu_filter},
    {"outside", check_outside},
    {"host-memory", check_host_memory},
    {"carrier-pool", check_carrier_pool},
    {"suspend", check_suspend},
    {"move", check_move},
    {"preload", check_preload},
};

_Static_assert(ARRAY_SIZE(checks) <= DOCTOR_CHECKS_MAX, "room for all checks");

size_t doctor_run(const struct doctor_options *options, struct doctor_check *ret_checks)
{
    struct doctor doctor = {.options = *options};
    doctor.gpus_answer = gpu_set_open(options->nvml_library, &doctor.gpus_fault, &doctor.gpus);
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        ret_checks[i] = (struct doctor_check){.name = checks[i].name};
        checks[i].run(&doctor, &ret_checks[i]);
    }
    gpu_set_close(doctor.gpus);
    return ARRAY_SIZE(checks);
}
