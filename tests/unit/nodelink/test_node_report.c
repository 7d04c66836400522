/* SPDX-License-Identifier: Apache-2.0 */
/* Reports and answers as JSON: what goes in comes out, unknown readings stay unknown, and what is
 * not a report is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "nodelink/node_answer.h"
#include "nodelink/node_report.h"

static struct node_process processes[] = {
    {.pid = 71, .memory_bytes = {1 << 30, true}, .job = 12},
    {.pid = 72},
    {.pid = 73, .job = 12, .is_claimed = true, .uid = 1001},
};
static struct node_gpu gpus[] = {
    {.index = 0,
        .uuid = "GPU-1",
        .memory_total_bytes = {80e9, true},
        .memory_used_bytes = {0, true},
        .smact = {0.53, true},
        .power_w = {310.5, true},
        .processes_known = true,
        .processes = processes,
        .n_processes = 3},
    {.index = 3, .trouble = "Xid 79", .external_at_least = 2},
};
static struct node_crash crashes[] = {{.job = 9, .restarts = 2, .evidence = "CUDA out of memory"}};
static const struct node_report whole = {.node = "n-1.a_b",
    .boot = "b",
    .sequence = 81,
    .time_us = 1700000000000000,
    .gpus = gpus,
    .n_gpus = 2,
    .crashes = crashes,
    .n_crashes = 1};

static void test_round_trip(void **state)
{
    struct node_report report;
    struct fault fault = {0};
    char *text;
    size_t size;
    assert_int_equal(node_report_encode(&whole, &text, &size), 0);
    assert_null(strstr(text, "smact\":0,"));
    assert_int_equal(node_report_decode(text, size, &fault, &report), 0);
    free(text);
    assert_string_equal(report.node, "n-1.a_b");
    assert_int_equal(report.sequence, 81);
    assert_int_equal(report.n_gpus, 2);
    assert_true(
        report.gpus[0].memory_used_bytes.valid && report.gpus[0].memory_used_bytes.value == 0);
    assert_true(report.gpus[0].smact.valid && report.gpus[0].processes_known);
    assert_int_equal(report.gpus[0].processes[0].job, 12);
    assert_true(report.gpus[0].processes[0].memory_bytes.value == 1 << 30);
    assert_int_equal(report.gpus[0].processes[1].job, 0);
    assert_false(report.gpus[0].processes[1].memory_bytes.valid);
    assert_true(node_process_is_of(&report.gpus[0].processes[0], 12, 1000)); /* by its cgroup */
    assert_true(node_process_is_of(&report.gpus[0].processes[2], 12, 1001));
    assert_false(node_process_is_of(&report.gpus[0].processes[2], 12, 1000));
    assert_false(node_process_is_of(&report.gpus[0].processes[2], 13, 1001));
    assert_false(report.gpus[1].smact.valid || report.gpus[1].memory_used_bytes.valid);
    assert_false(report.gpus[1].processes_known);
    assert_int_equal(report.gpus[1].external_at_least, 2);
    assert_string_equal(report.gpus[1].trouble, "Xid 79");
    assert_int_equal(report.crashes[0].restarts, 2);
    node_report_fini(&report);
}

/* A crash whose evidence is no UTF-8 is left out; the others and the rest are reported. */
static void test_crash_without_text(void **state)
{
    struct node_crash ends[] = {{.job = 8, .evidence = "cut: \xc3"}, crashes[0]};
    struct node_report report = whole, back;
    struct fault fault = {0};
    char *text;
    size_t size;
    report.crashes = ends;
    report.n_crashes = 2;
    assert_int_equal(node_report_encode(&report, &text, &size), 0);
    assert_int_equal(node_report_decode(text, size, &fault, &back), 0);
    assert_int_equal(back.n_gpus, 2);
    assert_int_equal(back.n_crashes, 1);
    assert_int_equal(back.crashes[0].job, 9);
    node_report_fini(&back);
    free(text);
}

