/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder of metrics in a loop: what was added is answered, also by the next recorder; queries
 * that wait when it closes are answered; GPUs without tasks are written more seldom; a disk that
 * takes nothing is reported; and a week of eight GPUs and 200 tasks is smaller than the setting's
 * default.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/metrics/metric_recorder.h"

#define T0_MS    1700000000000LL /* of the week */
#define WEEK_S   (7 * 86400)
#define LIMIT_MS 60000 /* for anything to happen at all, on a busy machine */

struct world {
    uv_loop_t loop;
    uv_timer_t limit;
    struct metric_recorder *recorder;
    char folder[64], path[96];
    char *answer;
    int answers, failures, batches; /* batches that were due */
    int64_t idle_batch_us;
    size_t n_roots;
    struct reading steps_per_s;
    int64_t begin_ms; /* wall clock; recent, or it would be removed as old */
};

static struct world *the_world; /* of the recorder */

size_t metric_list_roots(const struct core *core, const struct attempts *attempts,
    const struct jobs *jobs, struct metric_root **ret_roots)
{
    struct world *world = the_world;
    world->batches++;
    *ret_roots = calloc(world->n_roots + 1, sizeof **ret_roots);
    for (size_t i = 0; i < world->n_roots; i++)
        (*ret_roots)[i] = (struct metric_root){7, getpid(), world->steps_per_s};
    return world->n_roots;
}

void disk_failed(struct disk *disk, const char *what)
{
    struct world *world = the_world;
    assert_true(*what);
    world->failures++;
}

static void create(struct world *world)
{
    struct fault fault = {0};
    const struct metric_options options = {.loop = &world->loop,
        .path = world->path,
        .bytes_max = 200 * MIB,
        .keep_us = 90LL * 86400 * 1000000,
        .batch_us = 20000,
        .idle_batch_us = world->idle_batch_us};
    the_world = world;
    world->recorder = metric_recorder_create(&options, &fault);
    if (!world->recorder)
        fail_msg("%s", fault.text);
}

static void on_limit(uv_timer_t *limit)
{
    fail_msg("it did not happen in time");
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    strcpy(world->folder, "/tmp/colloc-test-metrics.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->path, sizeof world->path, "%s/metrics.db", world->folder);
    world->begin_ms = (clock_wall_us() / SECOND_US - 600) * 1000;
    uv_loop_init(&world->loop);
    uv_timer_init(&world->loop, &world->limit);
    uv_timer_start(&world->limit, on_limit, LIMIT_MS, 0);
    create(world);
    *state = world;
    return 0;
}

static void close_recorder(struct world *world)
{
    metric_recorder_close(world->recorder);
    uv_run(&world->loop, UV_RUN_NOWAIT);
    metric_recorder_destroy(world->recorder);
    world->recorder = NULL;
}

static int tear_down(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    struct world *world = *state;
    char path[128];
    close_recorder(world);
    uv_close((uv_handle_t *)&world->limit, NULL);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    uv_loop_close(&world->loop);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", world->path, suffixes[i]);
        unlink(path);
    }
    rmdir(world->folder);
    free(world->answer);
    free(world);
    return 0;
}

static void on_answer(void *context, char *text, const struct fault *fault)
{
    struct world *world = context;
    free(world->answer);
    world->answer = text ? text : strdup(fault->text);
    world->answers++;
}

static void ask(struct world *world, uint64_t task, const char *metrics)
{
    struct metric_query *query = calloc(1, sizeof *query + sizeof query->gpus[0]);
    query->task = task;
    query->until_ms = world->begin_ms + 1000000;
    query->step_ms = 1;
    query->n_gpus = 1;
    query->gpus[0] = (struct metric_gpu){"GPU-a", "0"};
    snprintf(query->metrics, sizeof query->metrics, "%s", metrics);
    metric_recorder_ask(world->recorder, query, strdup("\"x\":1"), on_answer, world);
}

static const char *answer_of(struct world *world, uint64_t task, const char *metrics)
{
    int before = world->answers;
    ask(world, task, metrics);
    while (world->answers == before)
        uv_run(&world->loop, UV_RUN_ONCE);
    return world->answer;
}

/* `behind_ms`: the world's begin */
static void add(
    struct world *world, uint64_t task, const char *gpu, int64_t behind_ms, double smact)
{
    struct metric_key key = {.task = task};
    struct reading values[METRIC_VALUES_MAX] = {{0}};
    snprintf(key.gpu, sizeof key.gpu, "%s", gpu);
    values[TASK_METRIC_SMACT] = smact < 0 ? READING_NONE : reading_of(smact);
    metric_recorder_add(
        world->recorder, &key, task == 8 ? "5_3" : NULL, world->begin_ms + behind_ms, values);
}

