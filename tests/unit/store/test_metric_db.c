/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics over time: what was sampled comes back, older times thinned; what is unknown stays
 * unknown; a crash loses nothing that was committed; time and size are bounded.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/metric_bucket.h"
#include "store/metric_db.h"
#include "store/store_private.h"
#include "unit.h"

#define HOUR_MS  3600000LL
#define DAY_MS   (24 * HOUR_MS)
#define T0       (20000 * DAY_MS) /* midnight */
#define NO_LIMIT INT64_MAX

/* Short, so that tests pass through all levels: samples for 60 s, 10 s for 10 min, 1 min for 1
 * h. */
static const struct metric_level levels[] = {
    {0, 0, 60000}, {10000, 60000, 600000}, {60000, 600000, HOUR_MS}};

struct seen {
    int n;
    int64_t at_ms[4096];
    struct metric_value first[4096], second[4096];
};

static void on_bucket(void *context, int64_t at_ms, const struct metric_value *values)
{
    struct seen *seen = context;
    assert_true(seen->n < 4096);
    seen->at_ms[seen->n] = at_ms;
    seen->first[seen->n] = values[0];
    seen->second[seen->n++] = values[1];
}

static struct metric_db *open_db(const char *folder)
{
    char path[256];
    struct fault fault = {""};
    struct metric_db *db;
    snprintf(path, sizeof path, "%s/metrics.db", folder);
    if (metric_db_open(path, levels, 3, &fault, &db) != 0)
        fail_msg("%s", fault.text);
    return db;
}

/* Writes `count` samples, one each `step_ms`: `value` counts up, the second value is unknown. */
static void write_run(struct metric_db *db, uint64_t task, const char *gpu, int64_t at_ms,
    int64_t step_ms, int count, float value)
{
    int64_t times[64];
    float values[128];
    struct fault fault = {""};
    struct metric_samples samples = {
        .key.task = task, .n_values = 2, .count = (size_t)count, .at_ms = times, .values = values};
    assert_true(count <= 64);
    snprintf(samples.key.gpu, sizeof samples.key.gpu, "%s", gpu);
    for (int i = 0; i < count; i++) {
        times[i] = at_ms + i * step_ms;
        values[2 * i] = value + (float)i;
        values[2 * i + 1] = NAN;
    }
    if (metric_db_write(db, &samples, 1, &fault) != 0)
        fail_msg("%s", fault.text);
}

/* Seconds `from` to `to` behind T0, a sample each second, whose value is its second. */
static void write_seconds(struct metric_db *db, uint64_t task, int from, int to)
{
    for (int s = from; s < to; s += 5)
        write_run(db, task, "GPU-a", T0 + s * 1000LL, 1000, to - s < 5 ? to - s : 5, (float)s);
}

static void thin(struct metric_db *db, int64_t now_ms)
{
    struct fault fault = {""};
    int r;
    while ((r = metric_db_thin(db, now_ms, &fault)) == METRIC_DB_MORE)
        ;
    if (r != 0)
        fail_msg("%s", fault.text);
}

static struct metric_series only_series(struct metric_db *db, uint64_t task)
{
    struct fault fault = {""};
    struct metric_series *list, one;
    assert_int_equal(metric_db_list(db, task, NULL, 0, INT64_MAX, &fault, &list), 1);
    one = *list;
    free(list);
    return one;
}

static const struct seen *read_task(
    struct metric_db *db, uint64_t task, int64_t since_ms, int64_t until_ms, int64_t step_ms)
{
    static struct seen seen;
    struct fault fault = {""};
    struct metric_series series = only_series(db, task);
    seen.n = 0;
    if (metric_db_read(db, &series, since_ms, until_ms, step_ms, on_bucket, &seen, &fault) != 0)
        fail_msg("%s", fault.text);
    return &seen;
}

static void test_recent_times_come_back_as_sampled(void **state)
{
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 30);
    const struct seen *seen = read_task(db, 7, T0, T0 + 60000, 1);
    assert_int_equal(seen->n, 30);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(seen->at_ms[i], T0 + i * 1000);
        assert_float_equal(seen->first[i].mean, i, 0);
        assert_true(isnan(seen->second[i].mean) && isnan(seen->second[i].min));
    }
    seen = read_task(db, 7, T0 + 10000, T0 + 12000, 1);
    assert_int_equal(seen->n, 2);
    metric_db_close(db);
}

