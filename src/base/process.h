/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc shows of a process: the only reader of its entries, and of the line `stat`. */
#ifndef COLLOC_BASE_PROCESS_H
#define COLLOC_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_NAME_SIZE = 64 };

/* One process for ever: once it has ended, another one may get its pid. */
struct process_id {
    pid_t pid;
    uint64_t born; /* its start, in clock ticks since boot; 0: it was never seen alive */
};

/* Are they one process? One that was never seen alive is none. */
static inline bool process_id_is(struct process_id a, struct process_id b)
{
    return a.pid == b.pid && a.born == b.born && a.born != 0;
}

struct process_facts {
    char name[PROCESS_NAME_SIZE]; /* program, cut to 15 bytes by the kernel; UTF-8
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
 * Reads an entry of /proc/PID as it is.
 *
 * name:     "stat", "net/dev"
 * max:      bytes; a longer entry is refused
 * ret_text: `ret_size` bytes and a NUL; the caller frees it; NULL after an error
 *
 * Returns 0; -ESRCH: no such process; or another -errno, such as -EACCES: it is hidden.
 */
int process_read_entry(pid_t pid, const char *name, size_t max, char **ret_text, size_t *ret_size);

/*
 * To be called when a read of /proc/PID/environ has returned no bytes: is it to be read again? The
 * file is empty, although the process has variables, while it is in execve(2) and they are not set
 * yet; when it was opened before the execve; and when the process has unmapped them. Does not
 * allocate.
 *
 * Returns true, after a millisecond; or at once false: the process was started without any
 * variable, it has ended, or it is a thread of the kernel.
 */
bool process_await_environ(pid_t pid);

/*
 * Reads /proc/PID/environ as process_read_entry does, and for 0.1 s again while it is hidden.
 *
 * Returns also -EAGAIN: it is still hidden.
 */
int process_read_environ(pid_t pid, size_t max, char **ret_text, size_t *ret_size);

/*
 * Finds a variable in the text of /proc/PID/environ.
 *
 * environment: `size` bytes of NUL-terminated entries, and a NUL
 *
 * Returns its value; NULL: there is none of that name.
 */
const char *process_find_variable(const char *environment, size_t size, const char *name);

/*
 * Visits the processes of /proc until `visit` answers other than 0.
 *
 * Returns that answer; 0: all were visited; or -errno.
 */
int process_walk(int (*visit)(pid_t pid, void *context), void *context);

/* The line /proc/PID/stat. */
struct process_stat {
    char name[PROCESS_NAME_SIZE];
    char state;      /* 'R', 'S', 'T', ... */
    bool is_exiting; /* it computes no more; taking its memory apart may take seconds */
    pid_t parent;
    pid_t session;
    unsigned long long cpu_ticks;   /* of itself and of children that it has waited for */
    unsigned long long start_ticks; /* clock ticks since boot: with the pid, names the process */
    unsigned long long resident_pages;
};

/*
 * Sends a signal to a process that was seen earlier, never to another one that has its pid now.
 *
 * Returns 0; -ESRCH: the process has ended; or another -errno.
 */
int process_signal(struct process_id id, int signal);

/* Has it ended, and was not waited for yet? */
static inline bool process_has_ended(const struct process_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

/* The parsers of /proc/PID/stat and /proc/PID/status. The name may contain any byte, also ')' and
 * line ends. Return 0 or -EPROTO. */
int process_parse_stat(const char *text, struct process_stat *ret_stat);
int process_parse_uid(const char *status, uid_t *ret_uid);

/* The parser of process_await_environ: has the process memory, and does that have variables, or no
 * place for them yet? */
bool process_parse_hides_environ(const char *stat);

/* The parser of process_read_program: field 28 of /proc/PID/stat, the address of the stack. */
uint64_t process_parse_program(const char *stat);

/* Returns a number for the program that runs in the process: the address of its stack, which the
 * kernel draws anew at each execve(2). 0: not known. */
uint64_t process_read_program(pid_t pid);

/*
 * Reads and parses /proc/PID/stat, without allocating.
 *
 * Returns 0; -ESRCH: no such process, or it has just ended; -EPROTO: not in the format of proc(5);
 * or another -errno, such as -EACCES: it is hidden.
 */
int process_read_stat(pid_t pid, struct process_stat *ret_stat);

/* Returns how many microseconds the process's first thread has been ready, but without a processor,
 * since it began; 0 where the kernel does not count that, or the process is gone. */
int64_t process_queued_us(pid_t pid);

#endif
