/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stored samples of a GPU. The file is a head and then the rings, one after the other. A ring
 * has keep / step slots; the record of the step that starts at time t is in slot (t / step) mod
 * slots, so that it overwrites the one of a ring's length before, and nothing has to be searched:
 *
 *     step 10 s, keep 60 s:   slot  0   1   2   3   4   5
 *                             t     60  70  20  30  40  50      (70 s has overwritten 10 s)
 *
 * Values are added up in memory; a step that has passed becomes a record. A record has its time and
 * a checksum: a slot with another time is old, one with a wrong checksum half written.
 *
 * A write costs much more than the bytes of a record. So records of neighbouring slots are held
 * back in memory. They are written together once they cover HOLD_US, at the end of the ring, before
 * a gap and when the file is closed. A reader gets them from memory.
 */
#include "store/series.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"

#define HOLD_US (5 * SECOND_US) /* chosen: a crash may lose this much, as of the metrics */

enum { HELD_MAX = 8 }; /* records held back of a ring; chosen */

/* ---- the file ---- */

struct head {
    char magic[16];
    uint32_t n_rings, n_values;
    struct series_ring rings[SERIES_RINGS_MAX];
};

/* On disk a record ends after n_values values. */
struct record {
    int64_t start_us;
    uint32_t check, reserved;
    float value[SERIES_VALUES_MAX]; /* NaN: not known */
};

static const char MAGIC[16] = "colloc-series-1";

struct step {
    int64_t start_us; /* 0: nothing yet */
    double sum[SERIES_VALUES_MAX];
    int n[SERIES_VALUES_MAX];
};

/* Records of neighbouring slots that are not written yet, as they will be on disk. */
struct held {
    int64_t first_slot;
    int n;
    char records[HELD_MAX * sizeof(struct record)];
};

struct series {
    int fd;
    struct head head;
    enum series_figure figures[SERIES_VALUES_MAX];
    struct step steps[SERIES_RINGS_MAX]; /* of each ring: the step that has not passed */
    struct held held[SERIES_RINGS_MAX];
};

static size_t record_size(const struct series *series)
{
    return offsetof(struct record, value) + series->head.n_values * sizeof(float);
}

static int64_t slots_of(const struct series_ring *ring)
{
    return ring->keep_us / ring->step_us;
}

static off_t ring_offset(const struct series *series, size_t ring)
{
    int64_t slots = 0;
    for (size_t i = 0; i < ring; i++)
        slots += slots_of(&series->head.rings[i]);
    return (off_t)sizeof(struct head) + slots * (off_t)record_size(series);
}

/* The checksum of the time and the values. */
static uint32_t check_of(const struct series *series, const struct record *record)
{
    uint32_t hash = hash32_bytes(HASH32_START, &record->start_us, sizeof record->start_us);
    return hash32_bytes(hash, record->value, series->head.n_values * sizeof(float));
}

static bool is_ours(const struct series *series)
{
    struct head found;
    struct stat status;
    return pread(series->fd, &found, sizeof found, 0) == (ssize_t)sizeof found &&
           fstat(series->fd, &status) == 0 && memcmp(&found, &series->head, sizeof found) == 0 &&
           status.st_size == ring_offset(series, series->head.n_rings);
}

