/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form of events: the bytes never change, and read back give the same event. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/policy.h"
#include "store/event_json.h"

static const struct policy some_policy = {.name = "magm"};

static const struct policy *find_policy(const char *name)
{
    return strcmp(name, "magm") == 0 ? &some_policy : NULL;
}

static char *as_text(const struct event *event)
{
    json_t *body;
    struct fault fault = {""};
    assert_int_equal(event_encode(event, &fault, &body), 0);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

static struct event of_kind(enum event_kind kind)
{
    return (struct event){.kind = kind};
}

/* A copy is written as this text after the original, with all that it points to, has gone. */
static void assert_copied_as(struct event *event, const char *expected)
{
    struct event copy;
    assert_int_equal(event_copy(event, &copy), 0);
    event_release(event);
    char *text = as_text(&copy);
    assert_string_equal(text, expected);
    free(text);
    event_release(&copy);
}

/* Fails unless the event is written as this text, and again so after it was read back, and by a
 * copy. */
static void assert_stored_as(const struct event *event, const char *expected)
{
    struct event again = {.kind = event->kind};
    struct fault fault = {""};
    char *text = as_text(event);
    assert_string_equal(text, expected);
    json_t *body = json_loads(text, 0, NULL);
    free(text);
    assert_int_equal(event_decode(body, find_policy, &fault, &again), 0);
    text = as_text(&again);
    assert_string_equal(text, expected);
    free(text);
    json_decref(body);
    assert_copied_as(&again, expected);
}

static void submissions_are_stored_as_ever(void **state)
{
    struct event event = of_kind(EVENT_SUBMIT);
    struct task_request *request = &event.submit.request;
    request->gpus = 1;
    assert_stored_as(&event,
        "{\"uid\":0,\"held\":false,\"gpus\":1,\"exclusive\":false,\"sharing\":\"streams\","
        "\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0}");
    event.submit.uid = 4294967295u;
    event.submit.held = true;
    *request = (struct task_request){.gpus = 2,
        .policy = &some_policy,
        .exclusive = true,
        .sharing = SHARING_AUTO,
        .thread_percent = 40,
        .need = {NEED_DECLARED, 5368709120},
        .time_limit_us = 60000000,
        .expect = {reading_of(1), reading_of(0.1), reading_of(0), reading_of(3600000000)}};
    assert_stored_as(&event,
        "{\"uid\":4294967295,\"held\":true,\"gpus\":2,\"policy\":\"magm\",\"exclusive\":true,"
        "\"sharing\":\"auto\",\"need\":\"declared\",\"need_bytes\":5368709120,"
        "\"time_limit_us\":60000000,\"smact\":1.0,\"gract\":0.10000000000000001,\"dram\":0.0,"
        "\"expected_us\":3600000000,\"thread_percent\":40}");
    *request = (struct task_request){.gpus = 1};
    /* Beyond 2^53 not each integer is a double. */
    request->expect.time_us = reading_of(36777777700040000);
    assert_stored_as(&event,
        "{\"uid\":4294967295,\"held\":true,\"gpus\":1,\"exclusive\":false,\"sharing\":\"streams\","
        "\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0,"
        "\"expected_us\":36777777700040000}");
}

static void arrays_are_stored_in_runs(void **state)
{
    struct array_element elements[] = {{13, 0}, {14, 5}, {15, 10}, {16, 11}, {18, 12}};
    struct event event = of_kind(EVENT_SUBMIT);
    event.submit.request.gpus = 1;
    event.submit.elements = elements;
    event.submit.n_elements = ARRAY_SIZE(elements);
    event.submit.array_limit = 8;
    assert_stored_as(&event,
        "{\"uid\":0,\"held\":false,\"gpus\":1,\"exclusive\":false,\"sharing\":\"streams\","
        "\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0,\"array_limit\":8,"
        "\"array\":[{\"task\":13,\"index\":0,\"step\":5,\"count\":3},"
        "{\"task\":16,\"index\":11,\"count\":1},{\"task\":18,\"index\":12,\"count\":1}]}");
}

static void the_order_of_tasks_is_stored(void **state)
{
    struct event event = of_kind(EVENT_SUBMIT);
    const struct dependency after[] = {
        {DEPENDENCY_OK, 12, 12, false}, {DEPENDENCY_NOT_OK, 13, 22, true}};
    event.submit.request = (struct task_request){.gpus = 1,
        .priority = PRIORITY_LOW,
        .once = true,
        .begin_us = 7000000,
        .after = after,
        .n_after = 2,
        .gpu_kind = "A100,v100"};
    assert_stored_as(&event,
        "{\"uid\":0,\"held\":false,\"gpus\":1,\"exclusive\":false,\"sharing\":\"streams\","
        "\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0,\"priority\":-1,\"once\":true,"
        "\"begin_us\":7000000,\"gpu_kind\":\"A100,v100\",\"after\":[{\"kind\":\"ok\",\"first\":12,\"last\":12},"
        "{\"kind\":\"notok\",\"first\":13,\"last\":22,\"each\":true}]}");
    event = of_kind(EVENT_UPDATE);
    event.update = (struct task_update){.sets_time_limit = true,
        .time_limit_us = 5,
        .sets_priority = true,
        .sets_need = true,
        .need = {NEED_DECLARED, 7},
        .sets_begin = true,
        .sets_after = true,
        .sets_host = true,
        .may_raise = true,
        .host = {8, 9},
        .after = after,
        .n_after = 1};
    assert_stored_as(&event,
        "{\"sets_time_limit\":true,\"time_limit_us\":5,\"sets_priority\":true,"
        "\"sets_need\":true,\"need\":\"declared\",\"need_bytes\":7,\"sets_begin\":true,"
        "\"sets_after\":true,\"sets_host\":true,\"may_raise\":true,\"cpus\":8,\"host_bytes\":9,"
        "\"after\":[{\"kind\":\"ok\",\"first\":12,\"last\":12}]}");
    event = of_kind(EVENT_RESERVE);
    event.reserve = (struct advance){
        .id = 2, .gpus = 3, .from_us = 5, .until_us = 9, .n_users = 2, .users = {7, 8}};
    assert_stored_as(&event, "{\"id\":2,\"gpus\":3,\"from_us\":5,\"until_us\":9,\"users\":[7,8]}");
    event = of_kind(EVENT_DEPENDENCY);
    event.dependency = (struct dependency_end){{DEPENDENCY_ANY, 3, 4, false}, true, 4};
    assert_stored_as(&event, "{\"kind\":\"any\",\"first\":3,\"last\":4,\"holds\":true,\"by\":4}");
}

static void placements_and_ends_are_stored_as_ever(void **state)
{
    const int gpus[] = {3, 1};
    struct event place = of_kind(EVENT_PLACE), started = of_kind(EVENT_STARTED),
                 exited = of_kind(EVENT_EXITED), end = of_kind(EVENT_END),
                 estimate = of_kind(EVENT_ESTIMATE), cancel = of_kind(EVENT_CANCEL),
                 again = of_kind(EVENT_RUN_AGAIN);
    place.place.gpus = gpus;
    place.place.n = 2;
    assert_stored_as(&place, "{\"gpus\":[3,1],\"whole\":false,\"sharing\":\"streams\"}");
    place.place.exclusive = true;
    place.place.share = (struct sharing_mode){
        .sharing = SHARING_MPS, .reason = SHARE_ALONE, .thread_percent = 70, .mem_limit_bytes = 9};
    assert_stored_as(&place, "{\"gpus\":[3,1],\"whole\":true,\"sharing\":\"mps\",\"why\":\"alone\","
                             "\"thread_percent\":70,\"mem_limit_bytes\":9}");
    assert_stored_as(&started, "{}");
    started.started.by_streams = true;
    assert_stored_as(&started, "{\"sharing\":\"streams\"}");
    started.started = (__typeof__(started.started)){.has_library = true};
    assert_stored_as(&started, "{\"has_library\":true}");
    again.run_again_bytes = 8287940608;
    assert_stored_as(&again, "{\"need_bytes\":8287940608}");
    exited.exited = (struct task_exit){.failure = FAILURE_GPU_OOM, .code = -1, .signal = 9};
    assert_stored_as(&exited, "{\"failure\":\"gpu-oom\",\"code\":-1,\"signal\":9}");
    exited.exited.by_gpu = true;
    assert_stored_as(&exited, "{\"failure\":\"gpu-oom\",\"code\":-1,\"signal\":9,\"by_gpu\":true}");
    exited.exited.by_gpu = false;
    exited.exited.ended_us = 1795204783267426;
    assert_stored_as(&exited,
        "{\"failure\":\"gpu-oom\",\"code\":-1,\"signal\":9,\"ended_us\":1795204783267426}");
    end.end = TASK_TIMEOUT;
    assert_stored_as(&end, "{\"state\":\"timeout\"}");
    estimate.estimate.need = (struct need){NEED_ESTIMATED, 8287940608};
    assert_stored_as(&estimate, "{\"need\":\"estimated\",\"need_bytes\":8287940608}");
    estimate.estimate.smact = reading_of(0.5);
    assert_stored_as(&estimate, "{\"need\":\"estimated\",\"need_bytes\":8287940608,\"smact\":0.5}");
    assert_stored_as(&cancel, "{}");
}

static void usage_is_stored(void **state)
{
    struct event usage = of_kind(EVENT_USAGE);
    usage.usage.uid = 1000;
    usage.usage.usage_us = 3600000000;
    assert_stored_as(&usage, "{\"uid\":1000,\"usage_us\":3600000000}");
    usage.usage.window.length_us = 86400000000;
    usage.usage.window.charged_us[0] = 7;
    usage.usage.window.charged_us[2] = 3600000000;
    assert_stored_as(&usage, "{\"uid\":1000,\"usage_us\":3600000000,\"window_us\":86400000000,"
                             "\"charged_us\":[7,0,3600000000]}");
}

static void delays_are_stored(void **state)
{
    struct event delays = of_kind(EVENT_DELAYS);
    delays.delays.uid = 1000;
    delays.delays.sharing = SHARING_MPS;
    delays.delays.measured_us = 45000000;
    delays.delays.predicted_us = 30000000;
    assert_stored_as(&delays, "{\"uid\":1000,\"sharing\":\"mps\",\"measured_us\":45000000,"
                              "\"predicted_us\":30000000}");
}

static void suspension_cost_is_stored(void **state)
{
    struct event cost = of_kind(EVENT_SUSPENSION_COST);
    cost.suspension_cost.cost = (struct suspension_cost){300000, 690000, 200000};
    assert_stored_as(/* as older versions wrote it */
        &cost, "{\"fixed_us\":300000,\"suspend_us_per_gib\":690000,\"resume_us_per_gib\":200000}");
    cost.suspension_cost.way = SUSPENSION_BY_CARRIER;
    assert_stored_as(&cost, "{\"way\":\"carrier\",\"fixed_us\":300000,"
                            "\"suspend_us_per_gib\":690000,\"resume_us_per_gib\":200000}");
    cost.suspension_cost.way = SUSPENSION_TO_NEIGHBOUR;
    cost.suspension_cost.of_gpu = 2;
    assert_stored_as(&cost, "{\"way\":\"neighbour\",\"of_gpu\":2,\"fixed_us\":300000,"
                            "\"suspend_us_per_gib\":690000,\"resume_us_per_gib\":200000}");
}

static void an_idle_holder_is_stored(void **state)
{
    struct event idle = of_kind(EVENT_IDLE);
    idle.idle_us = 600000000;
    assert_stored_as(&idle, "{\"idle_us\":600000000}");
}

static void latest_starts_are_stored(void **state)
{
    const int64_t free_us[] = {5000000, 1152921504606846976};
    struct event latest = of_kind(EVENT_LATEST_START), fifo = of_kind(EVENT_FIFO);
    latest.latest_start_us = 7;
    assert_stored_as(&latest, "{\"latest_us\":7}");
    fifo.fifo.last_start_us = 3;
    fifo.fifo.free_us = free_us;
    fifo.fifo.n = 2;
    assert_stored_as(&fifo, "{\"free_us\":[5000000,1152921504606846976],\"last_start_us\":3}");
}

static void giving_way_is_stored_as_ever(void **state)
{
    const int gpus[] = {3, 1};
    struct event suspending = of_kind(EVENT_SUSPENDING), moving = of_kind(EVENT_MOVING),
                 resuming = of_kind(EVENT_RESUMING), move = of_kind(EVENT_MOVE),
                 suspended = of_kind(EVENT_SUSPENDED), failed = of_kind(EVENT_SUSPENSION_FAILED),
                 wait = of_kind(EVENT_MEMORY_WAIT), answer = of_kind(EVENT_MEMORY_ANSWER),
                 resume = of_kind(EVENT_RESUME), go_on = of_kind(EVENT_CONTINUE),
                 pause = of_kind(EVENT_PAUSE);
    pause.yield.reason = YIELD_TO_SERVICE;
    assert_stored_as(&pause, "{\"why\":\"service\"}");
    pause.yield.reason = YIELD_TO_PROBE;
    pause.yield.to_task = 7;
    pause.yield.until_us = 5000000;
    assert_stored_as(&pause, "{\"why\":\"probe\",\"for\":7,\"until_us\":5000000}");
    suspending.yield.reason = YIELD_TO_MEMORY;
    assert_stored_as(&suspending, "{\"why\":\"memory\"}");
    suspending.yield.to_task = 12;
    assert_stored_as(&suspending, "{\"why\":\"memory\",\"for\":12}");
    suspending.yield.keeps_context = true;
    assert_stored_as(&suspending, "{\"why\":\"memory\",\"for\":12,\"keeps_context\":true}");
    moving.yield.gpus = resuming.yield.gpus = move.yield.gpus = gpus;
    moving.yield.n = resuming.yield.n = move.yield.n = 2;
    moving.yield.reason = YIELD_GPU_FAILING;
    assert_stored_as(&moving, "{\"gpus\":[3,1],\"why\":\"gpu-failing\"}");
    assert_stored_as(&resuming, "{\"gpus\":[3,1]}");
    assert_stored_as(&move, "{\"gpus\":[3,1]}");
    assert_stored_as(&suspended, "{}");
    suspended.yielded.bytes = reading_of(7838315315);
    suspended.yielded.took_us = 3600000;
    assert_stored_as(&suspended, "{\"bytes\":7838315315,\"took_us\":3600000}");
    failed.suspension_failed.why = SUSPENSION_NO_MEMORY;
    failed.suspension_failed.is_suspended = true;
    assert_stored_as(&failed, "{\"why\":\"no-memory\",\"suspended\":true}");
    wait.memory_wait.bytes = 1073741824;
    assert_stored_as(&wait, "{\"bytes\":1073741824}");
    wait.memory_wait.is_again = true;
    assert_stored_as(&wait, "{\"bytes\":1073741824,\"again\":true}");
    assert_stored_as(&answer, "{\"granted\":false}");
    assert_stored_as(&resume, "{}");
    assert_stored_as(&go_on, "{}");
}

static void gpus_are_stored_as_ever(void **state)
{
    const struct gpu_identity gpus[] = {
        {.uuid = "GPU-5c0f", .label = "0", .name = "A100", .mem_total_bytes = 1, .is_place = true},
        {.uuid = "MIG-1",
            .is_mig_instance = true,
            .one_process = true,
            .without_mps = true,
            .is_gone = true,
            .memory_domain = 4}};
    struct event event = of_kind(EVENT_GPUS);
    event.gpus.list = gpus;
    event.gpus.n = 2;
    assert_stored_as(&event,
        "{\"gpus\":[{\"uuid\":\"GPU-5c0f\",\"label\":\"0\",\"name\":\"A100\",\"mem_total_bytes\":1,"
        "\"is_place\":true,\"is_mig_instance\":false},{\"uuid\":\"MIG-1\",\"label\":\"\","
        "\"name\":\"\",\"mem_total_bytes\":0,\"is_place\":false,\"is_mig_instance\":true,"
        "\"one_process\":true,\"without_mps\":true,\"is_gone\":true,\"memory_domain\":4}]}");
}

/* A log of before has none: the speed is then not known. */
static void the_speed_of_a_gpu_is_stored_where_it_is_known(void **state)
{
    const struct gpu_identity gpu = {.uuid = "GPU-1", .is_place = true, .speed = 697};
    struct event event = of_kind(EVENT_GPUS);
    event.gpus.list = &gpu;
    event.gpus.n = 1;
    assert_stored_as(&event,
        "{\"gpus\":[{\"uuid\":\"GPU-1\",\"label\":\"\",\"name\":\"\",\"mem_total_bytes\":0,"
        "\"is_place\":true,\"is_mig_instance\":false,\"speed\":697}]}");
}

static void samples_keep_their_numbers_to_the_bit(void **state)
{
    struct task_memory tasks[] = {
        {7, reading_of(19140706304.0), 3, 1, 2, 1, false}, {8, READING_NONE, 0, 0, 0, 0, false}};
    struct event event = of_kind(EVENT_SAMPLE);
    event.sample = (struct core_sample){.gpu = -1,
        .lost = true,
        .faulty = true,
        .more_follow = true,
        .mem_used_bytes = reading_of(19140706304.0),
        .smact = reading_of(0.59999999999999964),
        .smact_repeats = true,
        .external_processes = reading_of(-0.0),
        .tasks = tasks,
        .n_tasks = 2};
    assert_stored_as(&event,
        "{\"gpu\":-1,\"lost\":true,\"faulty\":true,\"more_follow\":true,"
        "\"mem_used_bytes\":19140706304,\"smact\":0.59999999999999964,\"smact_repeats\":true,"
        "\"external_processes\":-0.0,\"tasks\":[{\"task\":7,\"mem_used_bytes\":19140706304,"
        "\"mps_clients\":3,\"hooked\":1,\"unhooked\":2,\"carried\":1},"
        "{\"task\":8}]}");
    event.sample = (struct core_sample){.mem_used_bytes = reading_of(1e300)};
    assert_stored_as(&event, "{\"gpu\":0,\"mem_used_bytes\":1.0000000000000001e300}");
}

#define TEXT_OF_32   "A100,A100,A100,A100,A100,A100,A1"
#define TEXT_OF_128  TEXT_OF_32 TEXT_OF_32 TEXT_OF_32 TEXT_OF_32
#define TEXT_OF_512  TEXT_OF_128 TEXT_OF_128 TEXT_OF_128 TEXT_OF_128
#define TEXT_OF_2048 TEXT_OF_512 TEXT_OF_512 TEXT_OF_512 TEXT_OF_512
#define OF_SUBMISSION                                                                              \
    "{\"uid\":0,\"held\":false,\"gpus\":1,\"exclusive\":false,\"sharing\":\"mps\","                \
    "\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0,"

static void what_is_wrong_is_refused_with_its_key(void **state)
{
    static const struct {
        enum event_kind kind;
        const char *text, *key;
    } table[] = {
        {EVENT_CANCEL, "[]", "object"},
        {EVENT_END, "{}", "state"},
        {EVENT_END, "{\"state\":\"running\"}", "state: 'running'"},
        {EVENT_EXITED, "{\"failure\":\"none\",\"code\":1e3,\"signal\":0}", "code"},
        {EVENT_EXITED, "{\"failure\":\"none\",\"code\":0,\"signal\":-1}", "signal: -1"},
        {EVENT_ESTIMATE, "{\"need\":\"estimated\",\"need_bytes\":-1}", "need_bytes: -1"},
        {EVENT_PLACE, "{\"gpus\":[0],\"whole\":1,\"sharing\":\"mps\"}", "whole"},
        {EVENT_PLACE, "{\"gpus\":[0],\"whole\":true,\"sharing\":\"auto\"}", "'auto'"},
        {EVENT_PLACE, "{\"gpus\":[-1],\"whole\":true,\"sharing\":\"mps\"}", "gpus, entry 0"},
        {EVENT_PLACE, "{\"gpus\":3,\"whole\":true,\"sharing\":\"mps\"}", "gpus"},
        {EVENT_STARTED, "{\"sharing\":7}", "sharing"},
        {EVENT_SUSPENDING, "{}", "why"},
        {EVENT_SUSPENDING, "{\"why\":\"bored\"}", "'bored'"},
        {EVENT_MOVE, "{}", "gpus"},
        {EVENT_MOVING, "{\"gpus\":[1],\"why\":7}", "why"},
        {EVENT_RESUMING, "{\"gpus\":[-1]}", "gpus, entry 0"},
        {EVENT_SUSPENDED, "{\"bytes\":-1}", "bytes"},
        {EVENT_SUSPENSION_FAILED, "{\"why\":\"lost\"}", "suspended"},
        {EVENT_MEMORY_WAIT, "{\"bytes\":0}", "bytes"},
        {EVENT_MEMORY_ANSWER, "{\"granted\":1}", "granted"},
        {EVENT_LATEST_START, "{\"latest_us\":-1}", "latest_us: -1"},
        {EVENT_FIFO, "{\"last_start_us\":0}", "free_us"},
        {EVENT_FIFO, "{\"last_start_us\":0,\"free_us\":[0,-1]}", "free_us, entry 1"},
        {EVENT_FIFO, "{\"last_start_us\":0,\"free_us\":[\"x\"]}", "free_us, entry 0"},
        {EVENT_USAGE, "{\"uid\":-1,\"usage_us\":0}", "uid: -1"},
        {EVENT_DELAYS, "{\"uid\":1,\"sharing\":\"auto\",\"measured_us\":1,\"predicted_us\":1}",
            "sharing"},
        {EVENT_DELAYS, "{\"uid\":1,\"sharing\":\"mps\",\"measured_us\":-1,\"predicted_us\":1}",
            "measured_us: -1"},
        {EVENT_USAGE, "{\"uid\":1,\"usage_us\":-5}", "usage_us: -5"},
        {EVENT_USAGE, "{\"uid\":1}", "usage_us"},
        {EVENT_USAGE, "{\"uid\":1,\"usage_us\":1,\"window_us\":0}", "window_us: 0"},
        {EVENT_USAGE, "{\"uid\":1,\"usage_us\":1,\"charged_us\":[1,-1]}", "charged_us"},
        {EVENT_USAGE, "{\"uid\":1,\"usage_us\":1,\"charged_us\":[1.5]}", "charged_us"},
        {EVENT_USAGE,
            "{\"uid\":1,\"usage_us\":1,\"charged_us\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
            "0,0,0,0,0,0,0,0,0,0,0,0]}",
            "up to 32"},
        {EVENT_SUSPENSION_COST, "{\"fixed_us\":-1}", "fixed_us: -1"},
        {EVENT_SUSPENSION_COST, "{\"way\":\"either\"}", "way: 'either' is not known"},
        {EVENT_SUSPENSION_COST, "{\"of_gpu\":-1}", "of_gpu: -1"},
        {EVENT_IDLE, "{}", "idle_us"},
        {EVENT_SUSPENSION_COST, "{\"fixed_us\":1,\"suspend_us_per_gib\":1}", "resume_us_per_gib"},
        {EVENT_GPUS, "{\"gpus\":[{}]}", "gpus, entry 0: uuid"},
        {EVENT_GPUS, "{}", "gpus"},
        {EVENT_SAMPLE, "{}", "gpu"},
        {EVENT_SAMPLE, "{\"gpu\":0,\"smact\":\"x\"}", "smact"},
        {EVENT_SAMPLE, "{\"gpu\":0,\"tasks\":[{\"task\":0}]}", "tasks, entry 0: task: 0"},
        {EVENT_SUBMIT,
            "{\"uid\":0,\"held\":false,\"gpus\":1,\"exclusive\":false,\"sharing\":\"mps\","
            "\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0,\"smact\":1.5}",
            "smact"},
        {EVENT_SUBMIT,
            "{\"uid\":0,\"held\":false,\"gpus\":1,\"policy\":\"best\",\"exclusive\":false,"
            "\"sharing\":\"mps\",\"need\":\"unknown\",\"need_bytes\":0,\"time_limit_us\":0}",
            "policy: 'best'"},
        {EVENT_SUBMIT, OF_SUBMISSION "\"gpu_kind\":7}", "gpu_kind: missing, or not a text"},
        {EVENT_SUBMIT, OF_SUBMISSION "\"gpu_kind\":\"" TEXT_OF_2048 "\"}", "longer than 2047"},
        {EVENT_SUBMIT, OF_SUBMISSION "\"gpu_kind\":\"A100\",\"after\":7}", "after"},
        {EVENT_SUBMIT,
            OF_SUBMISSION "\"gpu_kind\":\"A100\",\"after\":[{\"kind\":\"ok\",\"first\":1,"
                          "\"last\":1}],\"array\":7}",
            "array"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct event event = {.kind = table[i].kind};
        struct fault fault = {""};
        json_t *body = json_loads(table[i].text, 0, NULL);
        assert_non_null(body);
        assert_int_equal(event_decode(body, find_policy, &fault, &event), -EINVAL);
        if (!strstr(fault.text, table[i].key))
            fail_msg("%s: %s", table[i].text, fault.text);
        json_decref(body);
    }
}

static void a_text_that_is_not_utf8_is_not_written(void **state)
{
    const struct gpu_identity gpu = {.uuid = "GPU-\xff"};
    struct event event = of_kind(EVENT_GPUS);
    struct fault fault = {""};
    json_t *body;
    event.gpus.list = &gpu;
    event.gpus.n = 1;
    assert_int_equal(event_encode(&event, &fault, &body), -EINVAL);
    assert_non_null(strstr(fault.text, "GPUS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submissions_are_stored_as_ever),
        cmocka_unit_test(the_order_of_tasks_is_stored),
        cmocka_unit_test(arrays_are_stored_in_runs),
        cmocka_unit_test(placements_and_ends_are_stored_as_ever),
        cmocka_unit_test(usage_is_stored),
        cmocka_unit_test(delays_are_stored),
        cmocka_unit_test(suspension_cost_is_stored),
        cmocka_unit_test(an_idle_holder_is_stored),
        cmocka_unit_test(latest_starts_are_stored),
        cmocka_unit_test(giving_way_is_stored_as_ever),
        cmocka_unit_test(gpus_are_stored_as_ever),
        cmocka_unit_test(the_speed_of_a_gpu_is_stored_where_it_is_known),
        cmocka_unit_test(samples_keep_their_numbers_to_the_bit),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_key),
        cmocka_unit_test(a_text_that_is_not_utf8_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