static void test_steps_have_minimum_mean_and_maximum(void **state)
{
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 20);
    const struct seen *seen = read_task(db, 7, T0, T0 + 60000, 10000);
    assert_int_equal(seen->n, 2);
    assert_float_equal(seen->first[1].min, 10, 0);
    assert_float_equal(seen->first[1].mean, 14.5, 1e-6);
    assert_float_equal(seen->first[1].max, 19, 0);
    assert_true(isnan(seen->second[1].max));
    metric_db_close(db);
}

/* What is older than samples are kept comes from the blocks, and the seam shows no gap. */
static void test_older_times_are_thinned(void **state)
{
    struct fault fault = {""};
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 1500);
    thin(db, T0 + 1500000);
    assert_int_equal(metric_db_prune(db, T0 + 1500000, NO_LIMIT, &fault), 0);
    const struct seen *seen = read_task(db, 7, T0, T0 + 1600000, 1);
    int64_t before = -1;
    int minutes = 0, tens = 0, seconds = 0;
    for (int i = 0; i < seen->n; i++) {
        int64_t gap = before < 0 ? 0 : seen->at_ms[i] - before;
        assert_true(gap >= 0 && gap <= 60000);
        minutes += seen->first[i].max - seen->first[i].min > 50;
        tens += seen->first[i].max - seen->first[i].min == 9;
        seconds += seen->first[i].max == seen->first[i].min;
        assert_true(isnan(seen->second[i].mean));
        before = seen->at_ms[i];
    }
    assert_int_equal(before, T0 + 1499000);
    assert_true(minutes >= 10 && minutes <= 16);
    assert_true(tens >= 50 && tens <= 70);
    assert_true(seconds >= 60 && seconds <= 125);
    assert_int_equal(seen->at_ms[0], T0);
    assert_float_equal(seen->first[0].min, 0, 0);
    assert_float_equal(seen->first[0].mean, 29.5, 1e-4);
    assert_float_equal(seen->first[0].max, 59, 0);
    metric_db_close(db);
}

/* A coarse step reads coarse blocks, and behind the last block what is finer. */
static void test_coarse_steps_are_whole(void **state)
{
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 700);
    thin(db, T0 + 700000);
    const struct seen *seen = read_task(db, 7, T0, T0 + 700000, 60000);
    assert_int_equal(seen->n, 12);
    for (int i = 0; i < 11; i++) {
        assert_float_equal(seen->first[i].mean, 60 * i + 29.5, 1e-3);
        assert_float_equal(seen->first[i].max, 60 * i + 59, 0);
    }
    assert_float_equal(seen->first[11].max, 699, 0);
    metric_db_close(db);
}

/* A daemon that was down leaves a gap, and thinning goes on behind it. */
static void test_gap(void **state)
{
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 100);
    thin(db, T0 + 100000);
    write_seconds(db, 7, 3000, 3100);
    thin(db, T0 + 3200000);
    const struct seen *seen = read_task(db, 7, T0, T0 + DAY_MS, 10000);
    assert_int_equal(seen->n, 20);
    assert_int_equal(seen->at_ms[9], T0 + 90000);
    assert_int_equal(seen->at_ms[10], T0 + 3000000);
    metric_db_close(db);
}

static void test_series_of_a_gpu(void **state)
{
    struct fault fault = {""};
    struct metric_series *list;
    struct metric_db *db = open_db(*state);
    write_run(db, 0, "GPU-a", T0, 1000, 5, 1);
    write_run(db, 3, "GPU-a", T0, 1000, 5, 1);
    write_run(db, 3, "", T0, 1000, 5, 1);
    write_run(db, 4, "GPU-b", T0, 1000, 5, 1);
    write_run(db, 5, "GPU-a", T0 + 60000, 1000, 5, 1);
    assert_int_equal(metric_db_list(db, 0, "GPU-a", T0, T0 + 30000, &fault, &list), 2);
    assert_int_equal(list[0].key.task, 0);
    assert_int_equal(list[1].key.task, 3);
    assert_int_equal(list[1].last_ms, T0 + 4000);
    free(list);
    assert_int_equal(metric_db_list(db, 3, NULL, T0, T0 + 30000, &fault, &list), 2);
    assert_string_equal(list[1].key.gpu, "");
    free(list);
    assert_int_equal(metric_db_list(db, 99, NULL, 0, INT64_MAX, &fault, &list), 0);
    assert_null(list);
    metric_db_close(db);
}

static void write_labelled(struct metric_db *db, uint64_t task, const char *label)
{
    int64_t at_ms = T0;
    float value = 1;
    struct fault fault = {""};
    const struct metric_samples samples = {.key = {task, "GPU-a"},
        .label = label,
        .n_values = 1,
        .count = 1,
        .at_ms = &at_ms,
        .values = &value};
    if (metric_db_write(db, &samples, 1, &fault) != 0)
        fail_msg("%s", fault.text);
}

