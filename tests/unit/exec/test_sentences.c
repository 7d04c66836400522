/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays logs: tests/data/logs/sentences.txt has a line for each row of exec/sentences.def,
 * stories.txt whole logs with what must be read from them and whether the task is run again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "exec/failure_classify.h"
#include "exec/failure_facts.h"

#define TRACEBACK "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n"

enum { LOG_LINE_MAX = 1024, ROWS_MAX = 400 };

static FILE *open_data(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_DATA"), name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static struct failure classify(const struct attempt_end *end, const char *log)
{
    static const struct logscan nothing;
    struct logscan err = {0};
    struct failure failure;
    logscan_feed(&err, span_of(log));
    logscan_finish(&err);
    failure_classify(end, &nothing, &err, &failure);
    return failure;
}

/* ---- a line for each row ---- */

static void mark_row(bool *used, const char *line, bool thrown)
{
    size_t n;
    char lower[LOG_LINE_MAX];
    const struct pattern *rows = pattern_table(&n);
    pattern_lower(line, lower);
    const struct pattern *row = pattern_find(lower, thrown);
    if (row)
        used[row - rows] = true;
}

static void check_line(bool *used, const char *line)
{
    char class[16], thrown[2], log[LOG_LINE_MAX * 2];
    int at = 0;
    assert_int_equal(sscanf(line, "%15s %1s%n", class, thrown, &at), 2);
    const char *text = line + at + 1;
    mark_row(used, text, *thrown == 'T');
    snprintf(log, sizeof log, "%s%s\n", *thrown == 'T' ? TRACEBACK : "step 1\n", text);
    struct failure failure = classify(&(struct attempt_end){.exit_code = 1}, log);
    if (strcmp(failure_name(failure.class), class) != 0)
        fail_msg("%s: not %s: %s", failure_name(failure.class), class, text);
}

static void test_each_sentence(void **state)
{
    bool used[ROWS_MAX] = {0};
    char line[LOG_LINE_MAX];
    size_t n;
    const struct pattern *rows = pattern_table(&n);
    assert_in_range(n, 1, ROWS_MAX);
    FILE *file = open_data("sentences.txt");
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line && *line != '#')
            check_line(used, line);
    }
    fclose(file);
    for (size_t i = 0; i < n; i++)
        if (!used[i])
            fail_msg("no line of sentences.txt has \"%s\" of %s", rows[i].parts[0], rows[i].source);
}

static void test_each_sentence_has_a_source(void **state)
{
    size_t n;
    const struct pattern *rows = pattern_table(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(strlen(rows[i].source) > 8);
        for (size_t k = 0; k < ARRAY_SIZE(rows[i].parts) && rows[i].parts[k]; k++)
            for (const char *c = rows[i].parts[k]; *c; c++)
                assert_false(*c >= 'A' && *c <= 'Z');
    }
}

/* ---- whole logs ---- */

struct story {
    char name[80], gpu[16], class[16], again[8], evidence[128];
    int code;
    char log[8192];
};

/* As the core decides: a lack of memory that others may have caused, a fault of the GPU itself, or
 * one that another client of MPS may have caused. */
static bool is_run_again(const struct failure *failure, const char *gpu)
{
    bool by_mps = strcmp(gpu, "mps") == 0;
    return (failure->class == FAILURE_GPU_OOM && strcmp(gpu, "alone") != 0) ||
           failure_is_hardware(failure) ||
           (by_mps && (failure->class == FAILURE_MPS || failure->class == FAILURE_GPU_FAULT));
}

static void check_story(const struct story *story)
{
    const struct failure_facts facts = {.largest_gpu_bytes = (int64_t)(39.4 * GIB),
        .was_shared = strcmp(story->gpu, "alone") != 0,
        .gpu_was_full = strcmp(story->gpu, "full") == 0,
        .by_mps = strcmp(story->gpu, "mps") == 0};
    const struct attempt_end end = {.exit_code = story->code < 0 ? -1 : story->code,
        .signal = story->code < 0 ? -story->code : 0};
    struct failure failure = classify(&end, story->log);
    failure_apply_facts(&failure, &facts);
    bool again = is_run_again(&failure, story->gpu);
    if (strcmp(failure_name(failure.class), story->class) != 0 ||
        again != (strcmp(story->again, "yes") == 0) || !strstr(failure.evidence, story->evidence))
        fail_msg("%s: %s, again: %d, \"%s\"", story->name, failure_name(failure.class), again,
            failure.evidence);
}

static void test_stories(void **state)
{
    static struct story story;
    char line[LOG_LINE_MAX];
    int n = 0;
    FILE *file = open_data("stories.txt");
    bool more = true;
    while (more) {
        more = fgets(line, sizeof line, file) != NULL;
        if (more && strncmp(line, "=== ", 4) != 0) {
            if (n)
                strncat(story.log, line, sizeof story.log - strlen(story.log) - 1);
            continue;
        }
        if (n)
            check_story(&story);
        memset(&story, 0, sizeof story);
        n += more;
        if (more)
            assert_int_equal(
                sscanf(line, "=== %79[^|]| %d | %15s | %15s | %7s | %127[^\n]", story.name,
                    &story.code, story.gpu, story.class, story.again, story.evidence),
                6);
    }
    fclose(file);
    assert_true(n >= 65);
}

/* ---- numbers ---- */

static void test_asked_bytes(void **state)
{
    static const struct {
        const char *line;
        double gib;
    } lines[] = {
        {"CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 9 GiB",
            1.5},
        {"Tried to allocate 2.00 GiB. Of the allocated memory 3.00 GiB is allocated by PyTorch", 5},
        {"Tried to allocate 1024.00 MiB (GPU 0; 9.00 GiB total capacity; 6.00 GiB already allocated)",
            7},
        {"OOM when allocating tensor with shape[1024,1024,256] and type float on GPU:0", 1},
        {"OOM when allocating tensor with shape[?,4] and type float", 0},
        {"OOM when allocating tensor with shape[99999999999,99999999999,99999] and type double",
            1024 * 1024},
        {"Free memory on device (5.02/39.38 GiB) on startup is less than desired GPU memory "
         "utilization (0.9, 35.00 GiB)",
            35},
        {"out of memory", 0},
        {"Tried to allocate more than 1EB memory", 0},
        {"Tried to allocate -5 GiB", 0},
        {"Tried to allocate 99999999999999999999999 GiB", 1024 * 1024},
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        double gib = (double)failure_asked_bytes(lines[i].line, true) / GIB;
        if (gib < lines[i].gib * 0.999 || gib > lines[i].gib * 1.001)
            fail_msg("%s: %f GiB", lines[i].line, gib);
    }
}

static void test_unknown_size_of_gpus_changes_nothing(void **state)
{
    struct failure failure = {
        .class = FAILURE_GPU_OOM, .evidence = "CUDA out of memory. Tried to allocate 999.00 GiB"};
    failure_apply_facts(&failure, &(struct failure_facts){0});
    assert_int_equal(failure.class, FAILURE_GPU_OOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_sentence),
        cmocka_unit_test(test_each_sentence_has_a_source),
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_asked_bytes),
        cmocka_unit_test(test_unknown_size_of_gpus_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
