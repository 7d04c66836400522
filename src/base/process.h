/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc shows of any process to all users: its name, its user and its age. */
#ifndef COLLOC_BASE_PROCESS_H
#define COLLOC_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_NAME_SIZE = 64 };

struct process_facts {
    char name[PROCESS_NAME_SIZE]; /* of its program, truncated by the kernel to 15 bytes; UTF-8
                                     without control characters */
    uid_t uid;                    /* real user id */
    int64_t age_us;               /* since it was started */
};

/*
 * Reads the facts of a process. Does not block: neither of the two files accesses the process's
 * memory, as its command line would.
 *
 * Returns 0; -ESRCH: no such process, or it is hidden; -EPROTO: not in the format of proc(5); or
 * another -errno.
 */
int process_read(pid_t pid, struct process_facts *ret_facts);

/*
 * The parsers of the two files. The name may contain any byte, also ')' and line ends.
 *
 * ret_start_ticks: start of the process in clock ticks since boot
 *
 * Return 0 or -EPROTO.
 */
int process_parse_stat(
    const char *stat, char name[PROCESS_NAME_SIZE], unsigned long long *ret_start_ticks);
int process_parse_uid(const char *status, uid_t *ret_uid);

#endif
