/* SPDX-License-Identifier: Apache-2.0 */
/* The text for each verdict, and the requests that no GPU can ever serve. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "pretend_gpus.h"

/* A policy that returns the verdict of the test. */
static struct verdict said;

static enum placement_answer say(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    for (int i = 0; i < query->view->n_gpus; i++)
        ret_verdicts[i] = said;
    return PLACE_WAIT;
}

static const struct policy saying = {.name = "saying", .help = "", .choose = say};

static const char *explain(struct core *core, uint64_t id)
{
    static char text[1024];
    return core_explain(core, id, 5, text, sizeof text);
}

static void every_verdict_has_words_to_act_on(void **state)
{
    static const struct {
        struct verdict verdict;
        const char *words;
    } table[] = {
        {{.kind = VERDICT_FITS}, "GPU 0: fits"},
        {{.kind = VERDICT_NOT_A_PLACE}, "there is no GPU"},
        {{.kind = VERDICT_LOST}, "GPU 0: lost"},
        {{.kind = VERDICT_NO_SAMPLE}, "GPU 0: no recent reading"},
        {{.kind = VERDICT_MIG_ONE_ONLY}, "GPU 0: MIG instances serve tasks of one GPU only"},
        {{.kind = VERDICT_EXCLUSIVE, .task = 7}, "GPU 0: task 7 has it to itself"},
        {{.kind = VERDICT_DRAINED, .task = 7}, "GPU 0: kept empty for task 7, which recovers"},
        {{.kind = VERDICT_RETURN, .task = 7},
            "GPU 0: kept for task 7, which is suspended and comes back only to it"},
        {{.kind = VERDICT_HOLD_OFF, .task = 7}, "GPU 0: task 7 is still taking its memory"},
        {{.kind = VERDICT_NOT_IDLE, .have = 1}, "GPU 0: 1 task there, must be idle"},
        {{.kind = VERDICT_NOT_IDLE, .have = 2, .limit = 1}, "GPU 0: 2 tasks there, must be idle"},
        {{.kind = VERDICT_NOT_IDLE, .limit = 2},
            "GPU 0: in use by 2 external processes, must be idle"},
        {{.kind = VERDICT_NOT_IDLE},
            "GPU 0: not known to be idle (memory in use, or no list of processes)"},
        {{.kind = VERDICT_FULL, .have = 3}, "GPU 0: 3 tasks there already"},
        {{.kind = VERDICT_MEMORY_UNKNOWN}, "GPU 0: free memory not known"},
        {{.kind = VERDICT_MEMORY_SHORT, .have = 5.0 * (double)GIB, .limit = 6.2 * (double)GIB},
            "GPU 0: 1.2 GiB short"},
        {{.kind = VERDICT_SMACT_UNKNOWN}, "GPU 0: activity not known"},
        {{.kind = VERDICT_SMACT_HIGH, .have = 0.83, .limit = 0.8}, "GPU 0: SMACT 83 % over 80 %"},
        {{.kind = VERDICT_SMACT_EXPECTED, .have = 1.3, .limit = 0.8},
            "GPU 0: expected SMACT 130 % over 80 % (a task is starting)"},
        {{.kind = VERDICT_SMACT_HIGH, .have = 0.8012, .limit = 0.8},
            "GPU 0: SMACT 80.12 % over 80 %"},
        {{.kind = VERDICT_UTILISATION_HIGH, .have = 0.9, .limit = 0.8},
            "GPU 0: utilisation 90 % over 80 % (SMACT not reported)"},
        {{.kind = VERDICT_OTHER_MPS_USER, .task = 7},
            "GPU 0: task 7 of another user shares it by MPS, which serves one user at a time (mps-users-together)"},
        {{.kind = VERDICT_ONE_PROCESS, .task = 7},
            "GPU 0: its compute mode admits one process, now task 7"},
        {{.kind = VERDICT_ONE_PROCESS},
            "GPU 0: its compute mode admits one process, now an external one"},
        {{.kind = VERDICT_MPS_ON_SOME, .task = 7},
            "GPU 0: task 7 has it, and its compute mode admits others only by MPS, which mps-gpus "
            "does not allow on all GPUs that this task may get"},
    };
    struct core *core = world_core(&saying, 1);
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        said = table[i].verdict;
        assert_string_equal(explain(core, 1), table[i].words);
    }
    assert_string_equal(core_reason_word(core, 1), "Resources");
    core_destroy(core);
}

