/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what sharing a GPU costs on this host. Two training processes for each of three
 * trainings are started, once as plain processes and once as clients of MPS, and load their models.
 * A mix is a command to some of them to train for some seconds, while the GPU is sampled:
 *
 *     light   light alone      light+light   light+heavy   light+medium+heavy (held out)
 *     medium  medium alone     ...
 *
 * What a training does to the GPU alone, as a plain process, is its demand; its speed in a mix is
 * relative to that. Samples of the first fifth of the time are dropped: not all train yet.
 */
#include "calibration/calibration_measure.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "base/array.h"
#include "base/clock.h"
#include "calibration/calibration_worker.h"
#include "gpu/mps.h"
#include "gpu/private_mps.h"

enum { COPIES = 2, WORKERS = CALIBRATION_TRAININGS * COPIES };

#define LOAD_LIMIT_US    (300 * SECOND_US) /* PyTorch from a cold network disk takes minutes */
#define SAMPLE_PERIOD_US (200 * MS_US)     /* twice the shortest time of a GPM value */

/* How many of each training. Those alone come first: they set the demands. */
static const struct {
    int of[CALIBRATION_TRAININGS];
    bool is_held_out;
} mixes[] = {
    {{1, 0, 0}, false},
    {{0, 1, 0}, false},
    {{0, 0, 1}, false},
    {{2, 0, 0}, false},
    {{0, 2, 0}, false},
    {{0, 0, 2}, false},
    {{1, 1, 0}, false},
    {{1, 0, 1}, false},
    {{0, 1, 1}, false},
    {{1, 1, 1}, true},
    {{2, 1, 0}, true},
    {{1, 2, 1}, true},
};

struct measurement {
    const struct calibration_plan *plan;
    struct fault *fault;
    struct worker workers[WORKERS]; /* COPIES of the first training, then of the second, ... */
    struct demand demands[CALIBRATION_TRAININGS];
    double steps_per_s[CALIBRATION_TRAININGS]; /* alone, as a plain process */
    struct calibration_data *data;
};

/* ---- the GPU ---- */

/* A mean over samples with a value. */
struct mean {
    double sum;
    int n;
};

struct means {
    struct mean gract, smact, smocc, dram, power_w;
};

static void add_value(struct mean *mean, struct reading value)
{
    mean->sum += value.valid ? value.value : 0;
    mean->n += value.valid;
}

static struct reading mean_of(const struct mean *mean)
{
    return mean->n ? reading_of(mean->sum / mean->n) : READING_NONE;
}

static void add_sample(struct means *means, const struct gpu_sample *sample)
{
    add_value(&means->gract, sample->gract);
    add_value(&means->smact, sample->smact);
    add_value(&means->smocc, sample->smocc);
    add_value(&means->dram, sample->dram_active);
    add_value(&means->power_w, sample->power_w);
}

/* Waits; a signal interrupts it. */
static int wait_us(const struct calibration_plan *plan, int64_t time_us)
{
    struct pollfd fd = {.fd = plan->signals, .events = POLLIN};
    int64_t end_us = clock_monotonic_us() + time_us;
    for (int64_t left_us = time_us; left_us > 0; left_us = end_us - clock_monotonic_us())
        if (poll(&fd, 1, (int)(left_us / MS_US) + 1) > 0)
            return CALIBRATION_INTERRUPTED;
    return 0;
}

/* Samples the GPU for most of a mix's time. A sample's activity is the mean since the one before
 * it, so the first is dropped. */
static int sample_mix(const struct calibration_plan *plan, struct means *ret_means)
{
    struct gpu_sample sample = {0};
    int64_t now_us = clock_monotonic_us(), span_us = (int64_t)(plan->seconds * (double)SECOND_US);
    int64_t end_us = now_us + span_us * 9 / 10;
    int r = wait_us(plan, span_us / 5);
    *ret_means = (struct means){0};
    gpu_set_query_all_next(plan->set);
    gpu_set_sample(plan->set, plan->gpu, &sample);
    while (r == 0 && clock_monotonic_us() < end_us) {
        r = wait_us(plan, SAMPLE_PERIOD_US);
        gpu_set_query_all_next(plan->set);
        gpu_set_sample(plan->set, plan->gpu, &sample);
        add_sample(ret_means, &sample);
    }
    gpu_sample_fini(&sample);
    return r;
}

