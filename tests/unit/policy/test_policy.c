/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as pure functions: for a view made by hand and one task, the GPUs and verdicts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/core.h"
#include "policy/conditions.h"
#include "policy/policies.h"
#include "policy/predict.h"

enum { N = 4, NOW = 100 };

static struct gpu_view gpus[N];
static struct resident residents[N][4];
static struct cluster_view view;
static struct conditions conditions;
static struct core_settings settings;
static struct task task;
static const struct task *first; /* the head of the queue, if GPUs are reserved for it */
static struct verdict verdicts[N];
static int chosen[N];

/* Four idle GPUs of 40 GiB, a task of one GPU of which nothing is known. */
static int idle_machine(void **state)
{
    memset(gpus, 0, sizeof gpus);
    memset(residents, 0, sizeof residents);
    first = NULL;
    for (int i = 0; i < N; i++) {
        gpus[i].id.is_place = true;
        gpus[i].id.mem_total_bytes = 40 * GIB;
        gpus[i].health = VIEW_OK;
        gpus[i].sampled_us = NOW;
        gpus[i].mem_used_bytes = reading_of(0);
        gpus[i].external_processes = reading_of(0);
        gpus[i].smact_level = gpus[i].utilisation_level = reading_of(0);
        gpus[i].residents = residents[i];
    }
    view = (struct cluster_view){.gpus = gpus,
        .n_gpus = N,
        .last_placed = -1,
        .mem_total_max_bytes = reading_of(40 * (double)GIB)};
    conditions = (struct conditions){.smact_max = 0.8,
        .slowdown_max = 2,
        .min_free_bytes = 5 * GIB,
        .margin_bytes = 2 * GIB,
        .sample_valid_us = 3 * SECOND_US};
    settings = core_settings_default();
    task = (struct task){
        .id = 50, .run = task_no_run(), .state = TASK_QUEUED, .request = {.gpus = 1}};
    return 0;
}

static void settle_in(int gpu, double used_gib, double smact)
{
    gpus[gpu].residents[gpus[gpu].n_residents++] = (struct resident){
        .task = 60 + (uint64_t)gpu, .residence = RESIDENCE_SETTLED};
    gpus[gpu].mem_used_bytes = reading_of(used_gib * (double)GIB);
    gpus[gpu].smact_level = reading_of(smact);
    gpus[gpu].utilisation_level = reading_of(smact);
}

/* Asks with what is open noted or not. */
static enum placement_answer ask_noted(
    const struct policy *policy, struct placement_query query, bool is_noted)
{
    double open_bytes[N];
    struct cluster_view noted = view;
    for (int i = 0; i < N; i++)
        open_bytes[i] = gpu_view_open_bytes(&gpus[i]);
    noted.open_bytes = is_noted ? open_bytes : NULL;
    query.view = &noted;
    return policy->choose(&query, chosen, verdicts);
}

/* The answers to a query: noted or not, with and without reasons. */
enum { WAYS = 4 };

static enum placement_answer ask_in_way(
    const struct policy *policy, struct placement_query query, int way)
{
    query.is_unexplained = way & 1;
    return ask_noted(policy, query, way & 2);
}

/* What is chosen does not depend on whether the reasons are read, nor on what is noted. */
static enum placement_answer ask(const struct policy *policy)
{
    struct placement_query query = {.view = &view,
        .conditions = &conditions,
        .settings = &settings,
        .task = &task,
        .head = first,
        .head_policy = &policy_predictive,
        .now_us = NOW,
        .idle_only = policy->exclusive_gpus || task.request.exclusive,
        .unused_is_idle = task.oom_count > 0};
    int chosen_before[WAYS][N];
    enum placement_answer before[WAYS];
    for (int i = 0; i < WAYS; i++) {
        before[i] = ask_in_way(policy, query, i);
        memcpy(chosen_before[i], chosen, sizeof chosen);
    }
    enum placement_answer answer = policy->choose(&query, chosen, verdicts);
    for (int i = 0; i < WAYS; i++) {
        assert_int_equal(answer, before[i]);
        if (answer == PLACE_NOW)
            assert_memory_equal(
                chosen, chosen_before[i], (size_t)placement_wanted(&query) * sizeof *chosen);
    }
    return answer;
}

static void assert_chooses(const struct policy *policy, int gpu)
{
    assert_int_equal(ask(policy), PLACE_NOW);
    assert_int_equal(chosen[0], gpu);
}

static struct verdict check_of_array(int gpu, bool idle_only, int array_left)
{
    struct placement_query query = {.array_left = array_left,
        .view = &view,
        .conditions = &conditions,
        .settings = &settings,
        .task = &task,
        .head = first,
        .head_policy = &policy_predictive,
        .now_us = NOW,
        .idle_only = idle_only};
    return conditions_check(&query, gpu);
}

static struct verdict check(int gpu, bool idle_only)
{
    return check_of_array(gpu, idle_only, 0);
}

static void policies_are_found_by_name(void **state)
{
    for (int i = 0; policy_table[i]; i++)
        assert_ptr_equal(policy_find(policy_table[i]->name), policy_table[i]);
    assert_ptr_equal(policy_find("magm"), &policy_magm);
    assert_null(policy_find("MAGM"));
    assert_null(policy_find(""));
}

static void a_former_name_is_found_and_not_listed(void **state)
{
    assert_ptr_equal(policy_find("foresee"), &policy_predictive); /* check-words: alias */
    assert_string_equal(policy_predictive.name, "predictive");
    for (size_t i = 0; policy_name_at(i); i++)
        assert_string_not_equal(policy_name_at(i), "foresee"); /* check-words: alias */
}

