/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order the MPS clients of a task lose their work when the task is to end. Pure: what the
 * processes are like comes in, what to do comes out.
 *
 * Two things pull against each other. A client that a signal kills in the middle of its work may
 * harm the other clients on the GPU, so the MPS server drops its work first (terminate_client). But
 * a client whose work is dropped fails at once, and with it the checkpoint that a process above it
 * wants to write on SIGTERM. Hence, for the usual wrapper,
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

/* A process of the task, as far as its end is concerned. */
struct drain_process {
    enum { SIGTERM_KILLS, SIGTERM_IGNORED, SIGTERM_CAUGHT } on_sigterm;
    bool is_shell;
    bool
        in_background; /* it ignores SIGINT: so a shell without job control starts what ends in & */
};

enum drain_fate {
    DRAIN_SIGNAL, /* it survives SIGTERM, and gets it as all processes do; dropped before SIGKILL */
    DRAIN_SPARE,  /* neither dropped nor signalled during the grace: a process above it decides */
    DRAIN_DROP,   /* dropped as soon as the others have SIGTERM, and signalled then */
};

/*
 * Fills in what is known of a process.
 *   status: the text of its /proc/PID/status
 *   program: the name of its executable, without folders
 */
void drain_describe(const char *status, const char *program, struct drain_process *ret_process);

/*
 * What is to become of a client.
 *   chain: the client, then its parent, and so on, up to and without the shim; n >= 1
 *   ret_top: for DRAIN_SPARE, the index of the last process below the one that decides: it and all
 *            below it get no signal
 *
 * A shell runs its trap only when the command in its foreground has ended (bash(1), "Signals"): a
 * client in the foreground of a shell with a trap is dropped, not spared.
 */
enum drain_fate drain_plan(const struct drain_process *chain, size_t n, size_t *ret_top);

#endif
