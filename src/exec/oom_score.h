/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes the kernel ends when the machine has no free memory (proc_pid_oom_score_adj(5)):
 * tasks before the daemon and their shims, without which ends are not recorded. A child inherits
 * the value, so a process that becomes a user gives it back.
 */
#ifndef COLLOC_EXEC_OOM_SCORE_H
#define COLLOC_EXEC_OOM_SCORE_H

/* Protects this process, if it is root's and has the default value. */
void oom_score_protect(void);

/* Takes a protection back: the value is that of users' processes, 0, and a user cannot lower it. A
 * value above 0 stays. To be called as root. */
void oom_score_reset(void);

#endif