/* The search ends at a GPU that none can beat. One with a little memory in use can be beaten. */
static void the_search_ends_where_nothing_better_can_come(void **state)
{
    view.mem_total_max_bytes = reading_of(40 * GIB);
    gpus[0].mem_used_bytes = reading_of(3 * MIB);
    gpus[1].id.mem_total_bytes = 39 * GIB;
    memset(verdicts, 0xff, sizeof verdicts);
    assert_chooses(&policy_magm, 2);
    assert_int_equal(verdicts[2].kind, VERDICT_FITS);
    assert_int_not_equal(verdicts[3].kind, VERDICT_FITS);
    task.request.gpus = 2;
    assert_chooses(&policy_magm, 2);
    assert_int_equal(chosen[1], 3);
    task.request.gpus = 3;
    assert_chooses(&policy_magm, 2);
    assert_int_equal(chosen[2], 0);
    task.request.gpus = 5;
    assert_int_equal(ask(&policy_magm), PLACE_WAIT);
    assert_int_equal(ask(&policy_first_fit), PLACE_WAIT);
}

static void each_policy_has_its_order(void **state)
{
    settle_in(0, 30, 0.5);
    settle_in(1, 10, 0.6);
    settle_in(2, 20, 0.2);
    assert_chooses(&policy_exclusive, 3);
    assert_chooses(&policy_magm, 3);
    assert_chooses(&policy_lug, 3);
    assert_chooses(&policy_mug, 1);
    assert_chooses(&policy_best_fit, 0);
    assert_chooses(&policy_first_fit, 0);
    settle_in(3, 25, 0.7);
    assert_int_equal(ask(&policy_exclusive), PLACE_WAIT);
    assert_chooses(&policy_magm, 1);
    assert_chooses(&policy_lug, 2);
    assert_chooses(&policy_mug, 3);
    task.request.need = (struct need){NEED_DECLARED, 17 * GIB};
    assert_chooses(&policy_best_fit, 2);
    assert_chooses(&policy_first_fit, 1);
}

static void round_robin_goes_round(void **state)
{
    for (int last = -1; last < N; last++) {
        view.last_placed = last;
        assert_chooses(&policy_rr, (last + 1) % N);
    }
    gpus[0].health = VIEW_LOST;
    assert_chooses(&policy_rr, 1);
}

static void ties_go_to_the_lower_index(void **state)
{
    for (int i = 0; policy_table[i]; i++)
        assert_chooses(policy_table[i], 0);
    for (int i = 0; i < N; i++)
        settle_in(i, 10, 0.3);
    assert_chooses(&policy_magm, 0);
    assert_chooses(&policy_lug, 0);
    assert_chooses(&policy_mug, 0);
}

static void equally_active_gpus_are_told_apart_by_memory(void **state)
{
    settle_in(0, 10, 0.3);
    settle_in(1, 20, 0.3);
    settle_in(2, 5, 0.3);
    settle_in(3, 15, 0.3);
    assert_chooses(&policy_mug, 1);
    assert_chooses(&policy_lug, 2);
}

static void several_gpus_are_the_best_ones_all_different_or_none(void **state)
{
    settle_in(0, 30, 0.5);
    settle_in(1, 10, 0.6);
    settle_in(2, 20, 0.2);
    task.request.gpus = 3;
    assert_int_equal(ask(&policy_magm), PLACE_NOW);
    assert_int_equal(chosen[0], 3);
    assert_int_equal(chosen[1], 1);
    assert_int_equal(chosen[2], 2);
    task.request.gpus = 2;
    assert_int_equal(ask(&policy_exclusive), PLACE_WAIT);
    task.request.gpus = 5;
    assert_int_equal(ask(&policy_magm), PLACE_WAIT);
}

static void a_choice_leaves_the_view_alone(void **state)
{
    settle_in(1, 10, 0.5);
    struct gpu_view before[N];
    memcpy(before, gpus, sizeof gpus);
    for (int i = 0; policy_table[i]; i++)
        ask(policy_table[i]);
    assert_memory_equal(before, gpus, sizeof gpus);
}

static void what_bars_a_gpu_comes_before_what_it_has(void **state)
{
    assert_int_equal(check(0, true).kind, VERDICT_FITS);
    gpus[0].claims[CLAIM_DRAIN] = 50;
    assert_int_equal(check(0, true).kind, VERDICT_FITS);
    gpus[0].claims[CLAIM_DRAIN] = 51;
    assert_int_equal(check(0, false).kind, VERDICT_DRAINED);
    assert_int_equal(check(0, false).task, 51);
    gpus[0].claims[CLAIM_EXCLUSIVE] = 52;
    assert_int_equal(check(0, false).kind, VERDICT_EXCLUSIVE);
    gpus[0].id.is_mig_instance = true;
    task.request.gpus = 2;
    assert_int_equal(check(0, false).kind, VERDICT_MIG_ONE_ONLY);
    gpus[0].sampled_us = NOW - 3 * SECOND_US;
    assert_int_equal(check(0, false).kind, VERDICT_MIG_ONE_ONLY);
    gpus[0].sampled_us--;
    assert_int_equal(check(0, false).kind, VERDICT_NO_SAMPLE);
    gpus[0].health = VIEW_UNSEEN;
    assert_int_equal(check(0, false).kind, VERDICT_NO_SAMPLE);
    gpus[0].health = VIEW_LOST;
    assert_int_equal(check(0, false).kind, VERDICT_LOST);
    gpus[0].id.is_place = false;
    assert_int_equal(check(0, false).kind, VERDICT_NOT_A_PLACE);
}

