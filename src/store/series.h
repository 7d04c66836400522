/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A time series in one file of fixed size: rings of records, each ring coarser and longer than the
 * one before (1 s for an hour, 10 s for a day, ...). Cheap: a small write per step of each ring.
 * Not synced to disk: a power cut costs the last moments, and a record that is half written is left
 * out when it is read.
 */
#ifndef COLLOC_STORE_SERIES_H
#define COLLOC_STORE_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/reading.h"

enum { SERIES_RINGS_MAX = 8, SERIES_VALUES_MAX = 32 };

struct series_ring {
    int64_t step_us; /* of one record */
    int64_t keep_us; /* the newest so much; a multiple of the step */
};

enum series_figure { SERIES_MEAN, SERIES_MAX }; /* what a record has of the values of its step */

struct series_form {
    const struct series_ring *rings; /* the finest first */
    size_t n_rings;
    const enum series_figure *figures; /* one per value */
    size_t n_values;
};

struct series;

/* The form is copied. What is there in another form (or is none of ours) is begun anew. 0 or
 * -errno. */
int series_open(const char *path, const struct series_form *form, struct fault *fault,
    struct series **ret_series);
void series_close(struct series *series); /* writes what is under way; NULL is fine */

/* One value each, as of now (wall clock). 0, or -errno of what could not be written. */
int series_add(struct series *series, int64_t wall_us, const struct reading *values);

typedef void series_on_record(void *context, int64_t wall_us, const struct reading *values);

/*
 * Hands over, in order, the records since then of the finest ring that goes back so far (else of
 * the one that goes back furthest), each with the start of its step. 0 with the step, or -errno.
 */
int series_read(struct series *series, int64_t since_us, int64_t now_us,
    series_on_record *on_record, void *context, int64_t *ret_step_us);

#endif