/* The file gets its full size at once; the disk allocates blocks as they are written. */
static int create_file(struct series *series)
{
    const struct head head = series->head;
    if (ftruncate(series->fd, 0) < 0 ||
        ftruncate(series->fd, ring_offset(series, head.n_rings)) < 0 ||
        pwrite(series->fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return -errno;
    return 0;
}

static int open_file(struct series *series, const char *path, struct fault *fault)
{
    series->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (series->fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = is_ours(series) ? 0 : create_file(series);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

int series_open(const char *path, const struct series_form *form, struct fault *fault,
    struct series **ret_series)
{
    struct series *series = calloc(1, sizeof *series);
    *ret_series = NULL;
    if (!series)
        return fault_set(fault, ENOMEM, "out of memory");
    memcpy(series->head.magic, MAGIC, sizeof MAGIC);
    series->head.n_rings = (uint32_t)form->n_rings;
    series->head.n_values = (uint32_t)form->n_values;
    memcpy(series->head.rings, form->rings, form->n_rings * sizeof *form->rings);
    memcpy(series->figures, form->figures, form->n_values * sizeof *form->figures);
    int r = open_file(series, path, fault);
    if (r == 0)
        *ret_series = series;
    else
        series_close(series);
    return r;
}

/* ---- writing ---- */

/* What could not be written is lost. */
static int write_held(struct series *series, size_t ring)
{
    struct held *held = &series->held[ring];
    size_t record = record_size(series), size = (size_t)held->n * record;
    off_t offset = ring_offset(series, ring) + held->first_slot * (off_t)record;
    held->n = 0;
    ssize_t n = size ? pwrite(series->fd, held->records, size, offset) : 0;
    return n == (ssize_t)size ? 0 : n < 0 ? -errno : -ENOSPC;
}

static int hold_record(struct series *series, size_t ring, const struct record *record)
{
    const struct series_ring *form = &series->head.rings[ring];
    struct held *held = &series->held[ring];
    int64_t slot = record->start_us / form->step_us % slots_of(form);
    size_t size = record_size(series);
    int r = slot == held->first_slot + held->n ? 0 : write_held(series, ring);
    if (held->n == 0)
        held->first_slot = slot;
    memcpy(held->records + (size_t)held->n++ * size, record, size);
    if (held->n == HELD_MAX || held->n * form->step_us >= HOLD_US || slot == slots_of(form) - 1) {
        int wrote = write_held(series, ring);
        r = r < 0 ? r : wrote;
    }
    return r;
}

static int end_step(struct series *series, size_t ring)
{
    struct step *step = &series->steps[ring];
    struct record record = {.start_us = step->start_us};
    for (size_t i = 0; i < series->head.n_values; i++) {
        double value = series->figures[i] == SERIES_MAX ? step->sum[i] : step->sum[i] / step->n[i];
        record.value[i] = step->n[i] ? (float)value : NAN;
    }
    record.check = check_of(series, &record);
    *step = (struct step){0};
    return hold_record(series, ring, &record);
}

static void add_value(struct step *step, size_t i, enum series_figure figure, double value)
{
    if (figure == SERIES_MEAN)
        step->sum[i] += value;
    else if (step->n[i] == 0 || value > step->sum[i])
        step->sum[i] = value;
    step->n[i]++;
}

int series_add(struct series *series, int64_t wall_us, const struct reading *values)
{
    int r = 0;
    for (size_t ring = 0; ring < series->head.n_rings; ring++) {
        struct step *step = &series->steps[ring];
        int64_t start_us = wall_us - wall_us % series->head.rings[ring].step_us;
        if (step->start_us && step->start_us != start_us) {
            int ended = end_step(series, ring);
            r = r < 0 ? r : ended;
        }
        step->start_us = start_us;
        for (size_t i = 0; i < series->head.n_values; i++)
            if (values[i].valid)
                add_value(step, i, series->figures[i], values[i].value);
    }
    return r;
}

void series_close(struct series *series)
{
    if (!series)
        return;
    for (size_t ring = 0; series->fd >= 0 && ring < series->head.n_rings; ring++) {
        if (series->steps[ring].start_us)
            end_step(series, ring);
        write_held(series, ring);
    }
    if (series->fd >= 0)
        close(series->fd);
    free(series);
}

/* ---- reading ---- */

static size_t ring_for(const struct series *series, int64_t since_us, int64_t now_us)
{
    size_t furthest = 0;
    for (size_t i = 0; i < series->head.n_rings; i++) {
        if (now_us - series->head.rings[i].keep_us <= since_us)
            return i;
        if (series->head.rings[i].keep_us > series->head.rings[furthest].keep_us)
            furthest = i;
    }
    return furthest;
}

/* Reads the record of a step. Returns false if the slot has another one, or a half-written one. */
static bool read_record(
    const struct series *series, const char *slot, int64_t start_us, struct reading *values)
{
    struct record record = {0};
    memcpy(&record, slot, record_size(series));
    if (record.start_us != start_us || record.check != check_of(series, &record))
        return false;
    for (size_t i = 0; i < series->head.n_values; i++)
        values[i] = isnan(record.value[i]) ? READING_NONE : reading_of(record.value[i]);
    return true;
}

int series_read(struct series *series, int64_t since_us, int64_t now_us,
    series_on_record *on_record, void *context, int64_t *ret_step_us)
{
    size_t ring = ring_for(series, since_us, now_us), size = record_size(series);
    const struct series_ring *form = &series->head.rings[ring];
    int64_t slots = slots_of(form), first_us = now_us - form->keep_us;
    struct reading values[SERIES_VALUES_MAX];
    char *data = malloc((size_t)slots * size);
    if (!data)
        return -ENOMEM;
    *ret_step_us = form->step_us;
    ssize_t n = pread(series->fd, data, (size_t)slots * size, ring_offset(series, ring));
    int r = n == (ssize_t)((size_t)slots * size) ? 0 : n < 0 ? -errno : -EIO;
    const struct held *held = &series->held[ring];
    memcpy(data + (size_t)held->first_slot * size, held->records, (size_t)held->n * size);
    if (since_us > first_us)
        first_us = since_us;
    int64_t at_us = first_us > 0 ? first_us + form->step_us - 1 : 0;
    for (at_us -= at_us % form->step_us; r == 0 && at_us <= now_us; at_us += form->step_us)
        if (read_record(
                series, data + (size_t)(at_us / form->step_us % slots) * size, at_us, values))
            on_record(context, at_us, values);
    free(data);
    return r;
}
