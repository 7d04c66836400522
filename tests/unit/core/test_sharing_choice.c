/* SPDX-License-Identifier: Apache-2.0 */
/* The sharing mode that is chosen, for each fact that it depends on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/sharing_choice.h"
#include "pretend_gpus.h"

static const int first_gpu[] = {0};

struct case_ {
    struct resident residents[2];
    int n_residents;
    struct gpu_identity id;
    struct task task;
    bool exclusive;
};

static struct case_ no_resident(enum sharing asked)
{
    struct case_ c = {.id = {.is_place = true, .mem_total_bytes = 40 * GIB}};
    c.task.uid = 1;
    c.task.run = task_no_run();
    c.task.request = (struct task_request){.gpus = 1, .sharing = asked};
    return c;
}

static void add_resident(struct case_ *c, uint32_t uid, enum sharing sharing, double smact)
{
    c->residents[c->n_residents++] = (struct resident){
        .task = 7, .uid = uid, .sharing = sharing, .expect.smact = reading_of(smact)};
}

static struct sharing_mode choose(struct case_ *c)
{
    struct core_settings settings = core_settings_default();
    struct gpu_view gpu = {.id = c->id, .residents = c->residents, .n_residents = c->n_residents};
    struct cluster_view view = {.gpus = &gpu, .n_gpus = 1, .has_promises = true};
    return sharing_choose(&settings, &view, &c->task, first_gpu, 1, c->exclusive);
}

static void assert_share(struct case_ *c, enum sharing sharing, enum share_reason reason)
{
    struct sharing_mode share = choose(c);
    assert_int_equal(share.sharing, sharing);
    assert_string_equal(sharing_reason_name(share.reason), sharing_reason_name(reason));
}

static void what_is_asked_for_is_done(void **state)
{
    struct case_ streams = no_resident(SHARING_STREAMS), mps = no_resident(SHARING_MPS);
    add_resident(&streams, 1, SHARING_MPS, 0.1);
    add_resident(&mps, 1, SHARING_STREAMS, 0.95);
    assert_share(&streams, SHARING_STREAMS, SHARE_AS_ASKED);
    assert_share(&mps, SHARING_MPS, SHARE_AS_ASKED);
    assert_string_equal(sharing_reason_text(SHARE_AS_ASKED), "");
}

static void auto_on_an_idle_gpu(void **state)
{
    struct case_ unknown = no_resident(SHARING_AUTO), large = unknown, alone = unknown;
    large.task.request.expect.smact = reading_of(0.9);
    alone.exclusive = true;
    assert_share(&unknown, SHARING_MPS, SHARE_WITH_ROOM);
    assert_share(&large, SHARING_MPS, SHARE_WITH_ROOM);
    assert_share(&alone, SHARING_STREAMS, SHARE_ALONE);
    unknown.id.one_process = true;
    assert_share(&unknown, SHARING_MPS, SHARE_ONE_PROCESS);
}

/* On an idle instance auto takes turns, but MPS works there. */
static void a_mig_instance(void **state)
{
    struct case_ idle = no_resident(SHARING_AUTO), beside = idle, asked = no_resident(SHARING_MPS);
    idle.id.is_mig_instance = beside.id.is_mig_instance = asked.id.is_mig_instance = true;
    add_resident(&beside, 1, SHARING_MPS, 0.3);
    assert_share(&idle, SHARING_STREAMS, SHARE_INSTANCE);
    assert_share(&beside, SHARING_MPS, SHARE_WITH_ROOM);
    assert_share(&asked, SHARING_MPS, SHARE_AS_ASKED);
    idle.id.one_process = true;
    assert_share(&idle, SHARING_MPS, SHARE_ONE_PROCESS);
}

/* The setting mps-gpus is the server's, so it holds for a task that asks for MPS as well. */
static void gpus_without_mps(void **state)
{
    struct case_ chosen = no_resident(SHARING_AUTO), asked = no_resident(SHARING_MPS),
                 streams = no_resident(SHARING_STREAMS);
    chosen.id.without_mps = asked.id.without_mps = streams.id.without_mps = true;
    assert_share(&chosen, SHARING_STREAMS, SHARE_GPU_WITHOUT_MPS);
    assert_share(&asked, SHARING_STREAMS, SHARE_GPU_WITHOUT_MPS);
    assert_share(&streams, SHARING_STREAMS, SHARE_AS_ASKED);
}