/* GPU 0 has a client of MPS of the task's user, and its compute mode admits no plain process. */
static void exclusive_process_gpus_take_only_clients_of_mps(void **state)
{
    settle_in(0, 5, 0.1);
    gpus[0].id.one_process = true;
    residents[0][0].sharing = SHARING_MPS;
    task.request.sharing = SHARING_AUTO;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    task.possible_cause = true;
    assert_int_equal(check(0, false).kind, VERDICT_ONE_PROCESS);
    task.possible_cause = false;
    task.mps_failures = 2;
    assert_int_equal(check(0, false).kind, VERDICT_ONE_PROCESS);
    task.mps_failures = 0;
    task.request.sharing = SHARING_STREAMS;
    assert_int_equal(check(0, false).kind, VERDICT_ONE_PROCESS);
}

/* On two GPUs, of which mps-gpus may leave out the other one: the task would be time-sliced. */
static void a_task_that_may_lack_mps_joins_none_of_its_clients(void **state)
{
    settle_in(0, 5, 0.1);
    gpus[0].id.one_process = true;
    residents[0][0].sharing = SHARING_MPS;
    task.request.sharing = SHARING_MPS;
    task.request.gpus = 2;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    view.is_mps_on_some = true;
    assert_int_equal(check(0, false).kind, VERDICT_MPS_ON_SOME);
    assert_int_equal(check(0, false).task, 60);
    assert_int_equal(check(1, false).kind, VERDICT_FITS);
    task.request.gpus = 1;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
}

static void memory_is_asked_to_the_byte(void **state)
{
    settle_in(0, 35, 0.1);
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].mem_used_bytes.value += 1;
    assert_int_equal(check(0, false).kind, VERDICT_MEMORY_SHORT);
    task.request.need = (struct need){NEED_ESTIMATED, 3 * GIB - 1};
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    task.request.need.bytes++;
    assert_int_equal(check(0, false).kind, VERDICT_MEMORY_SHORT);
    task.request.need = (struct need){NEED_DECLARED, 3 * GIB};
    struct verdict short_by_one = check(0, false);
    assert_int_equal(short_by_one.kind, VERDICT_MEMORY_SHORT);
    assert_true(short_by_one.limit - short_by_one.have == 1);
    gpus[0].mem_used_bytes = READING_NONE;
    assert_int_equal(check(0, false).kind, VERDICT_MEMORY_UNKNOWN);
}

static void activity_is_at_most_the_limit(void **state)
{
    settle_in(0, 10, 0.8);
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].smact_level = reading_of(0.8000001);
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH);
    gpus[0].smact_level = READING_NONE;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].utilisation_level = reading_of(0.81);
    assert_int_equal(check(0, false).kind, VERDICT_UTILISATION_HIGH);
    gpus[0].utilisation_level = READING_NONE;
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_UNKNOWN);
}

/* Beside clients of MPS by the sum with its own, beside its array alone until the GPU is full. */
static void siblings_fill_the_gpu(void **state)
{
    conditions.smact_sum_max = 1.4;
    settle_in(0, 10, 0.97);
    gpus[0].residents[0].sharing = task.request.sharing = SHARING_MPS;
    task.request.expect.smact = reading_of(0.6);
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH); /* 0.95 and 0.6 */
    gpus[0].residents[0].array = 7;
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH); /* it is of none */
    task.array.id = 8;
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH);
    task.array.id = 7;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].smact_level = reading_of(0.995);
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH);
    gpus[0].smact_level = reading_of(0.97);
    task.request.expect.smact = READING_NONE;
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH);
    task.request.expect.smact = reading_of(0.6);
    conditions.smact_sum_max = 0;
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH);
    conditions.smact_sum_max = 1.4;
    gpus[0].residents[gpus[0].n_residents++] = (struct resident){
        .task = 70, .residence = RESIDENCE_SETTLED, .sharing = SHARING_MPS};
    assert_int_equal(check(0, false).kind, VERDICT_SMACT_HIGH); /* one of no array is there, too */
}

static void add_siblings(uint64_t array, int n, struct resident sibling)
{
    for (int i = 0; i < n; i++) {
        sibling.task = 60 + (uint64_t)i;
        sibling.array = array;
        sibling.sharing = SHARING_MPS;
        gpus[0].residents[gpus[0].n_residents++] = sibling;
    }
}

/* Few beside twice as many, on a GPU that is full, and whose activity alone is not known. */
static void the_last_siblings_join_a_full_gpu(void **state)
{
    conditions.smact_sum_max = 1.4;
    task.request.sharing = SHARING_MPS;
    task.array.id = 7;
    add_siblings(7, 4, (struct resident){.residence = RESIDENCE_SETTLED});
    gpus[0].smact_level = gpus[0].utilisation_level = reading_of(1);
    assert_int_equal(check_of_array(0, false, 2).kind, VERDICT_FITS);
    assert_int_equal(check_of_array(0, false, 3).kind, VERDICT_SMACT_HIGH);
    assert_int_equal(check_of_array(0, false, 0).kind, VERDICT_SMACT_HIGH); /* too many are left */
    task.array.id = 8;
    assert_int_equal(check_of_array(0, false, 2).kind, VERDICT_SMACT_HIGH);
    task.array.id = 7;
    gpus[0].residents[3].sharing = SHARING_STREAMS;
    assert_int_equal(check_of_array(0, false, 2).kind, VERDICT_SMACT_HIGH);
    gpus[0].residents[3].sharing = SHARING_MPS;
    gpus[0].mem_used_bytes = reading_of(38 * GIB);
    assert_int_equal(check_of_array(0, false, 2).kind, VERDICT_MEMORY_SHORT);
    gpus[0].mem_used_bytes = reading_of(0);
    conditions.smact_sum_max = 0;
    assert_int_equal(check_of_array(0, false, 2).kind, VERDICT_SMACT_HIGH);
}

