/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the host: cgroups, their controllers, and memory for suspended tasks.
 *
 * They find what the daemon would use, by the same functions: cgroup v2, in which an attempt's
 * processes are found and ended as a whole; the controllers that limit CPUs, memory and processes;
 * and host memory, into which the GPU memory of a suspended task is copied, also that which the
 * daemon makes before.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/room_file.h"
#include "doctor/doctor.h"
#include "exec/cgroup.h"
#include "exec/device_filter.h"
#include "exec/outside_filter.h"

/* Chosen: some huge pages, in some milliseconds. */
enum { TRIED_BYTES = 32 << 20 };

void check_cgroup(struct doctor *doctor, struct doctor_check *check)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE];
    if (!cgroup_find_own(mount, own))
        doctor_fail(check,
            "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1); without it colloc finds a "
            "task's processes by descent and environment",
            "no cgroup v2 hierarchy is mounted");
    else if (access(mount, W_OK) == 0 || geteuid() != 0)
        doctor_pass(check, "v2, mounted at %.180s", mount);
    else
        doctor_fail(check,
            "in a container, mount it writable (docker run --cgroupns=host "
            "-v /sys/fs/cgroup:/sys/fs/cgroup:rw)",
            "%.150s is not writable: %s", mount, strerror(errno));
}

/* What of a task's CPUs, main memory and processes cgroups can limit. */
void check_limits(struct doctor *doctor, struct doctor_check *check)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE];
    if (!cgroup_find_own(mount, own)) {
        doctor_fail(check, "see cgroup",
            "--cpus, --host-memory and processes-per-task are counted, not enforced: no cgroup v2");
        return;
    }
    struct cgroup_controllers has = cgroup_available(mount);
    if (has.cpu && has.memory && has.pids)
        doctor_pass(check, "cgroups limit CPUs, host memory and processes of tasks");
    else
        doctor_fail(check,
            "start collocd as root by systemd (Delegate=yes), on a kernel whose cgroup v2 has the "
            "controllers cpu, memory and pids (cat /sys/fs/cgroup/cgroup.controllers)",
            "not enforced, for want of controllers:%s%s%s", has.cpu ? "" : " --cpus",
            has.memory ? "" : " --host-memory", has.pids ? "" : " processes-per-task");
}

/* Can tasks be kept from GPUs that they were not given? */
void check_gpu_filter(struct doctor *doctor, struct doctor_check *check)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE], path[2 * CGROUP_PATH_SIZE];
    struct fault fault = {0};
    if (!cgroup_find_own(mount, own)) {
        doctor_fail(
            check, "see cgroup", "tasks can open GPUs that they were not given: no cgroup v2");
        return;
    }
    snprintf(path, sizeof path, "%s%s", mount, own);
    if (device_filter_try(path, &fault) == 0)
        doctor_pass(check, "tasks can be kept from others' GPUs (setting gpu-filter)");
    else
        doctor_fail(check,
            geteuid() == 0 ? "needs CAP_BPF or CAP_SYS_ADMIN and a kernel with CONFIG_CGROUP_BPF"
                           : "run colloc doctor as root to see what collocd can do",
            "tasks can open GPUs that they were not given: %.150s", fault.text);
}

/* Can GPUs be closed to processes outside of tasks? */
void check_outside(struct doctor *doctor, struct doctor_check *check)
{
    struct fault fault = {0};
    if (outside_filter_try(&fault) == 0)
        doctor_pass(check, "GPUs can be closed to processes outside of tasks (setting outside)");
    else
        doctor_fail(check,
            geteuid() == 0
                ? "needs Linux 5.7, CONFIG_CGROUP_BPF, cgroup v2, and CAP_BPF with CAP_NET_ADMIN"
                : "run colloc doctor as root to see what collocd can do",
            "processes outside of tasks can open GPUs: %.150s", fault.text);
}

/* The pool's files, tried as the daemon makes them: what their pages cost, and of which size they
 * are. */
void check_carrier_pool(struct doctor *doctor, struct doctor_check *check)
{
    const uint64_t bytes = TRIED_BYTES;
    int fd = room_file_create();
    int64_t begin_us = clock_monotonic_us();
    int r = fd < 0 ? fd : room_file_grow(fd, 0, bytes, -1);
    double s = (double)(clock_monotonic_us() - begin_us) / SECOND_US;
    if (fd >= 0)
        close(fd);
    if (r < 0)
        doctor_fail(check,
            "allow the user of collocd files in memory: without them a suspended task's copy is its "
            "own memory, and takes longer",
            "host memory for copies of GPU memory cannot be made: %s", strerror(-r));
    else if (!room_file_has_huge_pages())
        doctor_fail(check,
            "run collocd as root, or: echo advise "
            ">/sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "host memory for copies of GPU memory gets small pages: %.2f s for each GiB",
            s * (double)GIB / (double)bytes);
    else
        doctor_pass(check,
            "host memory for copies of GPU memory is made in huge pages: %.2f s for each GiB",
            s * (double)GIB / (double)bytes);
}

/* Suspended tasks need as much host memory as they had on the GPU. */
void check_host_memory(struct doctor *doctor, struct doctor_check *check)
{
    char available_text[32], gpu_text[32];
    struct reading available = host_memory_available();
    double largest = 0;
    for (size_t i = 0; doctor->gpus && i < doctor->gpus->count; i++)
        if (reading_or(doctor->gpus->gpu[i].mem_total_bytes, 0) > largest)
            largest = reading_or(doctor->gpus->gpu[i].mem_total_bytes, 0);
    if (!available.valid) {
        doctor_fail(check, "mount /proc", "/proc/meminfo cannot be read");
        return;
    }
    format_size((int64_t)available.value, available_text, sizeof available_text);
    if (largest == 0) {
        doctor_pass(check, "%s free", available_text);
        return;
    }
    format_size((int64_t)largest, gpu_text, sizeof gpu_text);
    if (available.value >= largest)
        doctor_pass(check, "%s free, the largest GPU has %s", available_text, gpu_text);
    else
        doctor_fail(check,
            "a task is suspended only when its GPU memory fits into free host "
            "memory: larger ones keep running",
            "%s free, less than the largest GPU has (%s)", available_text, gpu_text);
}
