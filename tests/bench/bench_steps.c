/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the step counter of the preloaded library costs a training, for each call of the driver
 * that it sees: 452 calls a step, of which 2 are copies, 1 waits for the GPU and the others launch
 * 120 kernels, 5 us apart, as PyTorch launches them. The first row begins with a new counter, so
 * that it has the windows in which marks are looked for; the second has them, and the windows in
 * which they are compared again. Not counted: the call of the hook itself, and the clock, which is
 * read for the few calls that are noted.
 *
 * A step that is limited by its launches takes 5 us for each: 0.2 % of it are 10 ns.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "preload/step_counter.h"

enum {
    LAUNCHES = 449,
    KERNELS = 120,
    CALLS = LAUNCHES + 3,
    CALL_US = 5,
    STEPS = 2000,
    SAMPLES = 41
};

static struct {
    enum step_call call;
    uint64_t handle;
} calls[CALLS];

static void make_call(int i, enum step_call call, uint64_t handle)
{
    calls[i].call = call;
    calls[i].handle = handle;
}

static void make_step(void)
{
    make_call(0, STEP_COPY, 38535168);
    make_call(1, STEP_COPY, 512);
    for (int i = 0; i < LAUNCHES; i++) /* kernels of forward and backward come several times */
        make_call(2 + i, STEP_LAUNCH, 4096 + (uint64_t)(i * 7 % KERNELS) * 64);
    make_call(CALLS - 1, STEP_SYNC, 0);
}

/* Returns the mean ns of a call over STEPS steps. */
static double train(struct step_counter *counter, int64_t *now_us)
{
    double began_us = bench_cpu_us();
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < CALLS; i++, *now_us += CALL_US) {
            uint32_t symbol = step_symbol(calls[i].call, calls[i].handle);
            if (step_counter_is_due(counter, symbol))
                step_counter_note(counter, symbol, *now_us);
        }
    return 1000 * (bench_cpu_us() - began_us) / (STEPS * (double)CALLS);
}

int main(void)
{
    double begins[SAMPLES], goes_on[SAMPLES];
    struct step_counter *counter = NULL;
    make_step();
    for (int i = 0; i < SAMPLES; i++) {
        int64_t now_us = 1;
        free(counter);
        counter = calloc(1, sizeof *counter);
        if (!counter)
            return 1;
        begins[i] = train(counter, &now_us);
        goes_on[i] = train(counter, &now_us);
        if (counter->steps < 2 * STEPS - STEPS / 10)
            return 1; /* it does not count what it is to be measured for */
    }
    free(counter);
    bench_row("steps: a call of the driver, first 2000 steps", "ns", "", begins, SAMPLES);
    bench_row("steps: a call of the driver, later", "ns", "median < 10", goes_on, SAMPLES);
    return 0;
}
