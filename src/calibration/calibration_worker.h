/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training processes that take commands (workloads/worker.py): started once, they load a model and
 * train for a given time at each command, so that starting Python does not count.
 */
#ifndef COLLOC_CALIBRATION_CALIBRATION_WORKER_H
#define COLLOC_CALIBRATION_CALIBRATION_WORKER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

enum worker_answer { WORKER_INTERRUPTED = 1 };

struct worker_settings {
    const char *python, *script;
    const char *gpu_uuid;
    const char *mps_pipe; /* NULL: no client of MPS */
    int signals;          /* a signalfd: a signal interrupts whatever waits */
};

/* Start with {.pid = 0}. */
struct worker {
    pid_t pid; /* 0: none */
    int pidfd;
    int input, output; /* of the process */
    int errors;        /* a file without a name, its standard error */
    int signals;
    char line[4096]; /* output without a line end so far */
    size_t used;
};

/* Starts a process. Returns 0, or -errno with a fault. worker_stop must follow. */
int worker_start(
    struct worker *worker, const struct worker_settings *settings, struct fault *fault);

/* Sends {"do": "load", "model": MODEL}. Returns 0, or -errno with a fault. */
int worker_load(struct worker *worker, const char *model, struct fault *fault);

/* Sends {"do": "run", "seconds": SECONDS}. Returns 0, or -errno with a fault. */
int worker_run(struct worker *worker, double seconds, struct fault *fault);

/*
 * Sends {"do": "loader", "processes": PROCESSES, "seconds": SECONDS}: to decode pictures.
 *
 * processes: of the data loader; 0: as many as there are processors
 *
 * Returns 0, or -errno with a fault.
 */
int worker_load_data(struct worker *worker, int processes, double seconds, struct fault *fault);

/*
 * Waits for the next reply.
 *
 * limit_us:  for the reply to come
 * ret_speed: its steps per second; 0 when it has none
 *
 * Returns 0; WORKER_INTERRUPTED; or with a fault -ETIMEDOUT, -EPIPE (the process has ended; the
 * last line of its standard error is in the fault), -EIO (it replied with an error).
 */
int worker_read(struct worker *worker, int64_t limit_us, struct fault *fault, double *ret_speed);

/* Ends the process and its children. */
void worker_stop(struct worker *worker);

#endif