static void test_jobs(void **state)
{
    struct node_job jobs[2];
    struct node_report report = whole, back;
    size_t n = 0;
    char *text;
    size_t size;
    struct node_job *first = node_job_entry(jobs, &n, 2, 21);
    *first = (struct node_job){.job = 21, .room_bytes = 2 << 20, .rooms = "2.0 MiB are ready"};
    assert_ptr_equal(node_job_entry(jobs, &n, 2, 21), first);
    assert_null(node_job_entry(jobs, &n, 2, 0));
    assert_null(node_job_entry(jobs, &n, 2, UINT32_MAX + UINT64_C(1)));
    node_job_entry(jobs, &n, 2, 22)->where = NODE_JOB_OUT;
    assert_null(node_job_entry(jobs, &n, 2, 23));
    report.jobs = jobs;
    report.n_jobs = n;
    assert_int_equal(node_report_encode(&report, &text, &size), 0);
    assert_int_equal(node_report_decode(text, size, NULL, &back), 0);
    free(text);
    assert_int_equal(back.n_jobs, 2);
    assert_true(node_job_is_same(&back.jobs[0], &jobs[0]));
    assert_true(node_job_is_same(&back.jobs[1], &jobs[1]));
    strcpy(jobs[0].rooms, "1.0 MiB are ready");
    assert_false(node_job_is_same(&back.jobs[0], &jobs[0]));
    node_report_fini(&back);
}

/* The largest report that the bounds allow must fit in REPORT_SIZE_MAX. */
static void test_largest(void **state)
{
    struct node_report report = whole, back;
    struct node_gpu many[NODE_GPUS_MAX];
    struct node_process list[NODE_PROCESSES_MAX + 1];
    struct node_crash ends[NODE_CRASHES_MAX];
    static struct node_job jobs[NODE_JOBS_MAX];
    struct fault fault = {0};
    char *text;
    size_t size;
    for (size_t i = 0; i < ARRAY_SIZE(list); i++)
        list[i] = (struct node_process){.pid = INT32_MAX,
            .memory_bytes = {999999999999999, true},
            .job = UINT32_MAX,
            .is_claimed = true,
            .uid = UINT32_MAX};
    for (int i = 0; i < NODE_GPUS_MAX; i++) {
        many[i] = gpus[0];
        many[i].index = 200 + i;
        many[i].processes = list;
        many[i].n_processes = NODE_PROCESSES_MAX;
        memset(many[i].trouble, 1, NODE_TEXT_SIZE - 1); /* six bytes each in JSON */
    }
    for (int i = 0; i < NODE_CRASHES_MAX; i++) {
        ends[i] = (struct node_crash){.job = UINT32_MAX, .restarts = UINT32_MAX};
        memset(ends[i].evidence, 1, NODE_TEXT_SIZE - 1);
    }
    report.gpus = many;
    report.n_gpus = NODE_GPUS_MAX;
    report.crashes = ends;
    report.n_crashes = NODE_CRASHES_MAX;
    for (int i = 0; i < NODE_JOBS_MAX; i++) {
        jobs[i] = (struct node_job){.job = UINT32_MAX - (uint32_t)i,
            .held_bytes = INT64_C(1) << 60,
            .room_bytes = INT64_C(1) << 60,
            .failure = NODE_JOB_REFUSED};
        memset(jobs[i].why, 1, NODE_JOB_WHY_SIZE - 1);
        memset(jobs[i].rooms, 'r', NODE_JOB_WHY_SIZE - 1); /* the agent's own words */
    }
    report.jobs = jobs;
    report.n_jobs = NODE_JOBS_MAX;
    assert_int_equal(node_report_encode(&report, &text, &size), 0);
    assert_true(size <= REPORT_SIZE_MAX);
    assert_int_equal(node_report_decode(text, size, &fault, &back), 0);
    node_report_fini(&back);
    free(text);
    many[0].n_processes++;
    assert_int_equal(node_report_encode(&report, &text, &size), -EMSGSIZE);
}