static void test_what_was_added_is_answered(void **state)
{
    struct world *world = *state;
    char expected[512];
    long long s = world->begin_ms / 1000;
    add(world, 7, "GPU-a", 0, 0.25);
    add(world, 8, "GPU-a", 0, 0.5);
    add(world, 7, "GPU-a", 1000, 0.75);
    add(world, 7, "GPU-a", 2000, -1);
    close_recorder(world);
    create(world);
    snprintf(expected, sizeof expected,
        "{\"x\":1,\"step_s\":1,\"series\":[{\"task\":7,\"label\":\"7\",\"gpu\":\"0\",\"uuid\":\"GPU-a\","
        "\"times\":[%lld.000,%lld.000],\"values\":{\"smact\":[0.25,0.75]}}],"
        "\"neighbours\":[{\"task\":8,\"label\":\"5_3\",\"gpu\":\"0\",\"uuid\":\"GPU-a\",\"since\":%lld.000,\"until\":%lld.000}]}",
        s, s + 1, s, s);
    assert_string_equal(answer_of(world, 7, "smact"), expected);
    assert_non_null(strstr(answer_of(world, 7, "smocc"), "\"smocc\":[null,null]"));
    assert_non_null(strstr(answer_of(world, 9, ""), "\"series\":[],"));
    assert_int_equal(world->failures, 0);
}

/* After a step back of the wall clock, samples of both times are there. */
static void test_the_wall_clock_is_set(void **state)
{
    struct world *world = *state;
    add(world, 7, "GPU-a", 500000, 0.25);
    add(world, 7, "GPU-a", 0, 0.5);
    add(world, 7, "GPU-a", 900000, 0.75);
    close_recorder(world);
    create(world);
    assert_non_null(strstr(answer_of(world, 7, "smact"), "[0.5,0.25,0.75]"));
}

static char *rows_between(struct world *world, int64_t since_ms, int64_t until_ms, int64_t step_ms)
{
    struct metric_query *query = calloc(1, sizeof *query + sizeof query->gpus[0]);
    int before = world->answers;
    query->as_rows = true;
    query->since_ms = since_ms;
    query->until_ms = until_ms;
    query->step_ms = step_ms;
    query->n_gpus = 1;
    query->gpus[0] = (struct metric_gpu){"GPU-a", "0"};
    metric_recorder_ask(world->recorder, query, strdup(""), on_answer, world);
    while (world->answers == before)
        uv_run(&world->loop, UV_RUN_ONCE);
    return world->answer;
}

/* The GPU's own samples, a task's left out, as means and maxima of steps; GET /v1/samples. */
static void test_rows_of_a_gpu(void **state)
{
    struct world *world = *state;
    struct metric_key key = {.gpu = "GPU-a"};
    struct reading values[GPU_METRICS];
    char expected[512];
    int64_t begin_ms = world->begin_ms / 10000 * 10000;
    for (int i = 0; i < 4; i++) { /* at 0, 5, 10 and 15 s */
        for (int k = 0; k < GPU_METRICS; k++)
            values[k] = READING_NONE;
        values[GPU_METRIC_MEM_USED_MIB] = reading_of(1000 * i);
        values[GPU_METRIC_SMACT] = i == 3 ? READING_NONE : reading_of(0.25 * i);
        values[GPU_METRIC_GRACT] = reading_of(0.5);
        values[GPU_METRIC_TASKS] = reading_of(1);
        metric_recorder_add(world->recorder, &key, NULL, begin_ms + 5000 * i, values);
    }
    add(world, 7, "GPU-a", 0, 0.9);
    close_recorder(world);
    create(world);
    snprintf(expected, sizeof expected,
        "{\"columns\":[\"time\",\"mem_used_mib\",\"mem_used_max_mib\",\"utilisation\",\"smact\","
        "\"smact_max\",\"smocc\",\"gract\",\"dram_active\",\"power_w\",\"temperature_c\","
        "\"sm_clock_mhz\",\"tasks\",\"foreign_processes\"],"
        "\"gpus\":[{\"index\":\"0\",\"uuid\":\"GPU-a\",\"rows\":["
        "[%lld.000,500,1000,null,0.125,0.25,null,0.5,null,null,null,null,1,null],"
        "[%lld.000,2500,3000,null,0.5,0.5,null,0.5,null,null,null,null,1,null]],\"step_s\":10}]}",
        (long long)begin_ms / 1000, (long long)begin_ms / 1000 + 10);
    assert_string_equal(rows_between(world, begin_ms, begin_ms + 20000, 10000), expected);
    assert_non_null(strstr(rows_between(world, begin_ms, begin_ms + 5000, 200), "\"rows\":[["));
    assert_non_null(strstr(world->answer, ".000,0,0,null,0,0,null,0.5,"));
    assert_non_null(strstr(rows_between(world, begin_ms - 50000, begin_ms, 10000), "\"rows\":[]"));
}

