/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as changes: what is decoded onto the report before is what the whole report says, a
 * reading that becomes unknown is unknown and not 0, and changes of another report fit nothing. */
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
#include "nodelink/node_changes.h"

enum { GPUS = 3, PROCESSES = 4 };

/* A report in memory of the test's. */
struct state {
    struct node_report report;
    struct node_gpu gpus[GPUS];
    struct node_process processes[GPUS][PROCESSES];
    struct node_crash crashes[2];
};

static void link_state(struct state *state)
{
    state->report.gpus = state->gpus;
    state->report.crashes = state->crashes;
    for (int i = 0; i < GPUS; i++)
        state->gpus[i].processes = state->processes[i];
}

static void begin_state(struct state *state)
{
    *state = (struct state){.report = {.node = "n1",
                                .boot = "b",
                                .sequence = 81,
                                .time_us = 1700000000000000,
                                .n_gpus = GPUS}};
    for (int i = 0; i < GPUS; i++) {
        state->gpus[i] = (struct node_gpu){.index = 2 * i,
            .uuid = "GPU-1",
            .memory_total_bytes = reading_of(80e9),
            .memory_used_bytes = reading_of(4e9),
            .smact = reading_of(0.5),
            .power_w = reading_of(310.5),
            .processes_known = true,
            .n_processes = 2};
        for (int k = 0; k < PROCESSES; k++)
            state->processes[i][k] = (struct node_process){
                .pid = 70 + k, .memory_bytes = reading_of(2e9), .job = 12};
    }
    link_state(state);
}

/* The state after this one. */
static void follow_state(struct state *next, const struct state *state)
{
    *next = *state;
    next->report.sequence++;
    next->report.time_us += 1000000;
    link_state(next);
}

static char *encoded(const struct node_report *report)
{
    char *text;
    size_t size;
    assert_int_equal(node_report_encode(report, &text, &size), 0);
    return text;
}

static void decode_whole(const struct node_report *report, struct node_report *ret_report)
{
    struct fault fault;
    char *text = encoded(report);
    assert_int_equal(node_report_decode(text, strlen(text), &fault, ret_report), 0);
    free(text);
}

/* Sends the changes from one to the other; the caller frees their text. */
static char *send_changes(const struct state *base, const struct state *now)
{
    struct node_report known, got, right;
    struct fault fault = {0};
    char *text, *is, *must;
    size_t size;
    decode_whole(&base->report, &known);
    assert_int_equal(node_changes_encode(&base->report, &now->report, &text, &size), 0);
    assert_int_equal(strlen(text), size);
    if (node_changes_decode(&known, text, size, &fault, &got) != 0)
        fail_msg("%s: %s", text, fault.text);
    decode_whole(&now->report, &right);
    is = encoded(&got);
    must = encoded(&right);
    assert_string_equal(is, must);
    free(is);
    free(must);
    node_report_fini(&known);
    node_report_fini(&got);
    node_report_fini(&right);
    return text;
}

static void expect_text(const struct state *base, const struct state *now, const char *rest)
{
    char *text = send_changes(base, now), all[1024];
    snprintf(all, sizeof all,
        "{\"v\":1,\"since\":81,\"sequence\":82,\"time_us\":1700000001000000%s}", rest);
    assert_string_equal(text, all);
    free(text);
}

/* Only what has changed is sent. */
static void test_what_is_sent(void **state)
{
    struct state base, now;
    begin_state(&base);
    follow_state(&now, &base);
    expect_text(&base, &now, "");
    now.gpus[1].smact = reading_of(0.25);
    expect_text(&base, &now, ",\"smact\":[0.5,0.25,0.5]");
    follow_state(&now, &base);
    now.gpus[2].memory_used_bytes = reading_of(5e9);
    now.processes[2][1].memory_bytes = reading_of(3e9);
    expect_text(&base, &now,
        ",\"memory_used\":[4000000000,4000000000,5000000000]"
        ",\"process_memory\":[null,null,[2000000000,3000000000]]");
    follow_state(&now, &base);
    now.gpus[0].n_processes = 1;
    expect_text(&base, &now,
        ",\"gpus\":[{\"index\":0,\"uuid\":\"GPU-1\",\"memory_total\":80000000000,"
        "\"memory_used\":4000000000,\"smact\":0.5,\"power\":310.5,\"processes\":[{\"pid\":70,"
        "\"memory\":2000000000,\"job\":12}]}]");
    follow_state(&now, &base);
    now.crashes[0] = (struct node_crash){.job = 9, .evidence = "CUDA out of memory"};
    now.report.n_crashes = 1;
    expect_text(&base, &now,
        ",\"crashes\":[{\"job\":9,\"restarts\":0,\"evidence\":\"CUDA out of memory\"}]");
    base.crashes[0] = now.crashes[0];
    base.report.n_crashes = 1;
    now.report.n_crashes = 0;
    expect_text(&base, &now, ",\"crashes\":[]");
}