/* A policy that returns a verdict for each GPU. */
static struct verdict said_of[12];

static enum placement_answer say_of_each(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    for (int i = 0; i < query->view->n_gpus; i++)
        ret_verdicts[i] = said_of[i];
    return PLACE_WAIT;
}

static const struct policy saying_of_each = {.name = "saying", .help = "", .choose = say_of_each};

/* Those of the server, not of a GPU, have their words in verdict_text_add_host. */
static void no_kind_of_verdict_is_without_words(void **state)
{
    struct core *core = world_core(&saying, 1);
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    for (int kind = 0; kind < VERDICT_KINDS; kind++) {
        said = (struct verdict){.kind = (enum verdict_kind)kind, .task = 7, .have = 1, .limit = 2};
        const char *text = explain(core, 1);
        bool is_of_server = kind == VERDICT_HOST_CPUS || kind == VERDICT_HOST_MEMORY;
        if (!is_of_server && strcmp(text, "GPU 0: ") == 0)
            fail_msg("kind %d of a verdict has no words", kind);
    }
    core_destroy(core);
}

static void gpus_with_the_same_text_are_named_together(void **state)
{
    struct core *core = world_core(&saying_of_each, 8);
    for (int i = 0; i < 8; i++)
        said_of[i] = (struct verdict){.kind = VERDICT_EXCLUSIVE, .task = 7};
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    assert_string_equal(explain(core, 1), "GPUs 0 to 7: task 7 has it to itself");
    said_of[3] = (struct verdict){.kind = VERDICT_MEMORY_SHORT, .have = 1e9, .limit = 3e9};
    said_of[4] = said_of[5] = (struct verdict){.kind = VERDICT_LOST};
    assert_string_equal(explain(core, 1),
        "GPUs 0 to 2, 6, 7: task 7 has it to itself; GPU 3: 1.9 GiB short; GPUs 4, 5: lost");
    said_of[2].task = said_of[6].task = 8;
    assert_string_equal(explain(core, 1),
        "GPUs 0 to 2, 6, 7: tasks 7, 8 have them to themselves; GPU 3: 1.9 GiB short; GPUs 4, 5: "
        "lost");
    said_of[1] = (struct verdict){.kind = VERDICT_NOT_A_PLACE};
    assert_non_null(strstr(explain(core, 1), "GPUs 0, 2, 6, 7: tasks 7, 8"));
    core_destroy(core);
}

/* Tasks 21 to 23 are 20_5, 20_7 and 20_9; 30 is of no array. A reservation's number is no task. */
static void tasks_of_arrays_are_named_by_their_arrays_and_sorted(void **state)
{
    const struct array_element elements[] = {{21, 5}, {22, 7}, {23, 9}};
    struct core *core = world_core(&saying_of_each, 4);
    struct event array = {.kind = EVENT_SUBMIT,
        .task = 20,
        .submit = {.elements = elements,
            .n_elements = 3,
            .request = {.gpus = 1, .sharing = SHARING_STREAMS}}};
    assert_int_equal(core_step(core, &array), 0);
    world_submit(core, 1, 30, (struct task_request){.gpus = 1});
    static const uint64_t tasks[] = {30, 23, 22, 23};
    for (int i = 0; i < 4; i++)
        said_of[i] = (struct verdict){.kind = VERDICT_EXCLUSIVE, .task = tasks[i]};
    assert_string_equal(
        explain(core, 21), "GPUs 0 to 3: tasks 20_7, 20_9, 30 have them to themselves");
    char order[100];
    assert_string_equal(core_explain_order(core, 30, 21, order, sizeof order),
        "task 20_5 comes before task 30: it was submitted earlier");
    for (int i = 0; i < 4; i++)
        said_of[i] = (struct verdict){.kind = VERDICT_SET_ASIDE, .task = 22};
    assert_string_equal(explain(core, 21), "GPUs 0 to 3: kept free for reservation 22");
    const struct dependency after[] = {
        {DEPENDENCY_OK, 22, 22, false}, {DEPENDENCY_ANY, 21, 23, false}};
    world_submit(core, 1, 31, (struct task_request){.gpus = 1, .after = after, .n_after = 2});
    assert_string_equal(explain(core, 31), "waits for ok:20_7, any:20");
    core_destroy(core);
}