/* What one of an array needs is known: nothing more is kept for those that have taken as much. */
static void siblings_need_what_the_task_needs(void **state)
{
    conditions.starting_max = 32;
    task.array.id = 7;
    task.request.need = (struct need){NEED_ESTIMATED, 1 * GIB};
    add_siblings(7, 4,
        (struct resident){.residence = RESIDENCE_RISING,
            .allocations_wait = true,
            .samples_risen = RISEN_SAMPLES_ENOUGH,
            .mem_used_bytes = reading_of(1 * GIB)});
    gpus[0].mem_used_bytes = reading_of(30 * GIB);
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].residents[0].mem_used_bytes = reading_of(0); /* of 10 GiB, 1 is kept and 2 a margin */
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    task.array.id = 8;
    assert_int_equal(check(0, false).kind, VERDICT_MEMORY_KEPT);
    task.array.id = 7;
    task.request.need = (struct need){.kind = NEED_UNKNOWN};
    gpus[0].residents[0].samples_risen = 0; /* three others show what it will need: too few */
    assert_int_equal(check(0, false).kind, VERDICT_MEMORY_KEPT);
}

/* Twice of what four of the array hold is kept for each, long before their memory has settled. */
static void several_siblings_show_what_all_need(void **state)
{
    conditions.starting_max = 32;
    conditions.smact_sum_max = 1.4;
    task.request.sharing = SHARING_MPS;
    task.array.id = 7;
    add_siblings(7, 4,
        (struct resident){.residence = RESIDENCE_RISING,
            .allocations_wait = true,
            .samples_risen = 1,
            .mem_used_bytes = reading_of(1 * GIB)});
    gpus[0].mem_used_bytes = reading_of(30 * GIB); /* of 10, 4 are kept and 5 for the task */
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].residents[0].mem_used_bytes = reading_of(1.5 * GIB); /* 0.5 more each */
    assert_int_equal(check(0, false).kind, VERDICT_MEMORY_KEPT);
    gpus[0].mem_used_bytes = reading_of(10 * GIB);
    conditions.starting_max = 4;
    assert_int_equal(check(0, false).kind, VERDICT_STARTING);
    assert_int_equal(check_of_array(0, false, 2).kind, VERDICT_FITS);
    assert_int_equal(check_of_array(0, false, 3).kind, VERDICT_STARTING);
}

static void idle_is_known_not_guessed(void **state)
{
    assert_int_equal(check(0, true).kind, VERDICT_FITS);
    gpus[0].external_processes = reading_of(1);
    struct verdict others = check(0, true);
    assert_int_equal(others.kind, VERDICT_NOT_IDLE);
    assert_true(others.have == 0 && others.limit == 1);
    gpus[0].external_processes = READING_NONE;
    assert_int_equal(check(0, true).kind, VERDICT_FITS);
    gpus[0].utilisation_level = reading_of(0.01);
    assert_int_equal(check(0, true).kind, VERDICT_NOT_IDLE);
    gpus[0].utilisation_level = READING_NONE;
    assert_int_equal(check(0, true).kind, VERDICT_NOT_IDLE);
    gpus[0].external_processes = reading_of(0);
    assert_int_equal(check(0, true).kind, VERDICT_FITS);
    gpus[0].mem_used_bytes = reading_of(2.0 * (double)GIB);
    assert_int_equal(check(0, true).kind, VERDICT_NOT_IDLE);
    gpus[0].mem_used_bytes = READING_NONE;
    assert_int_equal(check(0, true).kind, VERDICT_NOT_IDLE);
}

/* The 49th client of MPS would fail; a task of several processes has several. */
static void a_gpu_has_48_clients_of_mps(void **state)
{
    settle_in(0, 10, 0.1);
    task.request.sharing = SHARING_MPS;
    gpus[0].residents[0].sharing = SHARING_MPS;
    gpus[0].residents[0].uid = task.uid;
    view.has_several_clients = true;
    gpus[0].residents[0].mps_clients = 47;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    gpus[0].residents[0].mps_clients = 48;
    assert_int_equal(check(0, false).kind, VERDICT_MPS_FULL);
    assert_int_equal(check(0, false).limit, 48);
    task.request.sharing = SHARING_STREAMS;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
}

static void newcomers_wait_for_the_newest_and_for_room(void **state)
{
    settle_in(0, 10, 0.1);
    gpus[0].residents[gpus[0].n_residents++] = (struct resident){.task = 70};
    assert_int_equal(check(0, false).kind, VERDICT_HOLD_OFF);
    assert_int_equal(check(0, false).task, 70);
    conditions.tasks_per_gpu_max = 2;
    assert_int_equal(check(0, false).kind, VERDICT_FULL);
    conditions.tasks_per_gpu_max = 3;
    gpus[0].residents[1].residence = RESIDENCE_SETTLED;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
}

static void an_estimate_beyond_every_gpu_means_an_idle_one(void **state)
{
    settle_in(0, 10, 0.1);
    task.request.need = (struct need){NEED_ESTIMATED, INT64_MAX};
    assert_int_equal(check(0, false).kind, VERDICT_NOT_IDLE);
    assert_int_equal(check(1, false).kind, VERDICT_FITS);
    task.request.need.kind = NEED_DECLARED;
    assert_int_equal(check(1, false).kind, VERDICT_MEMORY_SHORT);
}

static void an_estimate_beyond_one_gpu_means_a_larger_one(void **state)
{
    gpus[0].id.mem_total_bytes = 10 * GIB;
    task.request.need = (struct need){NEED_ESTIMATED, 20 * GIB};
    assert_chooses(&policy_exclusive, 1);
    task.request.gpus = 3;
    assert_chooses(&policy_exclusive, 1);
    task.request.gpus = 4; /* there are not four larger ones: any will have to do */
    assert_chooses(&policy_exclusive, 0);
    task.request.gpus = 1;
    gpus[1].health = gpus[2].health = gpus[3].health = VIEW_LOST;
    assert_chooses(&policy_exclusive, 0);
}

