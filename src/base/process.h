/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of a process to everybody: its name, its user and its age. */
#ifndef COLLOC_BASE_PROCESS_H
#define COLLOC_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_NAME_SIZE = 64 };

struct process_facts {
    char name[PROCESS_NAME_SIZE]; /* of its program, as the kernel cuts it (15 bytes); UTF-8 without
                                     control characters */
    uid_t uid;                    /* real user id */
    int64_t age_us;               /* since it was started */
};

/*
 * Reads what there is to know of process `pid`. Waits for nothing: neither of the two files asks for
 * the process's memory, as its command line would.
 *
 * Returns 0; -ESRCH: there is no such process, or none that may be seen; -EPROTO: not in the form of
 * proc(5); or another fault.
 */
int process_read(pid_t pid, struct process_facts *ret_facts);

/*
 * The parts of that, from the text of the files. The name may hold any byte, ')' and line ends too.
 *
 * Return 0 or -EPROTO. *ret_start_ticks: the start in clock ticks since the machine's.
 */
int process_parse_stat(
    const char *stat, char name[PROCESS_NAME_SIZE], unsigned long long *ret_start_ticks);
int process_parse_uid(const char *status, uid_t *ret_uid);

#endif
