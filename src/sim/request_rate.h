/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests per second a service gets over time, as a catalogue has it in the column
 * "rate":
 *
 *     20                    20 all the time
 *     20;3600:80;7200:5     20 at first, 80 from 3,600 s after its submission on, 5 from 7,200 s on
 */
#ifndef COLLOC_SIM_REQUEST_RATE_H
#define COLLOC_SIM_REQUEST_RATE_H

#include <stdbool.h>

/* Chosen: a day in steps of ten minutes. */
enum { REQUEST_RATE_STEPS = 144 };

struct request_rate {
    struct rate_step {
        double from_s, per_s;
    } steps[REQUEST_RATE_STEPS]; /* in order of time; the first is from 0 on */
    int n;
};

/* Reads such a text. Returns 0, or -EINVAL if it is none. */
int request_rate_parse(const char *text, struct request_rate *ret_rate);

/* Returns the rate at a time after the submission. */
double request_rate_at(const struct request_rate *rate, double time_s);

/* Returns the largest rate. */
double request_rate_max(const struct request_rate *rate);

#endif
