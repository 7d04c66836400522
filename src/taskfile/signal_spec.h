/* SPDX-License-Identifier: Apache-2.0 */
/* A signal some time before the time limit, an eviction or a suspension: "USR1@120", as Slurm's
 * --signal. */
#ifndef COLLOC_TASKFILE_SIGNAL_SPEC_H
#define COLLOC_TASKFILE_SIGNAL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

struct signal_spec {
    int signal;
    int64_t before_us; /* the end */
    bool script_only;  /* "B:": the script's shell, not the processes that it started */
};

/*
 * Reads "[B:]SIGNAL[@SECONDS]". SIGNAL is a name (USR1, SIGUSR1) or a number, without time it comes
 * 60 s before, as with Slurm.
 *
 * Returns 0, or -EINVAL with a fault; SIGKILL and SIGSTOP are refused, as none can handle them.
 */
int signal_spec_parse(const char *text, struct fault *fault, struct signal_spec *ret_spec);

#endif
