/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups whose processes cannot open GPUs: all but those that a task was given, or all but by
 * certain users. */
#ifndef COLLOC_EXEC_DEVICE_FILTER_H
#define COLLOC_EXEC_DEVICE_FILTER_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

/* GPUs of one task. Chosen: more than a server has. */
enum { FILTER_GPUS_MAX = 64 };

/* The GPUs that may be opened, by the minor number of /dev/nvidiaN. */
struct gpu_minors {
    int list[FILTER_GPUS_MAX];
    int n;
};

/* Users of the setting outside-users. Chosen: more than a server has administrators. */
enum { FILTER_USERS_MAX = 64 };

struct allowed_users {
    uint32_t list[FILTER_USERS_MAX];
    int n;
};

/* A program for the kernel, of the type BPF_PROG_TYPE_CGROUP_DEVICE. */
struct device_program {
    struct bpf_insn steps[FILTER_GPUS_MAX + FILTER_USERS_MAX + 32];
    int n;
};

/* Reads "0,2", or "none". Returns 0, or -EINVAL for another text, an unlikely number, or too many. */
int gpu_minors_parse(const char *text, struct gpu_minors *ret_minors);

/* Assembles the program: it refuses /dev/nvidiaN of other GPUs, and nothing else. */
void device_program_make(const struct gpu_minors *minors, struct device_program *ret_program);

/*
 * Assembles the program for cgroups without tasks: it refuses all /dev/nvidiaN to persons
 * (user_is_person), except to these users.
 */
void device_program_make_outside(
    const struct allowed_users *users, struct device_program *ret_program);

/* Is the user a person? Root, system users and systemd's dynamic users are services. */
bool user_is_person(uint32_t uid);

/*
 * Sets a program for all processes of a cgroup and of cgroups below it, until the descriptor is
 * closed: also by the end of this process, in whatever way.
 *
 * Returns the descriptor, or -errno as device_filter_set does; the kernel has it since 5.7.
 */
int device_program_link(const char *path, const struct device_program *program);

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
