/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim is a file that shows whether an attempt was started, is running, or can never start. The
 * shim locks the file and then gives it its name, so the name never exists without the lock. The
 * kernel drops the lock when the shim ends for any reason. A daemon that finds no claim takes the
 * name for a fence, which stops a shim that comes later. (The lock is a POSIX record lock: it
 * belongs to one process, is not inherited by fork, and the kernel reports its holder.)
 *
 * Example: the daemon makes the folder of attempt 1 with an empty `claim.reserved`. Shim 4711 locks
 * that file, writes "4711" into it and renames it to `claim`. The daemon is killed. The next one
 * finds `claim`, and the kernel reports that 4711 holds the lock: CLAIM_HELD, with a pidfd of 4711.
 * If the lock is free, the shim has ended: CLAIM_LEFT, and `exit` has how the task ended. If there
 * is no `claim`, the daemon makes a symbolic link of that name: CLAIM_FENCED. Should 4711 come only
 * now, it finds the name taken and runs nothing.
 *
 * Contract:
 * 1. A claim is on the disk before the task's first instruction: an attempt without one after a
 *    power cut has not run, and one with a claim is never run again.
 * 2. Where claim_reserve has succeeded, a disk that becomes full does not keep the shim from taking
 *    the claim.
 */
#ifndef COLLOC_EXEC_CLAIM_H
#define COLLOC_EXEC_CLAIM_H

#include <sys/types.h>

#define CLAIM_NAME          "claim"
#define CLAIM_RESERVED_NAME "claim.reserved"

enum claim_state {
    CLAIM_FENCED = 1, /* never started, and never will be */
    CLAIM_HELD,       /* its shim is running */
    CLAIM_LEFT,       /* its shim has ended */
};

/*
 * Allocates, for the daemon, the space that claim_take will need.
 *
 * folder: of the attempt, which no shim knows yet.
 *
 * Returns 0; -ENOSPC, -EDQUOT: the disk is full now; or another -errno.
 */
int claim_reserve(const char *folder);

/*
 * Takes the claim, for the shim.
 *
 * Returns 0: the attempt belongs to this process until it ends, and the claim is durable; 1:
 * another shim has it, or it is fenced; or -errno: nothing may run.
 */
int claim_take(const char *folder);

/*
 * Finds the state of a claim, and fences an attempt that no shim has claimed.
 *
 * ret_shim, ret_pidfd: filled for CLAIM_HELD; the descriptor is the caller's to close.
 *
 * Returns an enum claim_state, -ENOENT when there is no such folder, or another -errno.
 */
int claim_probe(const char *folder, pid_t *ret_shim, int *ret_pidfd);

#endif