/* In whatever order the GPUs are listed: the first has a time-sliced resident. */
static void one_mode_holds_on_all_gpus_of_a_task(void **state)
{
    struct core_settings settings = core_settings_default();
    struct case_ c = no_resident(SHARING_AUTO);
    add_resident(&c, 1, SHARING_STREAMS, 0.3);
    struct gpu_view gpus[] = {{.id = c.id, .residents = c.residents, .n_residents = 1},
        {.id = {.is_place = true, .one_process = true}}};
    struct cluster_view view = {.gpus = gpus, .n_gpus = 2};
    c.task.request.gpus = 2;
    for (int first = 0; first < 2; first++) {
        const int both[] = {first, 1 - first};
        struct sharing_mode share = sharing_choose(&settings, &view, &c.task, both, 2, false);
        assert_int_equal(share.sharing, SHARING_MPS);
        assert_int_equal(share.reason, SHARE_ONE_PROCESS);
    }
}

static void auto_beside_others(void **state)
{
    struct case_ turns = no_resident(SHARING_AUTO), other_user = turns, unknown = turns;
    add_resident(&turns, 1, SHARING_STREAMS, 0.3);
    add_resident(&other_user, 2, SHARING_MPS, 0.3);
    add_resident(&unknown, 1, SHARING_MPS, 0.05);
    assert_share(&turns, SHARING_STREAMS, SHARE_AS_NEIGHBOURS);
    assert_share(&other_user, SHARING_STREAMS, SHARE_OTHER_USER);
    assert_share(&unknown, SHARING_MPS, SHARE_WITH_ROOM);
}

/* A task beside one of SMACT `other`; both have kernels for `gract` of the time. */
static struct case_ pair_of(double smact, double other, struct reading gract)
{
    struct case_ c = no_resident(SHARING_AUTO);
    add_resident(&c, 1, SHARING_MPS, other);
    c.task.request.expect.smact = reading_of(smact);
    c.task.request.expect.gract = c.residents[0].expect.gract = gract;
    return c;
}

static void auto_by_prediction(void **state)
{
    struct case_ both = pair_of(0.5, 0.5, READING_NONE), small = pair_of(0.1, 0.9, READING_NONE),
                 large = pair_of(0.95, 0.1, READING_NONE),
                 launches = pair_of(0.05, 0.05, reading_of(0.1));
    assert_share(&both, SHARING_MPS, SHARE_WITH_ROOM);
    assert_share(&small, SHARING_MPS, SHARE_WITH_ROOM);
    assert_share(&large, SHARING_MPS, SHARE_CAPPED);
    assert_int_equal(choose(&large).thread_percent, 70);
    assert_share(&launches, SHARING_STREAMS, SHARE_TURNS_FASTER);
    launches.residents[0].is_stopped = true; /* nothing is in the way of the newcomer's launches */
    assert_share(&launches, SHARING_STREAMS, SHARE_TURNS_FASTER);
    launches.residents[0].expect.smact = READING_NONE;
    assert_share(&launches, SHARING_MPS, SHARE_WITH_ROOM);
    large.task.request.expect.smact = reading_of(0.8); /* it does not nearly fill the GPU */
    assert_share(&large, SHARING_MPS, SHARE_WITH_ROOM);
}

/* The newcomer leaves some SMs to a task that was promised a speed, however it came to MPS. The
 * user's own limit stays, and a promise that no limit keeps changes nothing. */
static void a_promise_limits_the_newcomer(void **state)
{
    struct case_ asked = no_resident(SHARING_MPS), automatic = no_resident(SHARING_AUTO);
    struct case_ *both[] = {&asked, &automatic};
    for (int i = 0; i < 2; i++) {
        struct case_ *c = both[i];
        add_resident(c, 1, SHARING_MPS, 0.48);
        c->residents[0].promise.slowdown_max = 1.5;
        c->task.request.expect.smact = reading_of(0.89);
        assert_share(c, SHARING_MPS, SHARE_FOR_PROMISE);
        assert_in_range(choose(c).thread_percent, 60, 70);
        c->residents[0].promise.slowdown_max = 1.25;
        assert_in_range(choose(c).thread_percent, 50, 60);
        c->residents[0].promise.slowdown_max = 1.01; /* it would keep less than half for long */
        assert_share(c, SHARING_MPS, i ? SHARE_WITH_ROOM : SHARE_AS_ASKED);
        c->residents[0].promise.slowdown_max = 3.5;
        assert_int_equal(choose(c).thread_percent, 0);
        c->residents[0].promise.slowdown_max = 1.5;
        c->residents[0].is_stopped = true;
        assert_int_equal(choose(c).thread_percent, 0);
        c->residents[0].is_stopped = false;
        c->task.request.thread_percent = 90;
        assert_int_equal(choose(c).thread_percent, 90);
    }
}

