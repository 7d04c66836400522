/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Throughput and activity of a group are means over the time in which all its tasks train:
 *
 *     task 0   | 1: warms up |  2: timed   |  3  |
 *     task 1       | 1: warms up    |  2: timed     |
 *                                   |-- together -|
 */
#include "bench/measured_group.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The first epoch that is timed: in the one before, libraries choose their kernels. */
enum { TIMED = 2 };

/* The time in which every task was in its epochs from `first` on. False: there is none. */
static bool all_busy(const struct measured_group *group, int first, struct interval *ret_span)
{
    bool is_serial = strcmp(group->sharing, "serial") == 0;
    *ret_span = (struct interval){-INFINITY, INFINITY};
    for (int task = 0; task < group->n_tasks; task++) {
        struct interval own = {INFINITY, -INFINITY};
        for (size_t i = 0; i < group->epochs.n; i++) {
            const struct epoch *epoch = &group->epochs.item[i];
            if (epoch->task != task || epoch->number < first)
                continue;
            own.from_s = fmin(own.from_s, epoch->from_s);
            own.to_s = fmax(own.to_s, epoch->to_s);
        }
        ret_span->from_s = fmax(ret_span->from_s, own.from_s);
        ret_span->to_s = fmin(ret_span->to_s, own.to_s);
    }
    return !is_serial && ret_span->from_s < ret_span->to_s;
}

static int count_timed(const struct measured_group *group)
{
    int count = 0;
    for (size_t i = 0; i < group->epochs.n; i++)
        count += group->epochs.item[i].number == TIMED;
    return count;
}

struct reading measured_group_epoch_s(const struct measured_group *group)
{
    double sum = 0;
    int count = count_timed(group);
    for (size_t i = 0; i < group->epochs.n; i++)
        if (group->epochs.item[i].number == TIMED)
            sum += group->epochs.item[i].took_s;
    return count ? reading_of(sum / count) : READING_NONE;
}

/* The time from the first start to the last end of the second epochs. */
static struct interval timed_interval(const struct measured_group *group)
{
    struct interval span = {INFINITY, -INFINITY};
    for (size_t i = 0; i < group->epochs.n; i++) {
        const struct epoch *epoch = &group->epochs.item[i];
        if (epoch->number == TIMED)
            span = (struct interval){
                fmin(span.from_s, epoch->from_s), fmax(span.to_s, epoch->to_s)};
    }
    return span;
}

struct interval measured_group_whole(const struct measured_group *group)
{
    return (struct interval){group->began_s, group->began_s + group->total_s};
}

struct interval measured_group_span(const struct measured_group *group)
{
    struct interval together;
    if (all_busy(group, TIMED, &together))
        return together;
    if (group->epochs.n == 0 && group->failed < group->n_tasks)
        return measured_group_whole(group);
    return timed_interval(group);
}

static bool timed_among_all(const struct measured_group *group)
{
    struct interval busy, timed = timed_interval(group);
    return all_busy(group, 1, &busy) && count_timed(group) == group->n_tasks &&
           busy.from_s <= timed.from_s && timed.to_s <= busy.to_s;
}

static double samples_within(const struct epoch *epoch, const struct interval *span)
{
    double overlap_s = fmin(epoch->to_s, span->to_s) - fmax(epoch->from_s, span->from_s);
    double whole_s = epoch->to_s - epoch->from_s;
    return whole_s > 0 ? epoch->samples * fmax(0, overlap_s) / whole_s : 0;
}

struct reading measured_group_samples_per_s(const struct measured_group *group)
{
    bool by_epochs = timed_among_all(group);
    struct interval together;
    double rate = 0, samples = 0;
    if (!by_epochs && !all_busy(group, TIMED, &together))
        return READING_NONE;
    for (size_t i = 0; i < group->epochs.n; i++) {
        const struct epoch *epoch = &group->epochs.item[i];
        if (by_epochs && epoch->number == TIMED)
            rate += epoch->samples / epoch->took_s;
        else if (!by_epochs && epoch->number >= TIMED)
            samples += samples_within(epoch, &together);
    }
    return reading_of(by_epochs ? rate : samples / (together.to_s - together.from_s));
}