/* ---- one mix ---- */

/* The workers of a mix, in its order. */
static int list_workers(
    struct measurement *measurement, const int *of, struct worker **ret_workers, int *ret_training)
{
    int n = 0;
    for (int training = 0; training < CALIBRATION_TRAININGS; training++)
        for (int copy = 0; copy < of[training]; copy++) {
            ret_training[n] = training;
            ret_workers[n++] = &measurement->workers[training * COPIES + copy];
        }
    return n;
}

static int read_reply(
    struct measurement *measurement, struct worker *worker, int64_t limit_us, double *ret_speed)
{
    int r = worker_read(worker, limit_us, measurement->fault, ret_speed);
    return r == WORKER_INTERRUPTED ? CALIBRATION_INTERRUPTED : r;
}

/* Runs some workers together. Returns their steps per second, and what the GPU did meanwhile. */
static int run_workers(struct measurement *measurement, struct worker **workers, int n,
    double *ret_speeds, struct means *ret_means)
{
    const struct calibration_plan *plan = measurement->plan;
    int64_t limit_us = LOAD_LIMIT_US + (int64_t)(plan->seconds * (double)SECOND_US);
    int r = 0;
    for (int i = 0; r == 0 && i < n; i++)
        r = worker_run(workers[i], plan->seconds, measurement->fault);
    if (r == 0)
        r = sample_mix(plan, ret_means);
    for (int i = 0; r == 0 && i < n; i++) {
        r = read_reply(measurement, workers[i], limit_us, &ret_speeds[i]);
        if (r == 0 && ret_speeds[i] <= 0)
            r = fault_set(
                measurement->fault, EIO, "a training made no step in %g s", plan->seconds);
    }
    if (r == 0 && ret_means->smact.n == 0)
        r = fault_set(measurement->fault, ENODATA, "the GPU does not report its SM activity");
    return r;
}

/* A training alone: its demand, and what speed 1 is. */
static void note_alone(
    struct measurement *measurement, int training, double steps_per_s, const struct means *means)
{
    struct demand demand = {
        .gract = reading_assume(mean_of(&means->gract), NAN),
        .smact = mean_of(&means->smact).value,
        .smocc = reading_assume(mean_of(&means->smocc), NAN),
        .dram = reading_assume(mean_of(&means->dram), NAN),
    };
    demand_complete(&demand, 0);
    measurement->demands[training] = demand;
    measurement->steps_per_s[training] = steps_per_s;
}

static void add_mix(struct measurement *measurement, const struct calibration_run *run,
    const int *training, bool is_held_out)
{
    struct calibration_mix mix = {.mps = run->mps,
        .is_held_out = is_held_out,
        .n = run->n,
        .smact = run->smact,
        .dram = run->dram};
    for (int i = 0; i < run->n; i++) {
        mix.demands[i] = measurement->demands[training[i]];
        mix.speeds[i] = run->speeds[i];
    }
    measurement->data->mixes[measurement->data->n++] = mix;
}

static int measure_mix(struct measurement *measurement, size_t at, bool mps)
{
    const struct calibration_plan *plan = measurement->plan;
    struct worker *workers[WORKERS];
    struct calibration_run run = {.mps = mps};
    struct means means;
    int training[WORKERS];
    run.n = list_workers(measurement, mixes[at].of, workers, training);
    int r = run_workers(measurement, workers, run.n, run.steps_per_s, &means);
    if (r != 0)
        return r;
    if (run.n == 1 && !mps)
        note_alone(measurement, training[0], run.steps_per_s[0], &means);
    for (int i = 0; i < run.n; i++) {
        run.names[i] = plan->trainings[training[i]];
        run.speeds[i] = run.steps_per_s[i] / measurement->steps_per_s[training[i]];
    }
    run.smact = mean_of(&means.smact);
    run.smocc = mean_of(&means.smocc);
    run.gract = mean_of(&means.gract);
    run.dram = mean_of(&means.dram);
    run.power_w = mean_of(&means.power_w);
    if (run.n > 1 || mps)
        add_mix(measurement, &run, training, mixes[at].is_held_out);
    plan->on_run(plan->context, &run);
    return 0;
}