static void a_small_instance_takes_an_unknown_task_when_idle(void **state)
{
    gpus[0].id.mem_total_bytes = 5 * GIB - 256 * MIB;
    gpus[0].id.is_mig_instance = true;
    assert_int_equal(check(0, false).kind, VERDICT_FITS);
    settle_in(0, 1, 0.1);
    assert_int_equal(check(0, false).kind, VERDICT_NOT_IDLE);
}

/* Of known need and SMACT, alone on its GPU so far unless it spans several. */
static void move_in(int gpu, uint64_t id, double gib, double smact, int n_gpus)
{
    gpus[gpu].residents[gpus[gpu].n_residents++] = (struct resident){
        .task = id,
        .gpus = n_gpus,
        .sharing = SHARING_STREAMS,
        .residence = RESIDENCE_SETTLED,
        .need_bytes = reading_of(gib * (double)GIB),
        .mem_used_bytes = reading_of(gib * (double)GIB),
        .expect = {.smact = reading_of(smact)},
    };
    gpus[gpu].mem_used_bytes.value += gib * (double)GIB;
    gpus[gpu].smact_level = gpus[gpu].utilisation_level = reading_of(
        fmin(1, gpus[gpu].smact_level.value + smact));
}

/* Makes the task of that id, which is a resident of both, one task of two GPUs. */
static void spans(uint64_t id, int a, int b)
{
    static int places[2];
    places[0] = a;
    places[1] = b;
    gpu_view_resident(&gpus[a], id)->gpus = gpu_view_resident(&gpus[b], id)->gpus = 2;
    gpu_view_resident(&gpus[a], id)->places = gpu_view_resident(&gpus[b], id)->places = places;
}

static void come(double gib, double smact, int n_gpus)
{
    task.request = (struct task_request){.gpus = n_gpus,
        .sharing = SHARING_STREAMS,
        .need = {NEED_DECLARED, (int64_t)(gib * (double)GIB)},
        .expect = {.smact = reading_of(smact)}};
}

static struct prediction outlook_at(int gpu)
{
    static struct predictor predictor;
    struct placement_query query = {.view = &view,
        .conditions = &conditions,
        .settings = &settings,
        .task = &task,
        .head = first,
        .head_policy = &policy_predictive,
        .now_us = NOW,
        .idle_only = false};
    predictor_init(&predictor, &query, &view);
    return predictor_join(&predictor, &gpu, 1);
}

static void what_is_predicted_is_what_sharing_does(void **state)
{
    come(5, 0.5, 1);
    assert_float_equal(outlook_at(0).gain, 1, 1e-9); /* all of an idle GPU */
    assert_float_equal(outlook_at(0).slowdown, 1, 1e-9);
    move_in(1, 61, 5, 0.2, 1);
    move_in(2, 62, 5, 0.9, 1);
    assert_true(outlook_at(1).known && outlook_at(1).gain < 1);
    assert_true(outlook_at(2).gain < outlook_at(1).gain);
    assert_true(outlook_at(2).slowdown > outlook_at(1).slowdown && outlook_at(1).slowdown >= 1);
    gpus[2].residents[0].expect.smact = READING_NONE;
    assert_false(outlook_at(2).known);
}

static enum verdict_kind verdict_beside(enum sharing there, double smact, enum sharing comes)
{
    idle_machine(NULL);
    come(5, smact, 1);
    task.request.sharing = comes;
    move_in(1, 61, 5, smact, 1);
    gpus[1].residents[0].sharing = there;
    return check(1, false).kind;
}

/* Trainings of 0.75 SMACT that are time-sliced fill the GPU; through MPS they gain. A mode that the
 * user requests is used in any case. */
static void a_task_of_auto_waits_where_sharing_gains_nothing(void **state)
{
    assert_int_equal(verdict_beside(SHARING_STREAMS, 0.75, SHARING_AUTO), VERDICT_NO_GAIN);
    assert_int_equal(verdict_beside(SHARING_MPS, 0.75, SHARING_AUTO), VERDICT_FITS);
    assert_int_equal(verdict_beside(SHARING_STREAMS, 0.75, SHARING_STREAMS), VERDICT_FITS);
    assert_int_equal(verdict_beside(SHARING_STREAMS, 0.3, SHARING_AUTO), VERDICT_FITS);
    gpus[1].residents[0].expect.smact = READING_NONE;
    task.request.expect.smact = reading_of(0.75);
    assert_int_equal(check(1, false).kind, VERDICT_FITS); /* what is not known says nothing */
}

/* docs/measured/mps.md: a decoder (0.9) held to 70 % leaves a small one (0.48) 0.65 of its speed,
 * instead of 0.33. */
static void a_client_held_to_some_sms_leaves_the_rest(void **state)
{
    come(5, 0.48, 1);
    task.request.sharing = SHARING_MPS;
    task.request.expect.gract = reading_of(0.69);
    move_in(1, 61, 5, 0.9, 1);
    gpus[1].residents[0].sharing = SHARING_MPS;
    double free_running = outlook_at(1).slowdown;
    gpus[1].residents[0].thread_percent = 70;
    assert_float_equal(1 / free_running, 0.33, 0.03);
    assert_float_equal(1 / outlook_at(1).slowdown, 0.64, 0.06);
}

