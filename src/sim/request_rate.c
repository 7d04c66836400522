/* SPDX-License-Identifier: Apache-2.0 */
/* A rate is a list of steps; a text is read step by step, each of which has to begin later than
 * the one before. */
#include "sim/request_rate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* Figures beyond these are mistakes (chosen: far above any service, and 30 years). */
#define PER_S_MAX  1e6
#define FROM_S_MAX 1e9

/* Reads "FROM:PER_S", or "PER_S" as the first step, from the `size` bytes at `text`. */
static int parse_step(const char *text, size_t size, bool is_first, struct rate_step *ret_step)
{
    char step[64];
    if (size >= sizeof step)
        return -EINVAL;
    snprintf(step, sizeof step, "%.*s", (int)size, text);
    char *colon = strchr(step, ':');
    *ret_step = (struct rate_step){0};
    if (!colon != is_first)
        return -EINVAL;
    if (colon)
        *colon = '\0';
    int r = parse_double(colon ? colon + 1 : step, 0, PER_S_MAX, &ret_step->per_s);
    return r < 0 || !colon ? r : parse_double(step, 0, FROM_S_MAX, &ret_step->from_s);
}

int request_rate_parse(const char *text, struct request_rate *ret_rate)
{
    *ret_rate = (struct request_rate){0};
    while (ret_rate->n < REQUEST_RATE_STEPS) {
        size_t size = strcspn(text, ";");
        struct rate_step *step = &ret_rate->steps[ret_rate->n];
        if (parse_step(text, size, ret_rate->n == 0, step) < 0 ||
            (ret_rate->n > 0 && step->from_s <= step[-1].from_s))
            return -EINVAL;
        ret_rate->n++;
        if (text[size] == '\0')
            return 0;
        text += size + 1;
    }
    return -EINVAL;
}

double request_rate_at(const struct request_rate *rate, double time_s)
{
    double per_s = 0;
    for (int i = 0; i < rate->n && rate->steps[i].from_s <= time_s; i++)
        per_s = rate->steps[i].per_s;
    return per_s;
}

double request_rate_max(const struct request_rate *rate)
{
    double most = 0;
    for (int i = 0; i < rate->n; i++)
        most = fmax(most, rate->steps[i].per_s);
    return most;
}