static void test_waiting_queries_are_answered_at_the_end(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 50; i++)
        ask(world, 7, "");
    close_recorder(world);
    assert_int_equal(world->answers, 50);
}

/* Whether the first series of an answer has a number for `metric`, at any time. */
static bool has_number(const char *answer, const char *metric)
{
    const char *values = strstr(answer, metric);
    return values && strcspn(values, "0123456789") < strcspn(values, "]");
}

static void test_processes_of_a_task(void **state)
{
    struct world *world = *state;
    world->n_roots = 1;
    /* Memory is known at once, CPU time when it was read twice. */
    while (!has_number(answer_of(world, 7, "cpu_cores,host_mem_mib"), "\"cpu_cores\":"))
        uv_run(&world->loop, UV_RUN_ONCE);
    assert_non_null(strstr(world->answer, "\"gpu\":null,\"uuid\":null"));
    assert_null(strstr(world->answer, "\"host_mem_mib\":[null"));
}

static void test_steps_of_a_task(void **state)
{
    struct world *world = *state;
    world->n_roots = 1;
    while (!has_number(answer_of(world, 7, "host_mem_mib,steps_per_s"), "\"host_mem_mib\":"))
        uv_run(&world->loop, UV_RUN_ONCE);
    assert_false(has_number(world->answer, "\"steps_per_s\":")); /* unknown: never zero */
    world->steps_per_s = reading_of(8.5);
    while (!strstr(answer_of(world, 7, "steps_per_s"), "8.5"))
        uv_run(&world->loop, UV_RUN_ONCE);
}

