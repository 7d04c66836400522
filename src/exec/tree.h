/* SPDX-License-Identifier: Apache-2.0 */
/* The descendants and ancestors of processes, from /proc. */
#ifndef COLLOC_EXEC_TREE_H
#define COLLOC_EXEC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Sends a signal to all descendants of `root`, not to `root` itself. A process id that was reused
 * since it was listed gets none. Processes that start meanwhile may be missed: a caller that must
 * be sure calls again.
 *
 * Returns how many there were, or -errno.
 */
int tree_signal(pid_t root, int signal);

/* The same for processes that have a handler for it: it ends none of them. */
int tree_signal_handlers(pid_t root, int signal);

/* The same for those of them whose parent is `root`. */
int tree_signal_child_handlers(pid_t root, int signal);

/* Does the process have a handler for the signal? False also for one that has ended. */
bool tree_handles(pid_t pid, int signal);

/* The same as tree_signal for two parts: all descendants of `root` except the `n` processes tops[]
 * and their descendants; or only these. */
int tree_signal_except(pid_t root, const pid_t *tops, size_t n, int signal);
int tree_signal_only(pid_t root, const pid_t *tops, size_t n, int signal);

/*
 * Sends a signal to each process of user `uid` that was started with `variable` ("KEY=VALUE") in
 * its environment, and to all their descendants. A process whose environment cannot be read in time
 * gets none (exec/limited_visit.h). May take 5 s: not for a loop.
 *
 * ret_unknown: how many could not be read
 *
 * Returns how many there were, or -errno.
 */
int tree_signal_marked(const char *variable, uid_t uid, int signal, size_t *ret_unknown);

/*
 * Finds which of the processes roots[], such as shims, is `pid` or one of its ancestors. Reads only
 * the ancestors of `pid`.
 *
 * Returns an index; -1: none is, or `pid` has ended.
 */
int tree_find_root(pid_t pid, const pid_t *roots, size_t count);

/*
 * Lists `pid`, its parent, and so on, without `root`.
 *
 * Returns how many; 0 if `pid` does not descend from `root`, or there are more than `room`.
 */
size_t tree_list_ancestors(pid_t pid, pid_t root, pid_t *ret_chain, size_t room);

/* Receives a process; `root` is the position of its root among `roots`. */
typedef void tree_on_process(void *context, size_t root, pid_t pid);

/*
 * Walks each of `roots` (n of them) and all their descendants, in one pass over /proc.
 *
 * Returns 0, or -errno.
 */
int tree_walk(const pid_t *roots, size_t n, tree_on_process *on_process, void *context);

#endif
