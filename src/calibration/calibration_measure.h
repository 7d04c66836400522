/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what sharing one GPU does to a few trainings: alone, in pairs and in larger mixes, as
 * plain processes and as clients of MPS. */
#ifndef COLLOC_CALIBRATION_CALIBRATION_MEASURE_H
#define COLLOC_CALIBRATION_CALIBRATION_MEASURE_H

#include "base/fault.h"
#include "calibration/calibration_fit.h"
#include "calibration/calibration_loader.h"
#include "gpu/gpu.h"

enum { CALIBRATION_TRAININGS = 3 };

/* What was measured of one mix. */
struct calibration_run {
    bool mps;
    int n;
    const char *names[CALIBRATION_TASKS_MAX];
    double steps_per_s[CALIBRATION_TASKS_MAX];
    double speeds[CALIBRATION_TASKS_MAX];              /* 1: as alone, as a plain process */
    struct reading smact, smocc, gract, dram, power_w; /* means of the GPU meanwhile */
};

struct calibration_plan {
    struct gpu_set *set;
    size_t gpu;                                   /* its position in the set; a whole GPU */
    const char *python, *script;                  /* of the trainings: workloads/worker.py */
    const char *trainings[CALIBRATION_TRAININGS]; /* from light to heavy */
    double seconds;                               /* of each mix */
    int signals;                                  /* a signalfd: a signal ends the measurement */
    void (*on_run)(void *context, const struct calibration_run *run);
    void *context;
};

enum calibration_answer { CALIBRATION_INTERRUPTED = 1 };

/*
 * Measures the data loader, then all mixes.
 *
 * ret_loader:     as calibration_loader_measure has it
 * ret_why_no_mps: `size` bytes; why there are no clients of MPS among the mixes, or ""
 *
 * Returns 0; CALIBRATION_INTERRUPTED; or -errno with a fault: a training fails or does not reply,
 * or the GPU does not report its SM activity.
 */
int calibration_measure(const struct calibration_plan *plan, struct fault *fault,
    struct calibration_loader *ret_loader, struct calibration_data *ret_data, char *ret_why_no_mps,
    size_t size);

#endif