/* Each of these makes its GPU be sent whole. */
static void test_replaced(void **state)
{
    struct state base, now;
    begin_state(&base);
    for (int way = 0; way < 9; way++) {
        follow_state(&now, &base);
        struct node_gpu *gpu = &now.gpus[1];
        struct node_process *process = &now.processes[1][0];
        switch (way) {
        case 0:
            snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-2");
            break;
        case 1:
            snprintf(gpu->trouble, sizeof gpu->trouble, "Xid 79");
            break;
        case 2:
            gpu->memory_total_bytes = READING_NONE;
            break;
        case 3:
            gpu->processes_known = false;
            break;
        case 4:
            gpu->n_processes = 3;
            break;
        case 5:
            process->pid = 99;
            break;
        case 6:
            process->job = 0;
            break;
        case 7:
            process->is_claimed = true;
            break;
        case 8:
            gpu->n_processes = 0;
            break;
        }
        char *text = send_changes(&base, &now);
        assert_non_null(strstr(text, "\"gpus\":[{\"index\":2,"));
        assert_null(strstr(text, "\"index\":0"));
        free(text);
    }
    base.processes[1][0].is_claimed = true;
    follow_state(&now, &base);
    now.processes[1][0].uid = 1001;
    free(send_changes(&base, &now));
}

static void test_unknown_is_not_zero(void **state)
{
    struct state base, now;
    struct node_report known, got;
    struct fault fault;
    char *text;
    size_t size;
    begin_state(&base);
    follow_state(&now, &base);
    now.gpus[0].smact = now.gpus[0].memory_used_bytes = now.gpus[0].power_w = READING_NONE;
    now.gpus[1].smact = now.gpus[1].memory_used_bytes = now.gpus[1].power_w = reading_of(0);
    now.processes[0][0].memory_bytes = READING_NONE;
    now.processes[0][1].memory_bytes = reading_of(0);
    decode_whole(&base.report, &known);
    assert_int_equal(node_changes_encode(&base.report, &now.report, &text, &size), 0);
    assert_int_equal(node_changes_decode(&known, text, size, &fault, &got), 0);
    assert_false(got.gpus[0].smact.valid || got.gpus[0].memory_used_bytes.valid ||
                 got.gpus[0].power_w.valid || got.gpus[0].processes[0].memory_bytes.valid);
    assert_true(got.gpus[1].smact.valid && got.gpus[1].smact.value == 0);
    assert_true(got.gpus[0].processes[1].memory_bytes.valid);
    assert_true(got.gpus[2].smact.valid && got.gpus[2].smact.value == 0.5);
    free(text);
    node_report_fini(&known);
    node_report_fini(&got);
    follow_state(&base, &now); /* and known again */
    base.gpus[0].smact = reading_of(0.1);
    base.gpus[1].smact = READING_NONE;
    free(send_changes(&now, &base));
}

static void test_whole_report_is_needed(void **state)
{
    struct state base, now;
    char *text;
    size_t size;
    begin_state(&base);
    for (int way = 0; way < 4; way++) {
        follow_state(&now, &base);
        switch (way) {
        case 0:
            now.gpus[1].index = 3;
            break;
        case 1:
            now.report.n_gpus--;
            break;
        case 2:
            now.report.boot[0] = 'c';
            break;
        case 3:
            now.report.node[1] = '2';
            break;
        }
        assert_int_equal(
            node_changes_encode(&base.report, &now.report, &text, &size), CHANGES_UNFIT);
        assert_null(text);
    }
}

