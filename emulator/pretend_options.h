/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of colloc-pretend-train. */
#ifndef COLLOC_EMULATOR_PRETEND_OPTIONS_H
#define COLLOC_EMULATOR_PRETEND_OPTIONS_H

#include "emulator/crash_message.h"
#include "sharing/interference.h"

struct pretend_options {
    int64_t memory_bytes; /* per GPU, the context included: what nvidia-smi shows */
    double seconds;       /* alone on its GPUs */
    double ramp_s;        /* until all memory is taken; NAN: the world's constant */
    double startup_s;     /* before it touches a GPU: imports, dataset; NAN: the world's constant */
    int epochs;
    int steps; /* that it reports, of the whole training; 0: none */
    int gpus;
    double fault_s;        /* of work, until it does what stops the GPU; negative: never */
    double leak_mib_per_s; /* on top of its memory, without end */
    bool has_profiler;     /* CUPTI is at work in it */
    bool has_managed;      /* it uses managed memory */
    bool catches_term;     /* ends by itself on SIGTERM, with an exit status of 0 */
    int exit_code;
    enum framework framework;
    struct demand demand; /* power of the whole GPU; NAN: to be derived from SMACT */
};

/*
 * Reads the command line.
 *
 * Returns 0; 1 when the help was printed; -EINVAL with the wrong option in the fault.
 */
int pretend_options_parse(
    int argc, char **argv, struct pretend_options *ret_options, struct fault *fault);

#endif