/* A task that is slowed down on one of its GPUs loses less by a co-resident on the other one. */
static void a_task_of_two_gpus_is_as_fast_as_its_slower_one(void **state)
{
    come(5, 0.9, 1);
    move_in(0, 61, 5, 0.9, 1);
    double beside_one = outlook_at(0).gain;
    move_in(1, 61, 5, 0.9, 1);
    spans(61, 0, 1);
    assert_true(outlook_at(0).gain < beside_one);
    move_in(1, 63, 5, 0.9, 1);
    assert_true(outlook_at(0).gain > beside_one);
}

static void two_gpus_are_taken_where_both_together_gain_most(void **state)
{
    come(5, 0.3, 2);
    move_in(0, 61, 5, 0.3, 1);
    move_in(1, 62, 5, 0.3, 1);
    move_in(2, 61, 5, 0.3, 1);
    spans(61, 0, 2);
    gpus[3].health = VIEW_LOST;
    assert_int_equal(ask(&policy_predictive), PLACE_NOW);
    assert_int_equal(chosen[0] + chosen[1], 0 + 2); /* the pair is slowed down once, for both */
}

static void of_many_gpus_those_are_taken_where_most_is_gained(void **state)
{
    enum { MANY = 100 };
    static struct gpu_view many[MANY];
    static struct resident there[MANY];
    static struct verdict said[MANY];
    come(5, 0.3, 2);
    move_in(0, 61, 5, 0.8, 1);
    view.gpus = many;
    view.n_gpus = MANY;
    for (int i = 0; i < MANY; i++) {
        many[i] = gpus[0];
        many[i].residents = &there[i];
        there[i] = residents[0][0];
        there[i].task = 100 + (uint64_t)i;
        there[i].expect.smact = reading_of(i == 70 ? 0.2 : i == 90 ? 0.1 : 0.8);
    }
    struct placement_query query = {.view = &view,
        .conditions = &conditions,
        .settings = &settings,
        .task = &task,
        .now_us = NOW};
    assert_int_equal(policy_predictive.choose(&query, chosen, said), PLACE_NOW);
    assert_int_equal(chosen[0], 90);
    assert_int_equal(chosen[1], 70);
    many[95] = many[3] = gpus[1];
    assert_int_equal(policy_predictive.choose(&query, chosen, said), PLACE_NOW);
    assert_int_equal(chosen[0], 3);
    assert_int_equal(chosen[1], 95);
}

static int n_asked;

static enum node_admission refuse_one(void *context, const struct task *asking, int gpu)
{
    n_asked++;
    return gpu == *(const int *)context ? NODE_NOT_NOW : NODE_ADMITS;
}

/* GPU 2 gains most, the others the same. The server is asked about GPU 0 and GPU 2. */
static void servers_are_asked_only_where_more_is_gained(void **state)
{
    int refused = -1;
    const struct node_check check = {refuse_one, &refused};
    struct placement_query query = {.view = &view,
        .conditions = &conditions,
        .settings = &settings,
        .task = &task,
        .now_us = NOW,
        .node_check = &check};
    come(5, 0.3, 1);
    for (int i = 0; i < N; i++)
        move_in(i, 61 + (uint64_t)i, 5, i == 2 ? 0.1 : 0.8, 1);
    for (; refused < N; refused++) {
        n_asked = 0;
        assert_int_equal(policy_predictive.choose(&query, chosen, verdicts), PLACE_NOW);
        assert_int_equal(chosen[0], refused == 2 ? 0 : 2);
        assert_int_equal(n_asked, refused == 0 ? 3 : 2);
    }
}

/* The memory is short, whatever the resident still takes: that it rises is the reason only where
 * reasons are read. */
static void an_unexplained_refusal_reads_no_resident(void **state)
{
    const struct policy *const policies[] = {&policy_magm, &policy_predictive};
    settle_in(0, 38, 0.1);
    gpus[0].residents[0].residence = RESIDENCE_RISING;
    view.n_gpus = 1;
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        struct placement_query query = {.view = &view,
            .conditions = &conditions,
            .settings = &settings,
            .task = &task,
            .policy = policies[i],
            .now_us = NOW};
        assert_int_equal(policies[i]->choose(&query, chosen, verdicts), PLACE_WAIT);
        assert_int_equal(verdicts[0].kind, VERDICT_HOLD_OFF);
        query.is_unexplained = true;
        gpus[0].residents = NULL;
        assert_int_equal(policies[i]->choose(&query, chosen, verdicts), PLACE_WAIT);
        assert_int_equal(verdicts[0].kind, VERDICT_MEMORY_SHORT);
        gpus[0].residents = residents[0];
    }
}

/* What is open is noted: the view of the GPU is not read at all. It is where reasons are, and where
 * the GPU is idle, or has just enough. */
static void a_refusal_by_what_is_noted_reads_no_gpu(void **state)
{
    const struct policy *const policies[] = {&policy_magm, &policy_predictive};
    double open_bytes[] = {7 * (double)GIB - 1};
    view.open_bytes = open_bytes;
    view.n_gpus = 1;
    task.request.need = (struct need){NEED_DECLARED, 5 * GIB};
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        struct placement_query query = {.view = &view,
            .conditions = &conditions,
            .settings = &settings,
            .task = &task,
            .policy = policies[i],
            .now_us = NOW,
            .is_unexplained = true};
        open_bytes[0] = 7 * (double)GIB - 1;
        view.gpus = NULL;
        assert_int_equal(policies[i]->choose(&query, chosen, verdicts), PLACE_WAIT);
        assert_int_equal(verdicts[0].kind, VERDICT_MEMORY_SHORT);
        view.gpus = gpus;
        open_bytes[0] = INFINITY;
        assert_int_equal(policies[i]->choose(&query, chosen, verdicts), PLACE_NOW);
        settle_in(0, 33, 0.1);
        open_bytes[0] = gpu_view_open_bytes(&gpus[0]);
        assert_int_equal(policies[i]->choose(&query, chosen, verdicts), PLACE_NOW);
        gpus[0].n_residents = 0;
        query.is_unexplained = false;
        settle_in(0, 38, 0.1);
        open_bytes[0] = gpu_view_open_bytes(&gpus[0]);
        assert_int_equal(policies[i]->choose(&query, chosen, verdicts), PLACE_WAIT);
        assert_true(verdicts[0].have == 2 * (double)GIB);
        gpus[0].n_residents = 0;
        gpus[0].mem_used_bytes = reading_of(0);
    }
}

