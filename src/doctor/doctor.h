/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What works on this machine, and what to do about what does not: `colloc doctor`. Each check is a
 * function and a line in the table of doctor.c. A check changes nothing; those of suspension try it
 * on a tiny process that the check starts and ends.
 */
#ifndef COLLOC_DOCTOR_DOCTOR_H
#define COLLOC_DOCTOR_DOCTOR_H

#include <stddef.h>

#include "doctor/check_result.h"
#include "gpu/gpu.h"

struct doctor_options {
    const char *nvml_library; /* NULL: the driver's */
    const char *helper;       /* path of colloc-checkpoint; NULL: it is not installed */
    const char *preload;      /* path of libcolloc-preload.so; likewise */
};

/* The state that the checks share. */
struct doctor {
    struct doctor_options options;
    int gpus_answer; /* of gpu_set_open: 0, a gpu_answer or -errno */
    struct fault gpus_fault;
    struct gpu_set *gpus; /* NULL: none to be had */
};

enum { DOCTOR_CHECKS_MAX = 18 };

/*
 * Makes all checks, which takes some seconds on a machine with GPUs.
 *   ret_checks: DOCTOR_CHECKS_MAX entries
 * Returns how many there are.
 */
size_t doctor_run(const struct doctor_options *options, struct doctor_check *ret_checks);

/* ---- for the checks ---- */

/* check_driver.c */
void check_nvml(struct doctor *doctor, struct doctor_check *check);
void check_driver(struct doctor *doctor, struct doctor_check *check);
void check_gpus(struct doctor *doctor, struct doctor_check *check);
void check_gpm(struct doctor *doctor, struct doctor_check *check);
void check_dcgm(struct doctor *doctor, struct doctor_check *check);
void check_mps(struct doctor *doctor, struct doctor_check *check);
void check_mig(struct doctor *doctor, struct doctor_check *check);
void check_persistence(struct doctor *doctor, struct doctor_check *check);

/* check_left_memory.c */
void check_left_memory(struct doctor *doctor, struct doctor_check *check);

/* check_host.c */
void check_cgroup(struct doctor *doctor, struct doctor_check *check);
void check_limits(struct doctor *doctor, struct doctor_check *check);
void check_outside(struct doctor *doctor, struct doctor_check *check);
void check_gpu_filter(struct doctor *doctor, struct doctor_check *check);
void check_host_memory(struct doctor *doctor, struct doctor_check *check);
void check_carrier_pool(struct doctor *doctor, struct doctor_check *check);

/* check_suspend.c */
void check_suspend(struct doctor *doctor, struct doctor_check *check);
void check_move(struct doctor *doctor, struct doctor_check *check);
void check_preload(struct doctor *doctor, struct doctor_check *check);

#endif