/* ---- one way of sharing ---- */

static struct worker_settings settings_of(const struct calibration_plan *plan, const char *mps_pipe)
{
    return (struct worker_settings){.python = plan->python,
        .script = plan->script,
        .gpu_uuid = plan->set->gpu[plan->gpu].uuid,
        .mps_pipe = mps_pipe,
        .signals = plan->signals};
}

/* Starts all workers at once, and loads their models once all are up. */
static int start_workers(struct measurement *measurement, const char *mps_pipe)
{
    const struct calibration_plan *plan = measurement->plan;
    const struct worker_settings settings = settings_of(plan, mps_pipe);
    double ignored;
    int r = 0;
    for (int i = 0; r == 0 && i < WORKERS; i++)
        r = worker_start(&measurement->workers[i], &settings, measurement->fault);
    for (int i = 0; r == 0 && i < WORKERS; i++)
        r = read_reply(measurement, &measurement->workers[i], LOAD_LIMIT_US, &ignored);
    for (int i = 0; r == 0 && i < WORKERS; i++)
        r = worker_load(&measurement->workers[i], plan->trainings[i / COPIES], measurement->fault);
    for (int i = 0; r == 0 && i < WORKERS; i++)
        r = read_reply(measurement, &measurement->workers[i], LOAD_LIMIT_US, &ignored);
    return r;
}

static int measure_way(struct measurement *measurement, const char *mps_pipe)
{
    int r = start_workers(measurement, mps_pipe);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(mixes); i++)
        r = measure_mix(measurement, i, mps_pipe != NULL);
    for (int i = 0; i < WORKERS; i++)
        worker_stop(&measurement->workers[i]);
    return r;
}

/* Without MPS on this machine only plain processes are measured. */
static int measure_mps(struct measurement *measurement, char *ret_why_not, size_t size)
{
    const char *const uuids[] = {measurement->plan->set->gpu[measurement->plan->gpu].uuid};
    struct private_mps mps = {0};
    struct fault fault = {0};
    int r = private_mps_start(&mps, uuids, 1, &fault);
    if (r == 0)
        r = measure_way(measurement, mps.pipe);
    else {
        snprintf(ret_why_not, size, "%s", fault.text);
        r = 0;
    }
    private_mps_stop(&mps);
    return r;
}

static int measure_loader(
    const struct calibration_plan *plan, struct fault *fault, struct calibration_loader *ret_loader)
{
    const struct worker_settings settings = settings_of(plan, NULL);
    int r = calibration_loader_measure(&settings, plan->seconds, fault, ret_loader);
    return r == WORKER_INTERRUPTED ? CALIBRATION_INTERRUPTED : r;
}

int calibration_measure(const struct calibration_plan *plan, struct fault *fault,
    struct calibration_loader *ret_loader, struct calibration_data *ret_data, char *ret_why_no_mps,
    size_t size)
{
    struct measurement measurement = {.plan = plan, .fault = fault, .data = ret_data};
    ret_data->n = 0;
    *ret_why_no_mps = '\0';
    int r = gpu_set_use_dcgm(plan->set, "dcgmi", SAMPLE_PERIOD_US);
    if (r < 0)
        return fault_set(fault, -r, "out of memory");
    r = measure_loader(plan, fault, ret_loader);
    r = r == 0 ? measure_way(&measurement, NULL) : r;
    return r == 0 ? measure_mps(&measurement, ret_why_no_mps, size) : r;
}