static void figures_that_differ_are_a_range(void **state)
{
    static const struct {
        struct verdict first;
        double step;
        const char *words;
    } table[] = {
        {{.kind = VERDICT_MEMORY_SHORT, .have = 2 * GIB, .limit = 5 * GIB}, -GIB,
            "GPUs 0 to 3: 3.0 GiB to 6.0 GiB short"},
        {{.kind = VERDICT_NOT_IDLE, .have = 1}, 1, "GPUs 0 to 3: 1 to 4 tasks there, must be idle"},
        {{.kind = VERDICT_FULL, .have = 8}, -1, "GPUs 0 to 3: 5 to 8 tasks there already"},
        {{.kind = VERDICT_SMACT_HIGH, .have = 0.83, .limit = 0.8}, 0.05,
            "GPUs 0 to 3: SMACT 83 to 98 % over 80 %"},
        {{.kind = VERDICT_SMACT_EXPECTED, .have = 0.9, .limit = 0.8}, 0.1,
            "GPUs 0 to 3: expected SMACT 90 to 120 % over 80 % (a task is starting)"},
        {{.kind = VERDICT_UTILISATION_HIGH, .have = 0.9, .limit = 0.8}, 0.01,
            "GPUs 0 to 3: utilisation 90 to 93 % over 80 % (SMACT not reported)"},
        {{.kind = VERDICT_SLOWDOWN, .have = 2.5, .limit = 2}, 0.5,
            "GPUs 0 to 3: a task would take 2.50 to 4.00 times as long as alone, at most 2.00 is "
            "allowed"},
        /* Not of one figure, or not of one limit. */
        {{.kind = VERDICT_NOT_IDLE, .have = 0, .limit = 1}, 1,
            "GPU 0: in use by 1 external process, must be idle; GPU 1: 1 task there, must be "
            "idle; GPU 2: 2 tasks there, must be idle; GPU 3: 3 tasks there, must be idle"},
    };
    struct core *core = world_core(&saying_of_each, 4);
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        for (int gpu = 0; gpu < 4; gpu++) {
            said_of[gpu] = table[i].first;
            said_of[gpu].have += gpu * table[i].step;
        }
        assert_string_equal(explain(core, 1), table[i].words);
    }
    said_of[0] = (struct verdict){.kind = VERDICT_LOST};
    said_of[1] = said_of[2] = (struct verdict){.kind = VERDICT_FULL, .have = 2};
    said_of[3] = (struct verdict){.kind = VERDICT_FULL, .have = 3};
    assert_string_equal(explain(core, 1),
        "GPU 0: lost; GPUs 1, 2: 2 tasks there already; GPU 3: 3 tasks there already");
    core_destroy(core);
}

static void many_texts_and_tasks_are_counted_not_listed(void **state)
{
    struct core *core = world_core(&saying_of_each, 11);
    for (int i = 0; i < 11; i++)
        said_of[i] = (struct verdict){.kind = VERDICT_MPS_FULL, .have = 2 + i % 9, .limit = 48};
    said_of[10] = said_of[8];
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    assert_non_null(
        strstr(explain(core, 1), "GPU 7: 9 clients of MPS, which serves 48 on a GPU; and 2 more"));
    assert_null(strstr(explain(core, 1), "GPU 8"));
    for (int i = 0; i < 11; i++)
        said_of[i] = (struct verdict){.kind = VERDICT_HOLD_OFF, .task = 20 + (uint64_t)i};
    assert_string_equal(explain(core, 1),
        "GPUs 0 to 10: tasks 20, 21, 22, 23, 24, 25, 26, 27, and 3 more are still taking their "
        "memory");
    core_destroy(core);
}

static void a_small_buffer_is_filled_and_ended(void **state)
{
    char text[12];
    struct core *core = world_core(&saying, 11);
    said = (struct verdict){.kind = VERDICT_LOST};
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    assert_string_equal(core_explain(core, 1, 5, text, sizeof text), "GPUs 0 to 1");
    assert_string_equal(core_explain(core, 1, 5, text, 1), "");
    core_destroy(core);
}

