/* The samples of the last while, in a ring, and their mean. A sample that is not valid is remembered as such. */
#ifndef COLLOC_CORE_WINDOW_H
#define COLLOC_CORE_WINDOW_H

#include <stdint.h>

#include "base/reading.h"

struct window {
    struct window_entry {
        int64_t time_us;
        double value; /* NaN: not valid */
    } * ring;
    int size, first, count;
};

void window_fini(struct window *window);

/* Forgets entries older than `length_us` before `time_us`, then adds one. 0 or -ENOMEM. */
int window_add(struct window *window, int64_t time_us, int64_t length_us, struct reading value);

/*
 * The mean of the valid entries since `since_us` when there are at least `enough` of them, otherwise of all valid
 * entries in the window. Not valid when there is none, or when the newest entry is not valid: a sensor that has
 * stopped answering says nothing of now.
 */
struct reading window_mean(const struct window *window, int64_t since_us, int enough);

/* The mean of the valid entries since `since_us`: not valid when there are fewer than `enough`. */
struct reading window_mean_since(const struct window *window, int64_t since_us, int enough);

#endif
