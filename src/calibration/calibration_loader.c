/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of workloads/worker.py makes pictures as large as ImageNet's and has them decoded by
 * torchvision's data set and PyTorch's loader, as a training would. Where that is impossible, the
 * calibration goes on: only the wait for data stays unknown.
 */
#include "calibration/calibration_loader.h"

#include <errno.h>

#include "base/clock.h"
#include "base/text.h"

#define REPLY_LIMIT_US (300 * SECOND_US) /* as for a training: imports from a cold network disk */
#define RATE_MAX       1e6               /* as gpu_kinds_read takes: a faster one is a mistake */

enum { ONE_PROCESS = 1, ALL_PROCESSORS = 0 };

static int measure_rate(
    struct worker *worker, int processes, double seconds, struct fault *fault, double *ret_rate)
{
    int r = worker_load_data(worker, processes, seconds, fault);
    if (r == 0)
        r = worker_read(worker, REPLY_LIMIT_US, fault, ret_rate);
    if (r == 0 && !(*ret_rate > 0 && *ret_rate <= RATE_MAX))
        r = fault_set(fault, EIO, "%g pictures a second make no sense", *ret_rate);
    return r;
}

static int measure_both(struct worker *worker, double seconds, struct fault *fault,
    struct calibration_loader *ret_loader)
{
    double ready, rate = 0, most = 0;
    int r = worker_read(worker, REPLY_LIMIT_US, fault, &ready);
    if (r == 0)
        r = measure_rate(worker, ONE_PROCESS, seconds, fault, &rate);
    if (r == 0)
        r = measure_rate(worker, ALL_PROCESSORS, seconds, fault, &most);
    if (r == -EIO) { /* it replied that it cannot */
        ret_loader->why_not = *fault;
        text_make_printable(ret_loader->why_not.text, ' '); /* it becomes a line of the file */
        return 0;
    }
    ret_loader->rate = rate;
    ret_loader->most = most > rate ? most : rate; /* of one processor the two differ by chance */
    return r;
}

int calibration_loader_measure(const struct worker_settings *settings, double seconds,
    struct fault *fault, struct calibration_loader *ret_loader)
{
    struct worker worker;
    *ret_loader = (struct calibration_loader){0};
    int r = worker_start(&worker, settings, fault);
    if (r == 0)
        r = measure_both(&worker, seconds, fault, ret_loader);
    worker_stop(&worker);
    return r;
}