static void those_behind_are_told_their_place(void **state)
{
    struct core *core = world_core(&saying, 1);
    said = (struct verdict){.kind = VERDICT_LOST};
    for (uint64_t id = 1; id <= 3; id++)
        world_submit(core, 1, id, (struct task_request){.gpus = 1});
    assert_string_equal(explain(core, 2), "1 task is before it in the queue");
    assert_string_equal(explain(core, 3), "2 tasks are before it in the queue");
    assert_string_equal(core_reason_word(core, 3), "Priority");
    world_input(core, 2, EVENT_HOLD, 2);
    assert_string_equal(explain(core, 3), "1 task is before it in the queue");
    assert_string_equal(explain(core, 2), "held; `colloc release 2` lets it go on");
    assert_string_equal(core_reason_word(core, 2), "JobHeldUser");
    world_input(core, 3, EVENT_CANCEL, 2);
    assert_string_equal(explain(core, 2), "");
    assert_string_equal(core_reason_word(core, 2), "None");
    assert_string_equal(explain(core, 99), "");
    core_destroy(core);
}

static void an_estimate_is_waited_for(void **state)
{
    struct core *core = world_core(&saying, 1);
    world_submit(core, 1, 1, (struct task_request){.gpus = 1, .need = {.kind = NEED_PENDING}});
    assert_string_equal(explain(core, 1), "its memory is being estimated");
    core_destroy(core);
}

static void assert_refused(const struct core *core, struct task_request request, const char *words)
{
    struct fault fault = {""};
    assert_int_equal(core_check_request(core, &request, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, words));
}

static void requests_that_can_never_be_met_are_refused(void **state)
{
    struct core *core = world_core(&saying, 4);
    struct fault fault = {""};
    struct task_request fine = {.gpus = 4, .need = {NEED_DECLARED, 40 * GIB}};
    struct task_request estimated = {.gpus = 4, .need = {NEED_ESTIMATED, 400 * GIB}};
    assert_int_equal(core_check_request(core, &fine, &fault), 0);
    assert_int_equal(core_check_request(core, &estimated, &fault), 0);
    struct task_request without_gpu = {.gpus = 0};
    assert_int_equal(core_check_request(core, &without_gpu, &fault), 0);
    assert_refused(core, (struct task_request){.gpus = 0, .gpu_kind = "A100"}, "no kind of GPU");
    assert_refused(core, (struct task_request){.gpus = 0, .gpu_kind = "@0"}, "cannot name GPUs");
    assert_refused(core, (struct task_request){.gpus = -1}, "gpus=-1");
    assert_refused(
        core, (struct task_request){.gpus = 65}, "gpus=65: a task can have at most 4 here");
    assert_refused(core, (struct task_request){.gpus = 1, .need = {NEED_DECLARED, 40 * GIB + 1}},
        "memory=40.0 GiB");
    assert_refused(core, (struct task_request){.gpus = 1, .need = {NEED_DECLARED, 50 * GIB}},
        "(the largest has 40.0 GiB for tasks)");
    core_destroy(core);
}

static void a_task_over_the_power_limit_is_refused_by_its_declared_activity(void **state)
{
    struct core *core = world_core(&saying, 0);
    struct core_settings settings = *core_get_settings(core);
    struct gpu_identity list[] = {
        {.uuid = "a", .is_place = true, .power_limit_w = 400},
        {.uuid = "b", .is_place = true, .power_limit_w = 300},
    };
    struct event gpus = {.kind = EVENT_GPUS, .gpus = {.list = list, .n = 2}};
    struct task_request request = {.gpus = 1, .expect = {.smact = reading_of(0.8)}};
    struct fault fault = {""};
    settings.conditions.server_power_max_w = 240;
    core_configure(core, &settings);
    assert_int_equal(core_step(core, &gpus), 0);
    assert_int_equal(core_check_request(core, &request, &fault), 0); /* 0.8 of 300 W */
    request.expect.smact = reading_of(0.9);
    assert_refused(core, request, "smact=0.9: its GPUs would draw 270 W, and all GPUs of the");
    request.expect.smact = READING_NONE; /* it may still become known */
    assert_int_equal(core_check_request(core, &request, &fault), 0);
    core_destroy(core);
}

static void a_task_over_the_power_limit_on_an_idle_server_can_never_start(void **state)
{
    struct core *core = world_core(&saying, 1);
    said = (struct verdict){.kind = VERDICT_POWER_NEVER, .have = 450, .limit = 300};
    world_submit(core, 1, 1, (struct task_request){.gpus = 1});
    const char *text = explain(core, 1);
    assert_non_null(strstr(text, "it can never start under the server's power limit: submit it "
                                 "again with a lower --smact"));
    assert_non_null(
        strstr(text, "GPU 0: all GPUs would draw at least 450 W with it even if no other"));
    said = (struct verdict){.kind = VERDICT_SERVER_POWER, .have = 450, .limit = 300};
    assert_null(strstr(explain(core, 1), "never"));
    core_destroy(core);
}

