/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which the MPS clients of a task lose their work when the task is to end. A pure
 * function of the facts about the processes.
 *
 * There are two opposite demands. A client that a signal kills in the middle of its work may harm
 * the other clients on the GPU, so the MPS server drops its work first (terminate_client). But a
 * client whose work is dropped fails at once, before it can write the checkpoint that a process
 * above it requests on SIGTERM. So, for the usual wrapper,
 *
 *     trap 'kill -USR1 $pid; wait $pid; echo checkpoint saved' TERM
 *     python train.py & pid=$!; wait $pid
 *
 * bash gets SIGTERM, python gets no signal and keeps its work until the grace is over.
 */
#ifndef COLLOC_EXEC_DRAIN_PLAN_H
#define COLLOC_EXEC_DRAIN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

/* The facts about each process of the task that the plan depends on. */
struct drain_process {
    enum { SIGTERM_KILLS, SIGTERM_IGNORED, SIGTERM_CAUGHT } on_sigterm;
    bool is_shell;
    bool in_background; /* it ignores SIGINT, as a background process of a script */
};

enum drain_fate {
    DRAIN_SIGNAL, /* it survives SIGTERM, and gets it as others do; dropped before SIGKILL */
    DRAIN_SPARE,  /* neither dropped nor signalled in the grace time: a process above it ends it */
    DRAIN_DROP,   /* dropped once the other processes have SIGTERM, then signalled */
};

/*
 * Describes a process.
 *
 * status:  the text of its /proc/PID/status.
 * program: the name of its executable, without folders.
 */
void drain_describe(const char *status, const char *program, struct drain_process *ret_process);

/*
 * Decides the fate of a client.
 *
 * A shell runs its trap only when the command in its foreground has ended (bash(1), "Signals"): so
 * a client in the foreground of a shell with a trap is dropped, not spared.
 *
 * chain:   the client, then its parent, and so on, without the shim; n >= 1.
 * ret_top: for DRAIN_SPARE, the index of the last process below the one that ends the client: it
 *          and all below it get no signal.
 *
 * Returns the fate.
 */
enum drain_fate drain_plan(const struct drain_process *chain, size_t n, size_t *ret_top);

#endif
