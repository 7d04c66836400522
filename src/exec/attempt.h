/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attempt is one run of a task. It has a folder, and a shim that outlives the daemon.
 *
 *     <state>/tasks/<ID>/<ATTEMPT>/
 *         spec            what to run
 *         script          the script as it was submitted
 *         claim           which shim started it; before that, claim.reserved holds its disk space
 *         exit            how it ended; before that, exit.reserved holds its disk space
 *         stdout, stderr  the output, unless it goes to other files
 *
 * The daemon calls attempt_create and attempt_spawn, polls the pidfd, and calls attempt_probe for
 * the result when the pidfd is readable. After a restart it calls attempt_probe for each attempt
 * that was not known to have ended, and continues in the same way.
 *
 * Contract:
 *   1. The user can pass through all folders above the attempt's (mode 0711), to run the script.
 *   2. The caller does not ignore SIGCHLD.
 *   3. A service manager that stops the daemon does not kill shims (systemd: KillMode=process).
 *   4. The task finds the folder's path in its variable COLLOC_ATTEMPT.
 */
#ifndef COLLOC_EXEC_ATTEMPT_H
#define COLLOC_EXEC_ATTEMPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"
#include "exec/exit_record.h"
#include "exec/failure.h"
#include "exec/spec.h"

/* A watched shim: its pidfd is readable (POLLIN) once the shim has ended for any reason. */
struct attempt_watch {
    pid_t shim; /* all processes of the attempt descend from it (exec/tree.h) */
    int pidfd;
};

enum attempt_state {
    ATTEMPT_NEVER_STARTED = 1, /* it never ran, and cannot start any more: a late shim finds the
                                * claim taken */
    ATTEMPT_RUNNING,
    ATTEMPT_ENDED,
    ATTEMPT_NO_FOLDER, /* it cannot start any more; whether it ever started is unknown */
    ATTEMPT_LOST, /* it ran, but its shim was killed or the machine went down: processes may remain,
                     so call attempt_sweep */
};

/* The file of an attempt's folder with a time limit in microseconds that counts instead of the
 * spec's. The shim reads it when it reaches its present limit. */
#define ATTEMPT_TIME_LIMIT "time-limit"

/* Why the daemon ends a running attempt. */
enum attempt_ask { ATTEMPT_ASK_CANCEL = 1, ATTEMPT_ASK_TIME_LIMIT, ATTEMPT_ASK_EVICT };

/*
 * Makes the folder, with spec and script in it; on an error nothing remains.
 *
 * folder: absolute; its parents are made if they do not exist.
 *
 * Returns 0, or with a fault: -EEXIST (the attempt exists already), -ENOSPC, or another -errno.
 */
int attempt_create(const char *folder, const struct attempt_spec *spec, struct fault *fault);

/*
 * Starts a shim for the attempt: a child of the caller, in a new session, without the caller's
 * descriptors.
 *
 * ret_watch: for attempt_unwatch.
 *
 * Returns 0, or -errno with a fault.
 */
int attempt_spawn(const char *shim_path, const char *folder, struct fault *fault,
    struct attempt_watch *ret_watch);

/*
 * Finds the state of an attempt. One that no shim has claimed can never start after this call: so
 * call it after a restart or once the shim has ended, not directly after attempt_spawn.
 *
 * ret_watch: filled for ATTEMPT_RUNNING, for attempt_unwatch.
 * ret_exit:  filled for ATTEMPT_ENDED and ATTEMPT_LOST.
 *
 * Returns an enum attempt_state, or -errno with a fault.
 */
int attempt_probe(const char *folder, struct fault *fault, struct attempt_watch *ret_watch,
    struct attempt_exit *ret_exit);

/*
 * Requests the end of the attempt from its shim, which sends SIGTERM to all processes and, after
 * the spec's grace time, SIGKILL. A plain SIGTERM to the shim has the same effect, but the task
 * then counts as ended by a signal.
 *
 * Returns 0; -ESRCH: the shim has ended already; or another -errno.
 */
int attempt_terminate(const struct attempt_watch *watch, enum attempt_ask ask);

/* Sends the shim a signal, such as SIGCONT. Returns 0 or -errno. */
int attempt_signal_shim(const struct attempt_watch *watch, int signal);

/*
 * Sends the attempt's warning signal (--signal) to the processes that handle it; with "B:" to the
 * script's shell only.
 *
 * Returns for how long they may act on it, in microseconds, at most the attempt's grace time; 0: it
 * has no such signal, or no process handles it; or -errno with a fault.
 */
int64_t attempt_warn(const char *folder, const struct attempt_watch *watch, struct fault *fault);

/* Tests whether the environment of the attempt has this variable ("KEY=VALUE"). Returns 0, or
 * -errno with a fault if its spec cannot be read. */
int attempt_has_variable(
    const char *folder, const char *variable, struct fault *fault, bool *ret_has);

/*
 * Removes the files of an attempt whose end is durable in the event log: spec, script, claim, exit
 * record, and the folder unless it holds output.
 */
void attempt_clean(const char *folder);

/* Tests whether the attempt's shim keeps another time limit than this: that of its spec, since it
 * is of a version that does not read ATTEMPT_TIME_LIMIT. True also if its spec cannot be read;
 * false if there is none. */
bool attempt_keeps_other_limit(const char *folder, int64_t limit_us);

/* Closes the watch, and reaps the shim if it was a child and has ended. May be called twice. */
void attempt_unwatch(struct attempt_watch *watch);

/*
 * Kills the remaining processes of a lost attempt: those of `uid` with the attempt's mark in their
 * environment, and all their descendants. Removes, as the task's user, what they left in /tmp
 * (exec/torch_responder.h).
 *
 * May take seconds: not for a loop.
 *
 * Returns how many processes it signalled; -ETIMEDOUT: it could not read all environments in time;
 * or another -errno.
 */
int attempt_sweep(const char *folder, uid_t uid);

#endif
