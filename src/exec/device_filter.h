/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup whose processes cannot open GPUs that they were not given. */
#ifndef COLLOC_EXEC_DEVICE_FILTER_H
#define COLLOC_EXEC_DEVICE_FILTER_H

#include <linux/bpf.h>

#include "base/fault.h"

/* GPUs of one task. Chosen: more than a server has. */
enum { FILTER_GPUS_MAX = 64 };

/* The GPUs that may be opened, by the minor number of /dev/nvidiaN. */
struct gpu_minors {
    int list[FILTER_GPUS_MAX];
    int n;
};

/* A program for the kernel, of the type BPF_PROG_TYPE_CGROUP_DEVICE. */
struct device_program {
    struct bpf_insn steps[FILTER_GPUS_MAX + 16];
    int n;
};

/* Reads "0,2", or "none". Returns 0, or -EINVAL for another text, an unlikely number, or too many. */
int gpu_minors_parse(const char *text, struct gpu_minors *ret_minors);

/* Assembles the program: it refuses /dev/nvidiaN of other GPUs, and nothing else. */
void device_program_make(const struct gpu_minors *minors, struct device_program *ret_program);

/*
 * Sets the filter for all processes of a cgroup, and of cgroups below it. It goes with the cgroup.
 *
 * path: of the cgroup (v2)
 *
 * Returns 0 or -errno: -EPERM without CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN; -EINVAL or
 * -ENOSYS where the kernel has no such programs.
 */
int device_filter_set(const char *path, const struct gpu_minors *minors);

/*
 * Tries it, on a cgroup that is made below `home` and removed.
 *
 * Returns 0, or -errno with the reason in the fault.
 */
int device_filter_try(const char *home, struct fault *fault);

#endif
