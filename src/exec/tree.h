/* SPDX-License-Identifier: Apache-2.0 */
/* Process trees, as /proc shows them. */
#ifndef COLLOC_EXEC_TREE_H
#define COLLOC_EXEC_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Sends a signal to every descendant of `root`, not to `root` itself. A process id that was
 * used again since it was listed is left alone. Processes born meanwhile may be missed: a
 * caller that must be sure calls again.
 *
 * Returns how many there were, or -errno.
 */
int tree_signal(pid_t root, int signal);

/*
 * The same in two halves: every descendant of `root` but the processes in `tops` (n of them) and
 * what descends from those; or only these.
 */
int tree_signal_except(pid_t root, const pid_t *tops, size_t n, int signal);
int tree_signal_only(pid_t root, const pid_t *tops, size_t n, int signal);

/*
 * Sends a signal to every process of user `uid` that has `variable` ("KEY=VALUE") in the
 * environment it was started with, and to all their descendants. Returns how many there were, or
 * -errno.
 */
int tree_signal_marked(const char *variable, uid_t uid, int signal);

/*
 * Which of `roots` (shims, say) `pid` descends from or is: its index, or -1 when from none or no
 * longer there. Reads only the parents of `pid`, so that few pids cost little.
 */
int tree_find_root(pid_t pid, const pid_t *roots, size_t count);

/*
 * Lists `pid`, its parent, and so on, up to and without `root`. Returns how many, or 0 when `pid`
 * does not descend from `root` or more than `room` are between them.
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
