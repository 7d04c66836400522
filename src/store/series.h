/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A time series in one file of fixed size. It has several rings of records, each coarser and longer
 * than the one before (for example a record each second for an hour, each 10 s for a day). Several
 * short steps are written together.
 *
 * Contract:
 * 1. A crash of the program loses at most 5 s of values, and the step that has not passed.
 * 2. series_read sees each step that has passed, written or not.
 * 3. The file is not synced. A power cut loses the last moments; a half-written record is left out
 *    when it is read.
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
    int64_t keep_us; /* how far the ring goes back; a multiple of the step */
};

/* Which figure of a step's values its record has. */
enum series_figure { SERIES_MEAN, SERIES_MAX };

struct series_form {
    const struct series_ring *rings; /* the finest first */
    size_t n_rings;
    const enum series_figure *figures; /* one for each value */
    size_t n_values;
};

struct series;

/*
 * Opens a file, or creates it. A file of another form, or that is no series, is replaced.
 *
 * form:       copied.
 * ret_series: for series_close.
 *
 * Returns 0, or -errno with a fault.
 */
int series_open(const char *path, const struct series_form *form, struct fault *fault,
    struct series **ret_series);

/* Writes everything, also the steps that have not passed, and closes the file. NULL is allowed. */
void series_close(struct series *series);

/*
 * Adds one reading of each value.
 *
 * wall_us: the wall clock.
 *
 * Returns 0, or -errno of what could not be written; it may be of earlier steps.
 */
int series_add(struct series *series, int64_t wall_us, const struct reading *values);

/* Receives a record; `wall_us` is the start of its step. */
typedef void series_on_record(void *context, int64_t wall_us, const struct reading *values);

/*
 * Reads, in order, the records since `since_us` of the finest ring that goes back so far, or of the
 * longest ring.
 *
 * ret_step_us: the step of that ring.
 *
 * Returns 0, -ENOMEM, or -errno of the file.
 */
int series_read(struct series *series, int64_t since_us, int64_t now_us,
    series_on_record *on_record, void *context, int64_t *ret_step_us);

#endif