/* What may be on a GPU and yet leave all its memory free, among other things: a resident that holds
 * none, a process of no task, the context of a suspended task, another place of its memory. */
static void draw_gpu(int i)
{
    static struct absent_client absent[N];
    struct gpu_view *gpu = &gpus[i];
    bool is_empty = rand() % 2;
    gpu->n_residents = gpu->n_absent = 0;
    gpu->claims[CLAIM_DRAIN] = rand() % 8 == 0 ? 99 : 0;
    settle_in(i, is_empty ? 0 : 10 * (rand() % 5), is_empty ? 0 : 0.1 * (rand() % 10));
    gpu->residents[0].residence = rand() % 4 ? RESIDENCE_SETTLED : RESIDENCE_PLACED;
    gpu->residents[0].empty_since_us = is_empty ? NOW - UNUSED_US : 0;
    gpu->n_residents = rand() % 2;
    gpu->external_processes = reading_of(rand() % 6 == 0);
    bool is_tasks = task.state == TASK_SUSPENDED && rand() % 4;
    absent[i] = (struct absent_client){.task = is_tasks ? task.id : 51};
    gpu->absent = &absent[i];
    gpu->n_absent = rand() % 4 == 0;
    gpu->id.mem_total_bytes = (rand() % 8 ? 40 : 20) * GIB;
}

/* Places 0 and 1 have one memory, or each has its own. */
static void draw_domain(void)
{
    bool is_shared = rand() % 4 == 0;
    gpus[0].id.memory_domain = gpus[1].id.memory_domain = is_shared;
    gpus[0].next_in_domain = is_shared ? 1 : 0;
    gpus[1].next_in_domain = is_shared ? -1 : 0;
    if (is_shared)
        gpus[1].mem_used_bytes = gpus[0].mem_used_bytes;
}

static void draw_task(void)
{
    static int context_gpus[] = {0, 1, 2, 3};
    static struct task_run run;
    run = *task_no_run();
    run.yield.context_gpus = context_gpus;
    run.yield.n_context_gpus = N;
    run.yield.context_bytes = reading_of(0);
    task.state = rand() % 4 ? TASK_QUEUED : TASK_SUSPENDED;
    task.run = &run;
    task.request.gpus = 1 + rand() % 2;
    task.request.exclusive = rand() % 4 == 0;
    task.oom_count = rand() % 4 == 0;
    task.request.need = (struct need){NEED_DECLARED, (rand() % 30) * GIB};
}

/* With the list of what is open, policies read few GPUs before all. Their choice is the same. */
static void what_is_noted_changes_no_choice(void **state)
{
    const struct policy *const policies[] = {&policy_exclusive, &policy_magm, &policy_lug,
        &policy_mug, &policy_first_fit, &policy_best_fit, &policy_rr};
    int n_chosen = 0;
    srand(1);
    for (int run = 0; run < 4000; run++) {
        draw_task();
        for (int i = 0; i < N; i++)
            draw_gpu(i);
        draw_domain();
        for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
            n_chosen += ask(policies[i]) == PLACE_NOW;
    }
    assert_true(n_chosen > 4000);
}

static void what_was_promised_is_not_free(void **state)
{
    come(19, 0.1, 1);
    for (int i = 0; i < N; i++)
        move_in(i, 61 + (uint64_t)i, 20, 0.1, 1);
    assert_int_equal(ask(&policy_predictive), PLACE_WAIT);
    assert_int_equal(verdicts[0].kind, VERDICT_MEMORY_SHORT); /* the margin */
    come(13, 0.1, 1);
    assert_int_equal(ask(&policy_predictive), PLACE_NOW);
    gpus[0].mem_used_bytes = gpus[0].residents[0].mem_used_bytes = reading_of(0);
    gpus[0].residents[0].need_bytes = reading_of(30 * (double)GIB);
    assert_int_equal(ask(&policy_predictive), PLACE_NOW);
    assert_int_equal(chosen[0], 1);
    assert_int_equal(verdicts[0].kind, VERDICT_MEMORY_SHORT);
}

/* NVLink between 0 and 2, and 1 and 3; 0 and 1 are in one NUMA node, 2 and 3 in the other. */
static const char two_pairs[N * N + 1] = "~XAY"
                                         "X~YA"
                                         "AY~X"
                                         "YAX~";

static void ask_for_the_closest(const struct policy *policy, int wanted)
{
    view.distances = (char *)(uintptr_t)two_pairs;
    task.request.gpus = wanted;
    assert_int_equal(ask(policy), PLACE_NOW);
}

static bool has_chosen(int a, int b)
{
    return (chosen[0] == a && chosen[1] == b) || (chosen[0] == b && chosen[1] == a);
}

static void of_idle_gpus_the_closest_are_chosen(void **state)
{
    for (int i = 0; policy_name_at((size_t)i); i++) {
        const struct policy *policy = policy_find(policy_name_at((size_t)i));
        idle_machine(NULL);
        ask_for_the_closest(policy, 2);
        assert_true(has_chosen(0, 2));
        gpus[0].health = VIEW_FAULTY;
        gpus[3].mem_used_bytes = reading_of((double)MIB); /* not less good by that */
        ask_for_the_closest(policy, 2);
        assert_true(has_chosen(1, 3));
        gpus[3].health = VIEW_FAULTY;
        ask_for_the_closest(policy, 2);
        assert_true(has_chosen(1, 2));
        task.request.gpus = 3;
        assert_int_equal(ask(policy), PLACE_WAIT);
    }
}