/* Also in a file that a version without labels has written. */
static void test_a_task_has_its_label(void **state)
{
    char path[256];
    struct fault fault = {""};
    struct metric_series *list;
    struct metric_db *db = open_db(*state);
    write_labelled(db, 4, NULL);
    metric_db_close(db);
    sqlite3 *sqlite;
    snprintf(path, sizeof path, "%s/metrics.db", (const char *)*state);
    assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(sqlite, "ALTER TABLE series DROP COLUMN label", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(sqlite);
    db = open_db(*state);
    write_labelled(db, 5, "3_1");
    write_labelled(db, 5, NULL); /* as it was stored first */
    assert_int_equal(metric_db_list(db, 0, "GPU-a", T0, T0 + 1, &fault, &list), 2);
    assert_string_equal(list[0].label, "");
    assert_string_equal(list[1].label, "3_1");
    free(list);
    metric_db_close(db);
}

static void test_time_is_bounded(void **state)
{
    struct fault fault = {""};
    struct metric_series *list;
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 300);
    thin(db, T0 + 2 * HOUR_MS);
    assert_int_equal(metric_db_prune(db, T0 + 3 * HOUR_MS, NO_LIMIT, &fault), 0);
    assert_int_equal(metric_db_list(db, 7, NULL, 0, INT64_MAX, &fault, &list), 0);
    metric_db_close(db);
}

/* The oldest goes first, and the newest stays. */
static void test_size_is_bounded(void **state)
{
    struct fault fault = {""};
    struct metric_db *db = open_db(*state);
    for (int s = 0; s < 3600; s += 50)
        for (uint64_t task = 1; task <= 20; task++)
            write_run(db, task, "GPU-a", T0 + s * 1000LL, 1000, 50, (float)s);
    thin(db, T0 + HOUR_MS);
    int64_t limit = 400 * 1024;
    assert_true(metric_db_used_bytes(db, &fault) > 2 * limit);
    assert_int_equal(metric_db_prune(db, T0 + HOUR_MS, limit, &fault), 0);
    assert_true(metric_db_used_bytes(db, &fault) <= limit);
    const struct seen *seen = read_task(db, 9, T0, T0 + HOUR_MS, 1);
    assert_true(seen->n > 10);
    assert_int_equal(seen->at_ms[seen->n - 1], T0 + HOUR_MS - 1000);
    metric_db_close(db);
}

/* A child writes and thins until it is killed; what it had reported is there, and thinned right. */
static void test_killed_while_writing(void **state)
{
    int pipe_fds[2], last = 0, status;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        struct fault fault = {""};
        struct metric_db *db = open_db(*state);
        for (int s = 0;; s += 5) {
            write_seconds(db, 7, s, s + 5);
            metric_db_thin(db, T0 + s * 1000LL, &fault);
            int end = s + 5;
            if (write(pipe_fds[1], &end, sizeof end) < 0)
                _exit(1);
        }
    }
    close(pipe_fds[1]);
    while (last < 400)
        assert_int_equal(read(pipe_fds[0], &last, sizeof last), sizeof last);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    for (int end; read(pipe_fds[0], &end, sizeof end) == sizeof end;)
        last = end;
    close(pipe_fds[0]);
    struct metric_db *db = open_db(*state);
    const struct seen *seen = read_task(db, 7, T0, T0 + DAY_MS, 1);
    assert_true(seen->n >= last);
    for (int i = 0; i < last; i++)
        assert_float_equal(seen->first[i].mean, i, 0);
    thin(db, T0 + last * 1000LL);
    seen = read_task(db, 7, T0, T0 + (last - last % 10) * 1000LL, 10000);
    assert_int_equal(seen->n, last / 10);
    for (int i = 0; i < seen->n; i++)
        assert_float_equal(seen->first[i].mean, 10 * i + 4.5, 1e-3);
    metric_db_close(db);
}

static void assert_mode(const char *folder, const char *name)
{
    char path[256];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
}

/* The folder of the state can be entered by all users, and tasks' own metrics are in the file. */
static void test_only_its_user_reads_the_file(void **state)
{
    char path[256];
    mode_t before = umask(022);
    metric_db_close(open_db(*state));
    snprintf(path, sizeof path, "%s/metrics.db", (char *)*state);
    assert_mode(*state, "metrics.db");
    assert_int_equal(chmod(path, 0644), 0); /* as an older version left it */
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 10);
    assert_mode(*state, "metrics.db");
    assert_mode(*state, "metrics.db-wal");
    assert_mode(*state, "metrics.db-shm");
    metric_db_close(db);
    umask(before);
}

