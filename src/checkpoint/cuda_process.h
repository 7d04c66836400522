/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc shows of a process that is to be suspended, and of the host's memory. For the
 * helper: a process's program may lie on a file system that does not answer.
 */
#ifndef COLLOC_CHECKPOINT_CUDA_PROCESS_H
#define COLLOC_CHECKPOINT_CUDA_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/reading.h"
#include "base/text.h"

struct cuda_process {
    uint64_t born;   /* clock ticks since boot: with the pid it names one process for ever */
    bool is_stopped; /* by SIGSTOP or a debugger */
    bool is_traced;  /* a debugger is attached */
    bool is_32_bit;
    bool has_profiler; /* Nsight's or another tool's library is injected, or PyTorch's
                          profiler can be turned on from outside */
    bool has_nccl;
    bool is_unread;          /* what it has loaded could not be read: NCCL may be there */
    bool is_without_library; /* it was started without the preloaded library */
    bool is_secure; /* setuid, setgid or with capabilities: the dynamic linker has loaded no library
                       that its environment names */
};

/* Returns 0, also where its maps or environment cannot be read; -ESRCH: no such process, or it is
 * hidden; -EPROTO; or another -errno. */
int cuda_process_read(pid_t pid, struct cuda_process *ret_process);

/*
 * The same as text, for the helper's reply: "88123 nccl traced". Writing returns the length, or 0
 * when it does not fit; reading, of any bytes, 0 or -EINVAL.
 */
size_t cuda_process_write(const struct cuda_process *process, char *text, size_t size);
int cuda_process_parse(struct span text, struct cuda_process *ret_process);

/* Is there still the process with this pid and start? One that was killed is not, although it may
 * take seconds to end: a call of the driver for it fails meanwhile. */
bool cuda_process_is(pid_t pid, uint64_t born);

/* Has it loaded the driver's library, or can that not be read? A program that it has loaded in the
 * place of another one (execve) has none at first, and the other one's GPU memory is gone. */
bool cuda_process_may_have_driver(pid_t pid);

/* The parsers of /proc/PID/maps, status, environ and auxv, for any bytes. Each sets the fields that
 * its file has. */
void cuda_process_parse_maps(struct span maps, struct cuda_process *process);
void cuda_process_parse_status(struct span status, struct cuda_process *process);
void cuda_process_parse_environ(struct span variables, struct cuda_process *process);
void cuda_process_parse_auxv(struct span vector, struct cuda_process *process);

/* Does /proc/PID/status say that SIGKILL is on its way? The kernel keeps it there to the end. */
bool cuda_process_parse_is_killed(struct span status);

/* MemAvailable of /proc/meminfo's text, in bytes. */
struct reading host_memory_parse(struct span meminfo);
struct reading host_memory_available(void);

/*
 * The memory that the tightest limit of a cgroup (v2) or one above it leaves, in bytes; INFINITY:
 * there is no limit; not valid: it cannot be read.
 *   path:   the cgroup's absolute path below /sys/fs/cgroup
 *   except: the path of one whose own limit does not count; ""
 */
struct reading cgroup_memory_left(const char *path, const char *except);

/* The same for the cgroups of a process: v2, and the controller "memory" of v1. */
struct reading cgroup_memory_left_of(pid_t pid, const char *except);

#endif