static void gpus_of_other_sizes_and_kinds_count_for_what_they_are(void **state)
{
    struct core *core = world_core(&saying, 0);
    struct gpu_identity list[] = {
        {.uuid = "a", .is_place = true, .mem_total_bytes = 80 * GIB},
        {.uuid = "b", .is_place = true, .mem_total_bytes = 40 * GIB},
        {.uuid = "c", .is_place = false, .mem_total_bytes = 80 * GIB},
        {.uuid = "d", .is_place = true, .is_mig_instance = true, .mem_total_bytes = 10 * GIB},
    };
    struct event event = {.kind = EVENT_GPUS, .gpus = {.list = list, .n = 4}};
    struct fault fault = {""};
    assert_refused(core, (struct task_request){.gpus = 1}, "has no GPU");
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(core_check_request(core, &(struct task_request){.gpus = 2}, &fault), 0);
    assert_refused(core, (struct task_request){.gpus = 3}, "at most 2 here (MIG");
    assert_int_equal(core_check_request(core,
                         &(struct task_request){1, .need = {NEED_DECLARED, 80 * GIB}}, &fault),
        0);
    assert_refused(core, (struct task_request){.gpus = 2, .need = {NEED_DECLARED, 41 * GIB}},
        "too few GPUs that large");
    core_destroy(core);
}

static void unknown_and_rare_kinds_are_refused_with_the_list(void **state)
{
    struct core *core = world_core(&saying, 0);
    struct gpu_identity list[] = {
        {.uuid = "a", .is_place = true, .mem_total_bytes = 80 * GIB, .name = "NVIDIA H100"},
        {.uuid = "b", .is_place = true, .mem_total_bytes = 16 * GIB, .name = "Tesla T4"},
        {.uuid = "c", .is_place = true, .mem_total_bytes = 16 * GIB, .name = "Tesla T4"},
        {.uuid = "d", .is_place = false, .mem_total_bytes = 16 * GIB, .name = "Tesla V100"},
    };
    struct event event = {.kind = EVENT_GPUS, .gpus = {.list = list, .n = ARRAY_SIZE(list)}};
    struct fault fault = {""};
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(
        core_check_request(core, &(struct task_request){.gpus = 2, .gpu_kind = "t4"}, &fault), 0);
    assert_refused(core, (struct task_request){.gpus = 1, .gpu_kind = "A100"},
        "gpu_kinds=A100: no GPU here is of that kind; there are: NVIDIA H100, Tesla T4");
    assert_refused(core, (struct task_request){.gpus = 1, .gpu_kind = "V100"}, "no GPU here");
    assert_refused(core, (struct task_request){.gpus = 3, .gpu_kind = "T4"},
        "gpus=3: a task can have at most 2 of kind T4 here");
    assert_refused(core,
        (struct task_request){.gpus = 1, .gpu_kind = "T4", .need = {NEED_DECLARED, 20 * GIB}},
        "(the largest has 16.0 GiB for tasks)");
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verdict_has_words_to_act_on),
        cmocka_unit_test(no_kind_of_verdict_is_without_words),
        cmocka_unit_test(gpus_with_the_same_text_are_named_together),
        cmocka_unit_test(tasks_of_arrays_are_named_by_their_arrays_and_sorted),
        cmocka_unit_test(figures_that_differ_are_a_range),
        cmocka_unit_test(many_texts_and_tasks_are_counted_not_listed),
        cmocka_unit_test(a_small_buffer_is_filled_and_ended),
        cmocka_unit_test(those_behind_are_told_their_place),
        cmocka_unit_test(an_estimate_is_waited_for),
        cmocka_unit_test(requests_that_can_never_be_met_are_refused),
        cmocka_unit_test(a_task_over_the_power_limit_is_refused_by_its_declared_activity),
        cmocka_unit_test(a_task_over_the_power_limit_on_an_idle_server_can_never_start),
        cmocka_unit_test(gpus_of_other_sizes_and_kinds_count_for_what_they_are),
        cmocka_unit_test(unknown_and_rare_kinds_are_refused_with_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
