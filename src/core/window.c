/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of SM activity over the last seconds. The entries are by time, one after the other in
 * an array. As old ones are dropped and new ones added, they slide to its end; then they are moved
 * to its front, or to an array of twice the size when they fill more than half of it. So an entry
 * is moved about once, and the loops below go straight through. A figure is calculated over all
 * entries each time: a window has some hundred of them, and a running sum would drift.
 */
#include "core/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void window_fini(struct window *window)
{
    free(window->room);
    free(window->sorted);
    *window = (struct window){0};
}

static struct window_entry *entry_at(const struct window *window, int i)
{
    return &window->room[window->first + i];
}

/* The number of the first entry that is not before `since_us`; their count if all are. */
static int first_since(const struct window *window, int64_t since_us)
{
    int i = 0;
    while (i < window->count && entry_at(window, i)->time_us < since_us)
        i++;
    return i;
}

static int grow_room(struct window *window)
{
    int size = window->size ? window->size * 2 : 64;
    struct window_entry *room = malloc((size_t)size * sizeof *room);
    double *sorted = malloc((size_t)size * sizeof *sorted);
    if (!room || !sorted) {
        free(room);
        free(sorted);
        return -ENOMEM;
    }
    if (window->count)
        memcpy(room, entry_at(window, 0), (size_t)window->count * sizeof *room);
    free(window->room);
    free(window->sorted);
    window->room = room;
    window->sorted = sorted;
    window->size = size;
    window->first = 0;
    return 0;
}

/* Makes place for one entry behind the last. Not inlined: mostly there is some. */
static __attribute__((noinline)) int make_place(struct window *window)
{
    if (window->count >= window->size / 2)
        return grow_room(window);
    memcpy(window->room, entry_at(window, 0), (size_t)window->count * sizeof *window->room);
    window->first = 0;
    return 0;
}

int window_add(struct window *window, int64_t time_us, int64_t length_us, struct reading value)
{
    window->length_us = length_us;
    while (window->count && entry_at(window, 0)->time_us <= time_us - length_us) {
        window->first++;
        window->count--;
    }
    if (window->first + window->count == window->size && make_place(window) < 0)
        return -ENOMEM;
    *entry_at(window, window->count++) = (struct window_entry){
        .time_us = time_us, .value = value.valid ? value.value : NAN};
    return 0;
}

/* Sums of every other valid value each: an addition need not wait for the one before it. */
struct two_sums {
    double sum, next; /* `next` gets the next value */
    int n;            /* of values in both */
};

static void add_if_valid(struct two_sums *sums, double value)
{
    if (!isnan(value))
        *sums = (struct two_sums){sums->next + value, sums->sum, sums->n + 1};
}

struct reading window_mean_since(const struct window *window, int64_t since_us, int enough)
{
    struct two_sums sums = {0};
    int i = first_since(window, since_us);
    for (; i + 1 < window->count; i += 2) {
        double value = entry_at(window, i)->value, second = entry_at(window, i + 1)->value;
        if (isunordered(value, second)) { /* at least one is not valid */
            add_if_valid(&sums, value);
            add_if_valid(&sums, second);
        } else {
            sums = (struct two_sums){sums.sum + second, sums.next + value, sums.n + 2};
        }
    }
    if (i < window->count)
        add_if_valid(&sums, entry_at(window, i)->value);
    return sums.n > 0 && sums.n >= enough ? reading_of((sums.sum + sums.next) / sums.n)
                                          : READING_NONE;
}

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct reading p95_since(const struct window *window, int64_t since_us, int enough)
{
    int n = 0;
    for (int i = first_since(window, since_us); i < window->count; i++)
        if (!isnan(entry_at(window, i)->value))
            window->sorted[n++] = entry_at(window, i)->value;
    if (n == 0 || n < enough)
        return READING_NONE;
    qsort(window->sorted, (size_t)n, sizeof *window->sorted, compare_values);
    return reading_of(window->sorted[(95 * n + 99) / 100 - 1]);
}

static struct reading ewma_since(const struct window *window, int64_t since_us, int enough)
{
    double sum = 0, weights = 0, half_life_us = (double)window->length_us / 6;
    int64_t now_us = window->count ? entry_at(window, window->count - 1)->time_us : 0;
    int n = 0;
    for (int i = first_since(window, since_us); i < window->count; i++) {
        const struct window_entry *entry = entry_at(window, i);
        if (isnan(entry->value))
            continue;
        double weight = exp2(-(double)(now_us - entry->time_us) / half_life_us);
        sum += weight * entry->value;
        weights += weight;
        n++;
    }
    return n > 0 && n >= enough ? reading_of(sum / weights) : READING_NONE;
}

struct reading window_recent(
    const struct window *window, enum window_statistic how, int64_t since_us, int enough)
{
    static struct reading (*const figures[WINDOW_STATISTICS])(
        const struct window *, int64_t, int) = {
        [WINDOW_MEAN] = window_mean_since, [WINDOW_P95] = p95_since, [WINDOW_EWMA] = ewma_since};
    if (window->count == 0 || isnan(entry_at(window, window->count - 1)->value))
        return READING_NONE;
    return figures[how](window, since_us, enough);
}

struct reading window_level(
    const struct window *window, enum window_statistic how, int64_t since_us, int enough)
{
    struct reading recent = window_recent(window, how, since_us, enough);
    return recent.valid ? recent : window_recent(window, how, INT64_MIN, 1);
}

int64_t window_newest_us(const struct window *window, int n)
{
    return window->count < n ? INT64_MAX : entry_at(window, window->count - n)->time_us;
}

struct reading window_slope_per_s(const struct window *window)
{
    double n = 0, t_sum = 0, v_sum = 0, tt_sum = 0, tv_sum = 0;
    for (int i = 0; i < window->count; i++) {
        const struct window_entry *entry = entry_at(window, i);
        if (isnan(entry->value))
            continue;
        double t = (double)(entry->time_us - entry_at(window, 0)->time_us) / 1e6;
        n++;
        t_sum += t;
        v_sum += entry->value;
        tt_sum += t * t;
        tv_sum += t * entry->value;
    }
    double spread = n * tt_sum - t_sum * t_sum;
    return spread > 0 ? reading_of((n * tv_sum - t_sum * v_sum) / spread) : READING_NONE;
}

/* ---- names ---- */

const char *const window_statistic_names[WINDOW_STATISTICS] = {"mean", "p95", "ewma"};

const char *window_statistic_name(enum window_statistic how)
{
    return window_statistic_names[how];
}