static void test_refused(void **state)
{
#define HEAD "{\"v\":1,\"node\":\"n1\",\"boot\":\"b\",\"sequence\":1,\"time_us\":2"
    static const struct {
        const char *text;
        int answer;
        const char *why;
    } cases[] = {
        {"", -EINVAL, "not JSON"},
        {"[]", -EINVAL, "not a JSON object"},
        {"{\"v\":2}", -EPROTO, "install the same colloc"},
        {"{\"v\":1}", -EINVAL, "node"},
        {"{\"v\":1,\"v\":1}", -EINVAL, "duplicate"},
        {"{\"v\":1,\"node\":\"../x\"}", -EINVAL, "node"},
        {"{\"v\":1,\"node\":\"n1\",\"sequence\":-1}", -EINVAL, "sequence"},
        {"{\"v\":1,\"node\":\"n1\",\"sequence\":1.5}", -EINVAL, "sequence"},
        {HEAD ",\"gpus\":7}", -EINVAL, "gpus"},
        {HEAD ",\"gpus\":[7]}", -EINVAL, "index"},
        {HEAD ",\"gpus\":[{\"index\":0},{\"index\":0}]}", -EINVAL, "two GPUs"},
        {HEAD ",\"gpus\":[{\"index\":0,\"smact\":1.5}]}", -EINVAL, "smact"},
        {HEAD ",\"gpus\":[{\"index\":0,\"smact\":\"0\"}]}", -EINVAL, "smact"},
        {HEAD ",\"gpus\":[{\"index\":0,\"memory_used\":-1}]}", -EINVAL, "memory_used"},
        {HEAD ",\"gpus\":[{\"index\":0,\"processes\":[{\"pid\":0}]}]}", -EINVAL, "pid"},
        {HEAD ",\"gpus\":[{\"index\":0,\"processes\":[{\"pid\":1,\"job\":0}]}]}", -EINVAL, "job"},
        {HEAD ",\"gpus\":[{\"index\":0,\"processes\":[{\"pid\":1,\"claimed_by\":-1}]}]}", -EINVAL,
            "claimed_by"},
        {HEAD ",\"crashes\":[{\"restarts\":1}]}", -EINVAL, "job"},
        {HEAD ",\"crashes\":[{\"job\":1,\"restarts\":1,\"evidence\":3}]}", -EINVAL, "evidence"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct node_report report;
        struct fault fault = {0};
        int r = node_report_decode(cases[i].text, strlen(cases[i].text), &fault, &report);
        if (r != cases[i].answer || !strstr(fault.text, cases[i].why))
            fail_msg("%s: %d, %s", cases[i].text, r, fault.text);
        node_report_fini(&report);
    }
    struct node_report report;
    assert_int_equal(node_report_decode("{}", REPORT_SIZE_MAX + 1, NULL, &report), -EMSGSIZE);
}

static void test_unknown_keys_are_ignored(void **state)
{
    static const char text[] = HEAD ",\"new\":[1],\"gpus\":[{\"index\":1,\"new\":{}}]}";
    struct node_report report;
    assert_int_equal(node_report_decode(text, sizeof text - 1, NULL, &report), 0);
    assert_int_equal(report.n_gpus, 1);
    node_report_fini(&report);
}

static void test_answers(void **state)
{
    struct node_answer answer = {.node = "n1", .sequence = 5, .refused = "why"}, back;
    struct fault fault = {0};
    char *text;
    for (uint32_t i = 0; i < NODE_PINS_MAX; i++)
        answer.pins[answer.n_pins++] = (struct node_pin){
            UINT32_MAX - i, i % 2, i % 3 == 0, i % 5 == 0, i % 5 == 0 ? UINT32_MAX - 1 - i : 0};
    assert_int_equal(node_answer_encode(&answer, &text), 0);
    assert_int_equal(node_answer_decode(text, strlen(text), &fault, &back), 0);
    free(text);
    assert_string_equal(back.node, "n1");
    assert_string_equal(back.refused, "why");
    assert_int_equal(back.sequence, 5);
    assert_int_equal(back.n_pins, NODE_PINS_MAX);
    assert_true(back.pins[1].is_mps && !back.pins[0].is_mps);
    assert_true(back.pins[3].may_share_elsewhere && !back.pins[1].may_share_elsewhere);
    assert_int_equal(back.pins[1].job, UINT32_MAX - 1);
    assert_true(back.pins[0].is_of_array && !back.pins[1].is_of_array && back.pins[5].is_of_array);
    assert_int_equal(back.pins[0].array_task, UINT32_MAX - 1);
    static const char *wrong[] = {"{}", "{\"v\":1,\"sequence\":1,\"pins\":[{}]}",
        "{\"v\":1,\"sequence\":1,\"pins\":[{\"job\":1,\"task\":-1}]}",
        "{\"v\":1,\"sequence\":1,\"refused\":1}", "{\"v\":1}"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_true(node_answer_decode(wrong[i], strlen(wrong[i]), &fault, &back) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_crash_without_text),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unknown_keys_are_ignored),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