/* The prediction is of MPS with the user's limit, and colloc sets no other. */
static void auto_with_a_limit_of_the_user(void **state)
{
    struct case_ half = pair_of(0.95, 0.05, READING_NONE), tenth = half;
    assert_share(&half, SHARING_MPS, SHARE_CAPPED);
    half.task.request.thread_percent = 50;
    assert_share(&half, SHARING_MPS, SHARE_WITH_ROOM);
    assert_int_equal(choose(&half).thread_percent, 50);
    tenth.task.request.thread_percent = 10; /* it would be slower than in turns */
    assert_share(&tenth, SHARING_STREAMS, SHARE_TURNS_FASTER);
}

static void auto_on_many_residents(void **state)
{
    static struct resident many[33];
    for (int i = 0; i < 33; i++)
        many[i] = (struct resident){.task = 9,
            .uid = 1,
            .sharing = SHARING_MPS,
            .expect = {.smact = reading_of(0.01), .gract = reading_of(0.02)}};
    struct core_settings settings = core_settings_default();
    struct case_ c = pair_of(0.05, 0.05, reading_of(0.1));
    struct gpu_view gpu = {.id = c.id, .residents = many, .n_residents = 33};
    struct cluster_view view = {.gpus = &gpu, .n_gpus = 1};
    assert_int_equal(
        sharing_choose(&settings, &view, &c.task, first_gpu, 1, false).sharing, SHARING_MPS);
}

static void clients_of_mps_are_kept_to_their_need(void **state)
{
    struct case_ c = no_resident(SHARING_MPS);
    assert_int_equal(choose(&c).mem_limit_bytes, 0);
    c.task.request.need = (struct need){NEED_ESTIMATED, 6 * GIB};
    assert_int_equal(choose(&c).mem_limit_bytes, 8 * GIB);
    c.task.request.thread_percent = 30;
    assert_int_equal(choose(&c).thread_percent, 30);
    c.exclusive = true;
    assert_int_equal(choose(&c).mem_limit_bytes, 0);
    c.exclusive = false;
    c.task.oom_count = 1;
    assert_int_equal(choose(&c).mem_limit_bytes, 0);
    c.task.oom_count = 0;
    c.task.run = &(struct task_run){.need_is_least = true};
    assert_int_equal(choose(&c).mem_limit_bytes, 0); /* it may want more */
    c.task.run = task_no_run();
    c.task.request.need.bytes = 39 * GIB;
    assert_int_equal(choose(&c).mem_limit_bytes, 0);
    c.task.request = (struct task_request){
        .gpus = 1, .need = {NEED_DECLARED, GIB}, .thread_percent = 30};
    assert_int_equal(choose(&c).mem_limit_bytes, 0);
    assert_int_equal(choose(&c).thread_percent, 0);
}

static void who_was_failed_by_mps_twice_goes_without(void **state)
{
    struct case_ c = no_resident(SHARING_MPS);
    c.task.requeue_count = 5;
    c.task.mps_failures = 1;
    assert_share(&c, SHARING_MPS, SHARE_AS_ASKED);
    c.task.mps_failures = 2;
    assert_share(&c, SHARING_STREAMS, SHARE_MPS_FAILED);
}

static void what_was_suspended_is_time_sliced(void **state)
{
    struct case_ c = no_resident(SHARING_AUTO);
    assert_false(sharing_rules_out_mps(&c.task));
    c.task.state = TASK_SUSPENDED;
    assert_true(sharing_rules_out_mps(&c.task));
}

static void suspects_are_kept_apart(void **state)
{
    struct case_ c = no_resident(SHARING_MPS);
    c.task.possible_cause = true;
    assert_share(&c, SHARING_STREAMS, SHARE_POSSIBLE_CAUSE);
}

static void reasons_have_names(void **state)
{
    for (int i = 0; i < SHARE_REASONS; i++) {
        const char *name = sharing_reason_name((enum share_reason)i);
        assert_true(*name);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, sharing_reason_name((enum share_reason)k));
        assert_int_equal(*sharing_reason_text((enum share_reason)i) == '\0', i == SHARE_AS_ASKED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for_is_done),
        cmocka_unit_test(auto_on_an_idle_gpu),
        cmocka_unit_test(a_mig_instance),
        cmocka_unit_test(gpus_without_mps),
        cmocka_unit_test(one_mode_holds_on_all_gpus_of_a_task),
        cmocka_unit_test(auto_beside_others),
        cmocka_unit_test(auto_by_prediction),
        cmocka_unit_test(a_promise_limits_the_newcomer),
        cmocka_unit_test(auto_with_a_limit_of_the_user),
        cmocka_unit_test(auto_on_many_residents),
        cmocka_unit_test(clients_of_mps_are_kept_to_their_need),
        cmocka_unit_test(who_was_failed_by_mps_twice_goes_without),
        cmocka_unit_test(what_was_suspended_is_time_sliced),
        cmocka_unit_test(suspects_are_kept_apart),
        cmocka_unit_test(reasons_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