#define HEAD "{\"v\":1,\"since\":81,\"sequence\":82,\"time_us\":2"

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        int answer;
        const char *why;
    } cases[] = {
        {"{\"v\":1,\"since\":80,\"sequence\":82,\"time_us\":2}", CHANGES_UNFIT, "another report"},
        {"{\"v\":1,\"since\":82,\"sequence\":82,\"time_us\":2}", CHANGES_UNFIT, "another report"},
        {"{\"v\":1,\"since\":\"81\",\"sequence\":82,\"time_us\":2}", -EINVAL, "since"},
        {"{\"v\":1,\"since\":null,\"sequence\":82,\"time_us\":2}", -EINVAL, "since"},
        {"{\"v\":2,\"since\":81,\"sequence\":82,\"time_us\":2}", -EPROTO, "version"},
        {"{\"v\":1,\"since\":81,\"time_us\":2}", -EINVAL, "sequence"},
        {"{\"v\":1,\"since\":81,\"sequence\":82}", -EINVAL, "time_us"},
        {HEAD ",\"smact\":[0.5,0.5]}", -EINVAL, "smact: not a list of 3"},
        {HEAD ",\"smact\":[0.5,0.5,0.5,0.5]}", -EINVAL, "smact"},
        {HEAD ",\"smact\":[0.5,0.5,1.5]}", -EINVAL, "smact: not a number"},
        {HEAD ",\"smact\":[0.5,0.5,\"0\"]}", -EINVAL, "smact: not a number"},
        {HEAD ",\"smact\":{}}", -EINVAL, "smact"},
        {HEAD ",\"power\":[-1,1,1]}", -EINVAL, "power"},
        {HEAD ",\"memory_used\":[1e99,1,1]}", -EINVAL, "memory_used"},
        {HEAD ",\"process_memory\":[null,null]}", -EINVAL, "process_memory"},
        {HEAD ",\"process_memory\":[null,null,[1]]}", -EINVAL, "2 processes of GPU 4"},
        {HEAD ",\"process_memory\":[null,null,[1,-1]]}", -EINVAL, "process_memory: not a number"},
        {HEAD ",\"process_memory\":[0,0,0]}", -EINVAL, "process_memory"},
        {HEAD ",\"gpus\":[{\"index\":1}]}", -EINVAL, "there was no GPU 1"},
        {HEAD ",\"gpus\":[{\"index\":0},{\"index\":0},{\"index\":0},{\"index\":0}]}", -EINVAL,
            "gpus"},
        {HEAD ",\"gpus\":[{\"index\":0,\"processes\":[{\"pid\":1},{\"pid\":0}]}]}", -EINVAL, "pid"},
        {HEAD ",\"crashes\":[{\"job\":0}]}", -EINVAL, "job"},
    };
    struct state base;
    struct node_report known, got, none = {0};
    begin_state(&base);
    decode_whole(&base.report, &known);
    char *before = encoded(&known), *after;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fault fault = {0};
        int r = node_changes_decode(&known, cases[i].text, strlen(cases[i].text), &fault, &got);
        if (r != cases[i].answer || !strstr(fault.text, cases[i].why))
            fail_msg("%s: %d, %s", cases[i].text, r, fault.text);
        node_report_fini(&got);
    }
    after = encoded(&known);
    assert_string_equal(before, after);
    struct fault fault = {0};
    assert_int_equal(node_changes_decode(&none, HEAD "}", strlen(HEAD "}"), &fault, &got), -EINVAL);
    assert_non_null(strstr(fault.text, "without a report before"));
    assert_int_equal(node_changes_decode(&none, before, strlen(before), &fault, &got), 0);
    node_report_fini(&got);
    node_report_fini(&known);
    free(before);
    free(after);
}

/* ---- many changes in a row ---- */

static unsigned random_below(unsigned n)
{
    static uint32_t seed = 20261126;
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static struct reading some_reading(unsigned max)
{
    return random_below(5) ? reading_of(random_below(max + 1)) : READING_NONE;
}

static void change_at_random(struct state *state)
{
    struct node_gpu *gpu = &state->gpus[random_below(GPUS)];
    struct node_process *process = &gpu->processes[random_below(PROCESSES)];
    switch (random_below(9)) {
    case 0:
        gpu->smact = some_reading(1);
        break;
    case 1:
        gpu->memory_used_bytes = some_reading(1000);
        break;
    case 2:
        gpu->power_w = some_reading(400);
        break;
    case 3:
        process->memory_bytes = some_reading(3);
        break;
    case 4:
        gpu->n_processes = random_below(PROCESSES + 1);
        break;
    case 5:
        gpu->processes_known = random_below(4);
        gpu->external_at_least = random_below(3);
        break;
    case 6:
        process->job = random_below(3);
        break;
    case 7:
        snprintf(gpu->trouble, sizeof gpu->trouble, "%.*s", (int)random_below(3), "Xid");
        break;
    case 8:
        state->report.n_crashes = random_below(3);
        state->crashes[random_below(2)] = (struct node_crash){.job = 1 + random_below(3)};
        break;
    }
}

/* The crashes that are listed have a job. */
static void test_chain(void **state)
{
    struct state of[2];
    begin_state(&of[0]);
    of[0].crashes[0].job = of[0].crashes[1].job = 5;
    for (int i = 0; i < 5000; i++) {
        const struct state *base = &of[i % 2];
        struct state *now = &of[(i + 1) % 2];
        follow_state(now, base);
        for (unsigned k = random_below(4); k > 0; k--)
            change_at_random(now);
        free(send_changes(base, now));
    }
}

/* A copy has nothing in common with what it was made of. */
static void test_copy(void **state)
{
    struct state base;
    struct node_report copy;
    begin_state(&base);
    base.crashes[0].job = 9;
    base.report.n_crashes = 1;
    char *before = encoded(&base.report), *after;
    assert_int_equal(node_report_copy(&base.report, &copy), 0);
    memset(base.processes, 0, sizeof base.processes);
    memset(base.gpus, 0, sizeof base.gpus);
    memset(base.crashes, 0, sizeof base.crashes);
    after = encoded(&copy);
    assert_string_equal(before, after);
    node_report_fini(&copy);
    begin_state(&base);
    base.gpus[0].n_processes = NODE_PROCESSES_MAX + 1;
    assert_int_equal(node_report_copy(&base.report, &copy), -EMSGSIZE);
    node_report_fini(&copy);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_sent),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_unknown_is_not_zero),
        cmocka_unit_test(test_whole_report_is_needed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