static void test_damage_is_put_aside(void **state)
{
    char path[256], aside[300];
    struct fault fault = {""};
    struct metric_db *db;
    snprintf(path, sizeof path, "%s/metrics.db", (char *)*state);
    snprintf(aside, sizeof aside, "%s.damaged", path);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 4096; i++)
        fputs("no database ", file);
    fclose(file);
    assert_int_equal(metric_db_open(path, levels, 3, &fault, &db), METRIC_DB_REPLACED);
    assert_non_null(strstr(fault.text, "metrics.db"));
    assert_int_equal(access(aside, F_OK), 0);
    write_seconds(db, 7, 0, 10);
    assert_int_equal(read_task(db, 7, T0, T0 + 60000, 1)->n, 10);
    metric_db_close(db);
    assert_int_equal(metric_db_open(path, levels, 3, &fault, &db), 0);
    metric_db_close(db);
}

/* Rows that are not what was packed end early, and are never read beyond their end. */
static void test_cut_off_rows(void **state)
{
    const unsigned char bytes[] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 128, 63, 9, 9, 9};
    struct metric_reader reader = metric_reader_begin(bytes, sizeof bytes, T0, 0);
    struct metric_value values[METRIC_VALUES_MAX];
    int64_t at_ms;
    assert_true(metric_unpack(&reader, &at_ms, values));
    assert_int_equal(at_ms, T0 + 1);
    assert_float_equal(values[0].mean, 1, 0);
    assert_true(isnan(values[1].mean));
    assert_false(metric_unpack(&reader, &at_ms, values));
    for (size_t size = 0; size < 12; size++) {
        reader = metric_reader_begin(bytes, size, T0, 0);
        assert_false(metric_unpack(&reader, &at_ms, values));
    }
    reader = metric_reader_begin("\xff\xff\xff\xff-------------", 17, T0, 0);
    assert_false(metric_unpack(&reader, &at_ms, values));
}

/* A later version has more metrics: what it adds is unknown before. */
static void test_more_values_than_before(void **state)
{
    const int64_t at_ms = T0 + 30000;
    const float values[] = {1, 2, 3};
    const struct metric_samples samples = {
        .key = {7, "GPU-a"}, .n_values = 3, .count = 1, .at_ms = &at_ms, .values = values};
    struct fault fault = {""};
    struct metric_db *db = open_db(*state);
    write_seconds(db, 7, 0, 30);
    assert_int_equal(metric_db_write(db, &samples, 1, &fault), 0);
    thin(db, T0 + 100000);
    const struct seen *seen = read_task(db, 7, T0, T0 + 100000, 1);
    assert_int_equal(seen->n, 31);
    assert_float_equal(seen->first[30].mean, 1, 0);
    assert_float_equal(seen->second[30].mean, 2, 0);
    metric_db_close(db);
}

/* Between the two all reads are of one moment, also beside another program that writes. */
static void test_a_read_transaction_is_of_one_moment(void **state)
{
    struct fault fault = {""};
    struct metric_db *reader = open_db(*state), *writer = open_db(*state);
    write_seconds(writer, 7, 0, 10);
    assert_int_equal(metric_db_begin_read(reader, &fault), 0);
    assert_int_equal(read_task(reader, 7, T0, T0 + 60000, 1)->n, 10);
    write_seconds(writer, 7, 10, 20);
    assert_int_equal(read_task(reader, 7, T0, T0 + 60000, 1)->n, 10);
    assert_true(metric_db_begin_read(reader, &fault) < 0); /* not within another */
    metric_db_end_read(reader);
    assert_int_equal(read_task(reader, 7, T0, T0 + 60000, 1)->n, 20);
    metric_db_close(reader);
    metric_db_close(writer);
}

/* ---- work: SQLite counts the operations of every connection that is opened meanwhile ---- */

static int64_t operations;

static int on_operation(void *context)
{
    (void)context;
    operations++;
    return 0;
}

static int count_operations(
    sqlite3 *sqlite, const char **error, const struct sqlite3_api_routines *routines)
{
    (void)error;
    (void)routines;
    sqlite3_progress_handler(sqlite, 1, on_operation, NULL);
    return SQLITE_OK;
}