static int count_rows(const struct world *world)
{
    sqlite3 *other;
    sqlite3_stmt *count;
    assert_int_equal(sqlite3_open(world->path, &other), SQLITE_OK);
    sqlite3_busy_timeout(other, LIMIT_MS);
    assert_int_equal(
        sqlite3_prepare_v2(other, "SELECT count(*) FROM rows", -1, &count, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    int n = sqlite3_column_int(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(other);
    return n;
}

/* GPUs without tasks are written more seldom; a task's samples take the batch along. */
static void test_idle_gpus_wait(void **state)
{
    struct world *world = *state;
    close_recorder(world);
    world->idle_batch_us = HOUR_US;
    world->batches = 0;
    create(world);
    add(world, 0, "GPU-a", 0, 0.25);
    while (world->batches < 5)
        uv_run(&world->loop, UV_RUN_ONCE);
    assert_int_equal(count_rows(world), 0);
    add(world, 7, "GPU-a", 0, 0.25);
    while (count_rows(world) < 2)
        uv_run(&world->loop, UV_RUN_ONCE);
    add(world, 0, "GPU-b", 1000, 0.25);
    world->n_roots = 1; /* a task runs, of which there is no sample yet */
    while (count_rows(world) < 3)
        uv_run(&world->loop, UV_RUN_ONCE);
}

/* A batch that cannot be written is dropped and reported, and the recorder goes on. */
static void test_a_disk_that_takes_nothing(void **state)
{
    struct world *world = *state;
    sqlite3 *other;
    assert_int_equal(sqlite3_open(world->path, &other), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(other,
            "CREATE TRIGGER full BEFORE INSERT ON rows BEGIN SELECT RAISE(ABORT, 'full'); END",
            NULL, NULL, NULL),
        SQLITE_OK);
    add(world, 7, "GPU-a", 0, 0.25);
    while (world->failures == 0)
        uv_run(&world->loop, UV_RUN_ONCE);
    assert_int_equal(sqlite3_exec(other, "DROP TRIGGER full", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    add(world, 7, "GPU-a", 1000, 0.75);
    close_recorder(world);
    create(world);
    assert_non_null(strstr(answer_of(world, 7, "smact"), "\"smact\":[0.75]"));
}

/* ---- size ---- */

/*
 * A quarter of eight GPUs with four tasks each at any time, 200 in the week, all with processes.
 * What is stored of a time does not depend on the sampling rate once it is thinned: so only the
 * last hour is sampled each second, its day every 10 s and the other days once a minute.
 */
enum { PART = 4, GPUS = 8 / PART, KEYS = GPUS * 9 };

static int keys_at(int64_t s, struct metric_key *keys)
{
    int n = 0;
    int64_t generation = s * 6 / WEEK_S; /* 6 * 32 tasks */
    for (int gpu = 0; gpu < GPUS; gpu++) {
        snprintf(keys[n].gpu, sizeof keys[n].gpu, "GPU-%d", gpu);
        keys[n++].task = 0;
        for (int i = 0; i < 4; i++) {
            uint64_t task = (uint64_t)(generation * 32 + gpu * 4 + i + 1);
            snprintf(keys[n].gpu, sizeof keys[n].gpu, "GPU-%d", gpu);
            keys[n++].task = task;
            keys[n].gpu[0] = '\0';
            keys[n++].task = task;
        }
    }
    return n;
}

static void write_minute(struct metric_db *db, int64_t from_s, int step_s)
{
    static float values[60 * METRIC_VALUES_MAX];
    struct metric_key keys[KEYS];
    struct metric_samples samples[KEYS];
    int64_t times[60];
    struct fault fault = {0};
    int n = keys_at(from_s, keys), count = 60 / step_s;
    for (int i = 0; i < count; i++)
        times[i] = T0_MS + (from_s + (int64_t)i * step_s) * 1000;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)i * 0.37F;
    for (int i = 0; i < n; i++)
        samples[i] = (struct metric_samples){.key = keys[i],
            .n_values = metric_count(metric_kind_of(&keys[i])),
            .count = (size_t)count,
            .at_ms = times,
            .values = values};
    if (metric_db_write(db, samples, (size_t)n, &fault) < 0)
        fail_msg("%s", fault.text);
}

static void test_size_of_a_week(void **state)
{
    struct world *world = *state;
    struct metric_level levels[METRIC_LEVELS_MAX];
    struct fault fault = {0};
    struct metric_db *db;
    size_t n = metric_recorder_levels(90LL * 86400 * 1000, levels);
    close_recorder(world);
    assert_int_equal(metric_db_open(world->path, levels, n, &fault, &db), 0);
    for (int64_t s = 0; s < WEEK_S; s += 60) {
        write_minute(db, s, s >= WEEK_S - 3600 ? 1 : s >= WEEK_S - 90000 ? 10 : 60);
        if (s % 3600)
            continue;
        while (metric_db_thin(db, T0_MS + s * 1000, &fault) == METRIC_DB_MORE)
            ;
        assert_int_equal(metric_db_prune(db, T0_MS + s * 1000, INT64_MAX, &fault), 0);
    }
    int64_t used = PART * metric_db_used_bytes(db, &fault);
    print_message("a week of 8 GPUs and 200 tasks: %.0f MiB\n", (double)used / (double)MIB);
    assert_true(used > 100 * MIB && used < 200 * MIB);
    metric_db_close(db);
    create(world);
}

static void test_steps(void **state)
{
    assert_int_equal(metric_query_step(3600000, 0), 10000);
    assert_int_equal(metric_query_step(60000, 0), 1000);
    assert_int_equal(metric_query_step(86400000, 0), 300000);
    assert_int_equal(metric_query_step(60000, 250), 250);
    assert_int_equal(metric_query_step(86400000, 1), 20000); /* not more than 5000 points */
}

static void test_names(void **state)
{
    size_t length;
    assert_null(metric_find_unknown("", &length));
    assert_null(metric_find_unknown("smact,,cpu_cores,temperature_c", &length));
    assert_memory_equal(metric_find_unknown("smact,smac,x", &length), "smac", 4);
    assert_int_equal(length, 4);
    assert_true(metric_is_listed(METRICS_OF_TASK, TASK_METRIC_SMOCC, "smact,smocc"));
    assert_false(metric_is_listed(METRICS_OF_TASK, TASK_METRIC_SMOCC, "smact"));
    for (int kind = 0; kind < METRIC_KINDS; kind++)
        for (int i = 0; i < metric_count((enum metric_kind)kind); i++)
            assert_non_null(metric_name((enum metric_kind)kind, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_what_was_added_is_answered),
        TEST(test_rows_of_a_gpu),
        TEST(test_the_wall_clock_is_set),
        TEST(test_waiting_queries_are_answered_at_the_end),
        TEST(test_processes_of_a_task),
        TEST(test_steps_of_a_task),
        TEST(test_idle_gpus_wait),
        TEST(test_a_disk_that_takes_nothing),
        TEST(test_size_of_a_week),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