static void a_better_gpu_counts_more_than_a_close_one(void **state)
{
    for (int i = 0; i < N; i++)
        settle_in(i, i == 3 ? 1 : 10, 0.1);
    ask_for_the_closest(&policy_magm, 2); /* 3 has most free; 1 is as good as 0 and 2, and near */
    assert_true(has_chosen(3, 1));
    gpus[0].mem_used_bytes = reading_of(2.0 * (double)GIB);
    ask_for_the_closest(&policy_magm, 2);
    assert_true(has_chosen(3, 0));
}

static void unlike_gpus_are_not_equally_good(void **state)
{
    gpus[2].id.mem_total_bytes = 16 * GIB;
    ask_for_the_closest(&policy_magm, 2); /* not 0 and 2, though nearest */
    assert_true(has_chosen(1, 3));
}

/* GPU 0 is faster, and full: of the idle ones behind it the closest are chosen. */
static void of_idle_slow_gpus_the_closest_are_chosen(void **state)
{
    move_in(0, 61, 35, 0.5, 1);
    for (int i = 0; i < N; i++) {
        gpus[i].is_listed = true;
        gpus[i].id.speed = i == 0 ? 1000 : 300;
    }
    view.speed_max = 1000;
    come(8, 0.5, 2);
    ask_for_the_closest(&policy_predictive, 2);
    assert_true(has_chosen(1, 3));
    gpus[3].id.speed = 200; /* slower: not equally good */
    ask_for_the_closest(&policy_predictive, 2);
    assert_true(has_chosen(1, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(of_idle_slow_gpus_the_closest_are_chosen, idle_machine),
        cmocka_unit_test_setup(of_idle_gpus_the_closest_are_chosen, idle_machine),
        cmocka_unit_test_setup(a_better_gpu_counts_more_than_a_close_one, idle_machine),
        cmocka_unit_test_setup(unlike_gpus_are_not_equally_good, idle_machine),
        cmocka_unit_test_setup(policies_are_found_by_name, idle_machine),
        cmocka_unit_test(a_former_name_is_found_and_not_listed),
        cmocka_unit_test_setup(the_search_ends_where_nothing_better_can_come, idle_machine),
        cmocka_unit_test_setup(each_policy_has_its_order, idle_machine),
        cmocka_unit_test_setup(round_robin_goes_round, idle_machine),
        cmocka_unit_test_setup(ties_go_to_the_lower_index, idle_machine),
        cmocka_unit_test_setup(equally_active_gpus_are_told_apart_by_memory, idle_machine),
        cmocka_unit_test_setup(several_gpus_are_the_best_ones_all_different_or_none, idle_machine),
        cmocka_unit_test_setup(a_choice_leaves_the_view_alone, idle_machine),
        cmocka_unit_test_setup(what_bars_a_gpu_comes_before_what_it_has, idle_machine),
        cmocka_unit_test_setup(exclusive_process_gpus_take_only_clients_of_mps, idle_machine),
        cmocka_unit_test_setup(a_task_that_may_lack_mps_joins_none_of_its_clients, idle_machine),
        cmocka_unit_test_setup(memory_is_asked_to_the_byte, idle_machine),
        cmocka_unit_test_setup(activity_is_at_most_the_limit, idle_machine),
        cmocka_unit_test_setup(siblings_fill_the_gpu, idle_machine),
        cmocka_unit_test_setup(the_last_siblings_join_a_full_gpu, idle_machine),
        cmocka_unit_test_setup(siblings_need_what_the_task_needs, idle_machine),
        cmocka_unit_test_setup(several_siblings_show_what_all_need, idle_machine),
        cmocka_unit_test_setup(idle_is_known_not_guessed, idle_machine),
        cmocka_unit_test_setup(a_gpu_has_48_clients_of_mps, idle_machine),
        cmocka_unit_test_setup(newcomers_wait_for_the_newest_and_for_room, idle_machine),
        cmocka_unit_test_setup(an_estimate_beyond_every_gpu_means_an_idle_one, idle_machine),
        cmocka_unit_test_setup(an_estimate_beyond_one_gpu_means_a_larger_one, idle_machine),
        cmocka_unit_test_setup(a_small_instance_takes_an_unknown_task_when_idle, idle_machine),
        cmocka_unit_test_setup(what_is_predicted_is_what_sharing_does, idle_machine),
        cmocka_unit_test_setup(a_task_of_auto_waits_where_sharing_gains_nothing, idle_machine),
        cmocka_unit_test_setup(a_client_held_to_some_sms_leaves_the_rest, idle_machine),
        cmocka_unit_test_setup(a_task_of_two_gpus_is_as_fast_as_its_slower_one, idle_machine),
        cmocka_unit_test_setup(two_gpus_are_taken_where_both_together_gain_most, idle_machine),
        cmocka_unit_test_setup(of_many_gpus_those_are_taken_where_most_is_gained, idle_machine),
        cmocka_unit_test_setup(servers_are_asked_only_where_more_is_gained, idle_machine),
        cmocka_unit_test_setup(an_unexplained_refusal_reads_no_resident, idle_machine),
        cmocka_unit_test_setup(a_refusal_by_what_is_noted_reads_no_gpu, idle_machine),
        cmocka_unit_test_setup(what_is_noted_changes_no_choice, idle_machine),
        cmocka_unit_test_setup(what_was_promised_is_not_free, idle_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