/* Samples of `n` tasks, each of another time, in one batch. */
static void write_batch(struct metric_db *db, uint64_t first_task, int n, int64_t at_ms)
{
    int64_t *times = calloc((size_t)n, sizeof *times);
    struct metric_samples *samples = calloc((size_t)n, sizeof *samples);
    const float value = 1;
    struct fault fault = {""};
    assert_non_null(times);
    assert_non_null(samples);
    for (int i = 0; i < n; i++) {
        times[i] = at_ms + i;
        samples[i] = (struct metric_samples){.key = {first_task + (uint64_t)i, "GPU-a"},
            .n_values = 1,
            .count = 1,
            .at_ms = &times[i],
            .values = &value};
    }
    assert_int_equal(metric_db_write(db, samples, (size_t)n, &fault), 0);
    free(samples);
    free(times);
}

static void read_short_tasks(struct metric_db *db, int n)
{
    static struct seen seen;
    struct fault fault = {""};
    struct metric_series *list;
    assert_int_equal(metric_db_list(db, 0, "GPU-a", 0, INT64_MAX, &fault, &list), n);
    for (int i = 0; i < n; i++) {
        seen.n = 0;
        assert_int_equal(
            metric_db_read(db, &list[i], T0, T0 + HOUR_MS, 1000, on_bucket, &seen, &fault), 0);
        assert_int_equal(seen.n, 1);
    }
    free(list);
}

struct work {
    int64_t reading, thinning;
};

static struct work work_of_tasks(const char *folder, const char *name, int batches, int per_batch)
{
    char inside[256];
    struct work work;
    snprintf(inside, sizeof inside, "%s/%s", folder, name);
    assert_int_equal(mkdir(inside, 0700), 0);
    sqlite3_auto_extension((void (*)(void))count_operations);
    struct metric_db *db = open_db(inside);
    sqlite3_cancel_auto_extension((void (*)(void))count_operations);
    for (int i = 0; i < batches; i++)
        write_batch(db, (uint64_t)(i * per_batch) + 1, per_batch, T0 + i * METRIC_BATCH_MS);
    operations = 0;
    read_short_tasks(db, batches * per_batch);
    work.reading = operations;
    operations = 0;
    thin(db, T0 + HOUR_MS);
    work.thinning = operations;
    metric_db_close(db);
    return work;
}

/* Ten times as many tasks are ten times as much work, not a hundred times. */
static void assert_proportional(struct work few, struct work many)
{
    assert_true(few.reading > 50 && few.thinning > 50);
    assert_in_range(many.reading, 5 * few.reading, 20 * few.reading);
    assert_in_range(many.thinning, 5 * few.thinning, 20 * few.thinning);
}

static void test_work_rises_with_the_tasks_of_a_batch(void **state)
{
    assert_proportional(work_of_tasks(*state, "few", 1, 50), work_of_tasks(*state, "many", 1, 500));
}

static void test_work_rises_with_the_batches(void **state)
{
    assert_proportional(work_of_tasks(*state, "few", 5, 10), work_of_tasks(*state, "many", 50, 10));
}

/* A batch that waited for a slow disk: what was added behind its time is found, too. */
static void test_a_batch_may_be_late(void **state)
{
    const int64_t early_ms = T0 + 1000, late_ms = T0 + 1000 + METRIC_BATCH_MS;
    const float value = 1;
    const struct metric_samples samples[] = {
        {.key = {7, "GPU-a"}, .n_values = 1, .count = 1, .at_ms = &early_ms, .values = &value},
        {.key = {8, ""}, .n_values = 1, .count = 1, .at_ms = &late_ms, .values = &value}};
    struct fault fault = {""};
    struct metric_db *db = open_db(*state);
    assert_int_equal(metric_db_write(db, samples, 2, &fault), 0);
    assert_int_equal(read_task(db, 7, T0, T0 + HOUR_MS, 1)->at_ms[0], early_ms);
    const struct seen *seen = read_task(db, 8, late_ms, T0 + HOUR_MS, 1);
    assert_int_equal(seen->n, 1);
    assert_int_equal(seen->at_ms[0], late_ms);
    metric_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
        TEST(test_recent_times_come_back_as_sampled),
        TEST(test_steps_have_minimum_mean_and_maximum),
        TEST(test_older_times_are_thinned),
        TEST(test_coarse_steps_are_whole),
        TEST(test_gap),
        TEST(test_series_of_a_gpu),
        TEST(test_a_task_has_its_label),
        TEST(test_time_is_bounded),
        TEST(test_size_is_bounded),
        TEST(test_killed_while_writing),
        TEST(test_only_its_user_reads_the_file),
        TEST(test_damage_is_put_aside),
        TEST(test_cut_off_rows),
        TEST(test_more_values_than_before),
        TEST(test_a_read_transaction_is_of_one_moment),
        TEST(test_work_rises_with_the_tasks_of_a_batch),
        TEST(test_work_rises_with_the_batches),
        TEST(test_a_batch_may_be_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
