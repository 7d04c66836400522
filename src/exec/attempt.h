/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts: one start of a task, in a folder of its own, under a shim that outlives the daemon.
 *
 *     <state>/tasks/<ID>/<ATTEMPT>/
 *         spec            what to run
 *         script          the submitted script as it was
 *         claim           was it started, and by which shim; until then claim.reserved keeps its
 *                         space on the disk
 *         exit            how it ended; until then exit.reserved keeps its space on the disk
 *         stdout, stderr  unless the output goes elsewhere
 *
 * The daemon: attempt_create, attempt_spawn, poll the pidfd, and when it is readable attempt_probe
 * for the result. After a restart: attempt_probe for each attempt that was not known to have ended;
 * from there on the two are the same. The user must be able to pass through all folders above the
 * attempt's (mode 0711 does), to run the script. A service manager must leave shims alone
 * when it stops the daemon (systemd: KillMode=process). The task finds the folder's path in
 * COLLOC_ATTEMPT.
 */
#ifndef COLLOC_EXEC_ATTEMPT_H
#define COLLOC_EXEC_ATTEMPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"
#include "exec/exit_record.h"
#include "exec/failure.h"
#include "exec/spec.h"

/* A shim being watched: its pidfd is readable (POLLIN) once it is gone, however it went. */
struct attempt_watch {
    pid_t shim; /* all processes of the attempt descend from it (exec/tree.h) */
    int pidfd;
};

enum attempt_state {
    ATTEMPT_NEVER_STARTED =
        1, /* and never will be: a shim that comes late finds no folder, or is fenced off */
    ATTEMPT_RUNNING,
    ATTEMPT_ENDED,
    ATTEMPT_NO_FOLDER, /* nothing can start any more; what was started there is not known */
    ATTEMPT_LOST, /* it ran, its shim was killed or the machine went down: call attempt_sweep, for
                     parts may live on */
};

/* Why a running attempt is to end. */
enum attempt_ask { ATTEMPT_ASK_CANCEL = 1, ATTEMPT_ASK_TIME_LIMIT };

/*
 * Makes the folder (absolute path; parents are made as needed) with spec and script in it, or
 * nothing. 0 or -errno with a fault; -EEXIST when there is such an attempt already.
 */
int attempt_create(const char *folder, const struct attempt_spec *spec, struct fault *fault);

/*
 * Starts a shim for it: a child of the caller, in its own session, with no descriptors of the
 * caller's. Close the watch with attempt_unwatch, which also reaps; the caller must not ignore
 * SIGCHLD. 0 or -errno.
 */
int attempt_spawn(const char *shim_path, const char *folder, struct fault *fault,
    struct attempt_watch *ret_watch);

/*
 * How it stands, as an enum attempt_state, or -errno with a fault. Fences an attempt that nobody
 * has claimed: so ask after a restart or once the shim is gone, not right after attempt_spawn.
 * RUNNING fills the watch (close it), ENDED and LOST fill the exit.
 */
int attempt_probe(const char *folder, struct fault *fault, struct attempt_watch *ret_watch,
    struct attempt_exit *ret_exit);

/*
 * Asks the shim to end the attempt: politely, and after the spec's grace with SIGKILL, all of its
 * processes. 0 or -errno (-ESRCH: already over). A plain SIGTERM to a shim does the same, but the
 * task then counts as ended by a signal.
 */
int attempt_terminate(const struct attempt_watch *watch, enum attempt_ask ask);

/* Was the attempt given this variable ("KEY=VALUE")? 0 or -errno when its spec cannot be read. */
int attempt_has_variable(
    const char *folder, const char *variable, struct fault *fault, bool *ret_has);

/*
 * Removes what an attempt needs only until its end is durable elsewhere: spec, script, claim, exit
 * record, and the folder unless it holds output.
 */
void attempt_clean(const char *folder);

/* Ends watching, reaping the shim if it was our child and is gone. Harmless when done twice. */
void attempt_unwatch(struct attempt_watch *watch);

/*
 * Kills what a LOST attempt may have left running, recognised by the mark its shim put in the
 * environment and by the user it ran as, with all their descendants. Returns how many were
 * signalled, or -errno.
 */
int attempt_sweep(const char *folder, uid_t uid);

#endif
