/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of unknown memory anywhere on full GPUs: drawn servers, drawn tasks (full_gpus.h). Whatever
 * is drawn, every task ends, no GPU stands still, nothing is lost or run after it has ended, and
 * together the tasks take little longer than by MAGM with exact memory.
 *
 * COLLOC_CROWDS=N draws N servers, COLLOC_CROWD_SEED=N begins with that seed, and
 * COLLOC_CROWD_LOG=FILE appends to the file what happens on each.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "full_gpus.h"
#include "policy/policies.h"

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

static bool chance(int per_cent)
{
    return draw(100) < (uint64_t)per_cent;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void draw_task(struct crowd_task *task, int64_t gpu_bytes, int64_t submit_us)
{
    int64_t most = gpu_bytes * 8 / 10, bytes = gpu_bytes >> draw(5);
    bytes += (int64_t)draw((uint64_t)bytes);
    bytes = bytes < most ? bytes : most;
    *task = (struct crowd_task){.submit_us = submit_us,
        .work_us = SECOND_US + (int64_t)draw(chance(30) ? 40 : 8) * SECOND_US,
        .n_pieces = 1 + (int)draw(CROWD_PIECES_MAX)};
    int64_t at_us = 0;
    for (int i = 0; i < task->n_pieces; i++) {
        bool is_last = i == task->n_pieces - 1;
        int64_t piece = is_last ? bytes : (int64_t)draw((uint64_t)bytes) + 1;
        task->pieces[i].bytes = piece + 2 * MIB;
        task->pieces[i].at_us = at_us;
        bytes -= is_last ? 0 : piece;
        at_us += (int64_t)draw((uint64_t)(task->work_us / (chance(80) ? 20 : 3)));
    }
}

static struct crowd draw_crowd(uint64_t seed, bool has_faults)
{
    random_state = seed * 0x9E3779B97F4A7C15u + 7;
    draw(2);
    struct crowd crowd = {.seed = seed,
        .n_gpus = chance(50)   ? 1
                  : chance(50) ? 2
                               : 4,
        .gpu_bytes = chance(70) ? 139 * GIB : 40 * GIB,
        .settings = core_settings_default(),
        .sharing = chance(70) ? SHARING_STREAMS : SHARING_MPS};
    struct core_settings *settings = &crowd.settings;
    crowd.n_tasks = 6 + (int)draw(15);
    crowd.hidden_bytes = chance(50) ? (int64_t)draw(600) * MIB : 0;
    settings->policy = &policy_rr;
    settings->can_suspend = settings->preload = true;
    settings->carries_mps = chance(80);
    settings->conditions.smact_max = 1;
    settings->conditions.starting_max = 32;
    settings->conditions.min_free_bytes = chance(60) ? 0 : 5 * GIB;
    settings->conditions.margin_bytes = chance(60) ? 0 : 2 * GIB;
    settings->window_us = SECOND_US;
    settings->settle_us = 1500 * MS_US;
    settings->settle_max_us = 4 * SECOND_US;
    settings->copies_max_bytes = chance(30) ? (int64_t)draw(200) * GIB : 0;
    if (has_faults)
        crowd.faults = (struct crowd_faults){.refuses = chance(50)   ? 0
                                                        : chance(50) ? 200
                                                                     : 1000,
            .clings = chance(50) ? 0 : 1000,
            .loses = chance(70) ? 0 : 20,
            .hangs = chance(70) ? 0 : 30,
            .external = chance(50) ? 0 : 3000,
            .kills = chance(70) ? 0 : 2000,
            .restarts = chance(50) ? 0 : 4000};
    int64_t submit_us = 0;
    for (int i = 0; i < crowd.n_tasks; i++) {
        draw_task(&crowd.tasks[i], crowd.gpu_bytes, submit_us);
        submit_us += (int64_t)draw(chance(70) ? 1 : 8) * SECOND_US;
    }
    return crowd;
}

/* The same tasks, their memory declared, by MAGM, on a server without faults. */
static struct crowd with_exact_memory(const struct crowd *of)
{
    struct crowd crowd = *of;
    crowd.settings.policy = &policy_magm;
    crowd.settings.conditions.margin_bytes = 2 * GIB;
    crowd.is_declared = true;
    crowd.faults = (struct crowd_faults){0};
    return crowd;
}

static void log_result(
    FILE *log, const struct crowd *crowd, const struct crowd_result *result, double of_exact)
{
    if (!log)
        return;
    fprintf(log,
        "== seed %" PRIu64
        ": %d GPUs, %d tasks, %s, %s, min-free %d: %.1f s, of MAGM's %.2f; %d waits, %d "
        "suspensions, %d moves, %d OOM, %d run again, %d lost, %.1f s twice\n",
        crowd->seed, crowd->n_gpus, crowd->n_tasks,
        crowd->sharing == SHARING_MPS ? "MPS" : "streams",
        crowd->settings.carries_mps ? "carrier" : "driver",
        crowd->settings.conditions.min_free_bytes > 0, (double)result->total_us / 1e6, of_exact,
        result->n_waits, result->n_suspensions, result->n_moves, result->n_out_of_memory,
        result->n_run_again, result->n_lost, (double)result->computed_twice_us / 1e6);
    fflush(log);
}

/* Returns the mean of the totals of servers with the carrier, as a part of those of MAGM. */
static double run_servers(bool has_faults)
{
    uint64_t n = number_of("COLLOC_CROWDS", 400), first = number_of("COLLOC_CROWD_SEED", 1);
    const char *path = getenv("COLLOC_CROWD_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    double sum = 0;
    int n_carried = 0;
    struct crowd_result all = {0};
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct crowd crowd = draw_crowd(seed, has_faults), exact = with_exact_memory(&crowd);
        struct crowd_result result = crowd_run(&crowd, log), other = crowd_run(&exact, NULL);
        double of_exact = (double)result.total_us / (double)other.total_us;
        log_result(log, &crowd, &result, of_exact);
        sum += crowd.settings.carries_mps ? of_exact : 0;
        n_carried += crowd.settings.carries_mps;
        all.n_waits += result.n_waits;
        all.n_suspensions += result.n_suspensions;
        all.n_moves += result.n_moves;
        all.n_restarts += result.n_restarts;
        all.n_killed += result.n_killed;
        all.n_lost += result.n_lost;
    }
    if (log)
        fclose(log);
    print_message("%d waits, %d suspensions, %d moves, %d restarts, %d kills, %d lost; with the "
                  "carrier %.3f of the total of MAGM with exact memory\n",
        all.n_waits, all.n_suspensions, all.n_moves, all.n_restarts, all.n_killed, all.n_lost,
        n_carried ? sum / n_carried : 0);
    assert_true(all.n_waits > 0 && all.n_suspensions > 0);
    assert_true(!has_faults || (all.n_moves > 0 && all.n_restarts > 0 && all.n_killed > 0));
    return n_carried ? sum / n_carried : 0;
}

static void servers_without_faults_get_on(void **state)
{
    assert_true(run_servers(false) < 1.10);
}

static void servers_with_faults_get_on(void **state)
{
    assert_true(run_servers(true) < 1.15);
}

/* It waits for its context: to run it again would free nothing, and cost its start. */
static void what_holds_nothing_is_not_run_again(void **state)
{
    struct crowd crowd = draw_crowd(1, false);
    crowd.n_gpus = 1;
    crowd.n_tasks = 2;
    crowd.gpu_bytes = 40 * GIB;
    crowd.hidden_bytes = 0;
    crowd.sharing = SHARING_STREAMS;
    crowd.settings.can_suspend = crowd.settings.carries_mps = false;
    crowd.settings.conditions.min_free_bytes = crowd.settings.conditions.margin_bytes = 0;
    crowd.tasks[0] = (struct crowd_task){
        .submit_us = 0, .work_us = 20 * SECOND_US, .n_pieces = 1, .pieces = {{39 * GIB, 0}}};
    crowd.tasks[1] = (struct crowd_task){
        .submit_us = 5 * SECOND_US, .work_us = SECOND_US, .n_pieces = 1, .pieces = {{GIB, 0}}};
    struct crowd_result result = crowd_run(&crowd, NULL);
    assert_int_equal(result.n_waits, 1);
    assert_int_equal(result.n_run_again, 0);
    assert_int_equal(result.n_out_of_memory, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_nothing_is_not_run_again),
        cmocka_unit_test(servers_without_faults_get_on),
        cmocka_unit_test(servers_with_faults_get_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
