/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that give way, against a Slurm in memory (fake_slurm.h) and a pretend agent of its node: it
 * holds each job's memory, takes jobs off their GPUs as it is ordered, and brings them back when
 * the order ends or was not repeated for LEASE_S.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/ask/giving_way.h"
#include "fake_controller.h"
#include "slurm/controller_state.h"
#include "slurm/slurm_controller.h"

enum { JOBS_MAX = 16, LEASE_S = 30, GPU_GIB = 80, AWAY_S = SUSPENSION_RANKS_AWAY_US / SECOND_US };

/* A job as its node sees it. */
struct held_job {
    struct fake_job *job;
    int gib;       /* that it holds, on the GPU or in host memory */
    int wants_gib; /* an allocation waits for this; 0: none */
    int steps;     /* until it ends; it makes one in each second in which it is here */
    int64_t idle_s;
    bool is_out, is_called, has_failed, may_later, has_ranks;
};

static struct fake_slurm fake;
static struct slurm_controller *controller;
static struct core_settings settings;
static int64_t now_us;

static struct {
    struct held_job jobs[JOBS_MAX];
    size_t n;
    bool suspends, is_cut_off; /* cut off: reports and orders are lost */
    uint32_t wanted[JOBS_MAX];
    size_t n_wanted;
    int lease_s; /* left */
} agent;

static void create_controller(void)
{
    controller = fake_controller_create(&settings, GPU_GIB * GIB);
    assert_non_null(controller);
}

static void begin_cluster(int nodes)
{
    fake_slurm_init(&fake, nodes, 1);
    now_us = 1000 * SECOND_US;
    memset(&agent, 0, sizeof agent);
    agent.suspends = true;
    settings = fake_controller_settings();
    settings.can_suspend = true;
    create_controller();
}

static void end_cluster(void)
{
    slurm_controller_destroy(controller);
    fake_slurm_fini(&fake);
}

static void replace_controller(void)
{
    slurm_controller_destroy(controller);
    create_controller();
}

static bool runs(const struct held_job *held)
{
    return held->job->job.state == SLURM_STATE_RUNNING;
}

static int free_gib(void)
{
    int left = GPU_GIB;
    for (size_t i = 0; i < agent.n; i++)
        left -= runs(&agent.jobs[i]) && !agent.jobs[i].is_out ? agent.jobs[i].gib : 0;
    return left;
}

static bool is_ordered_out(const struct held_job *held)
{
    for (size_t i = 0; i < agent.n_wanted && agent.lease_s > 0; i++)
        if (agent.wanted[i] == held->job->job.id)
            return true;
    return false;
}

/* ---- a second of the agent ---- */

static void carry_out(struct held_job *held)
{
    bool is_ordered = is_ordered_out(held);
    if (!is_ordered)
        held->has_failed = false;
    if (!held->is_out && is_ordered && !held->has_failed) {
        held->has_failed = held->may_later;
        held->is_out = !held->has_failed;
    } else if (held->is_out && !is_ordered && free_gib() >= held->gib) {
        held->is_out = false;
    }
}

static void compute(struct held_job *held)
{
    if (held->is_out)
        return;
    if (held->wants_gib && free_gib() >= held->wants_gib) {
        held->gib += held->wants_gib;
        held->wants_gib = 0;
    }
    if (!held->wants_gib && --held->steps == 0)
        fake_slurm_end(&fake, held->job, SLURM_STATE_COMPLETED);
}

static void report_gpus(void)
{
    struct slurm_gpu_process processes[JOBS_MAX];
    struct slurm_gpu_reading reading = {.mem_total_bytes = reading_of((double)(GPU_GIB * GIB)),
        .mem_used_bytes = reading_of((double)((GPU_GIB - free_gib()) * GIB)),
        .smact = reading_of(0.2),
        .processes_known = true,
        .processes = processes};
    for (size_t i = 0; i < agent.n; i++)
        if (runs(&agent.jobs[i]) && !agent.jobs[i].is_out && agent.jobs[i].gib)
            processes[reading.n_processes++] = (struct slurm_gpu_process){
                .job = agent.jobs[i].job->job.id,
                .mem_used_bytes = reading_of((double)(agent.jobs[i].gib * GIB))};
    slurm_controller_report(
        controller, "n0", &reading, 1, now_us); /* a new controller has no node yet */
}

static void report_jobs(void)
{
    struct slurm_job_report reports[JOBS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < agent.n; i++) {
        const struct held_job *held = &agent.jobs[i];
        if (runs(held))
            reports[n++] = (struct slurm_job_report){.job = held->job->job.id,
                .where = held->is_out ? SLURM_JOB_OUT : SLURM_JOB_HERE,
                .waits_bytes = held->is_out ? 0 : held->wants_gib * GIB,
                .idle_us = held->is_out ? 0 : held->idle_s * SECOND_US,
                .held_bytes = held->is_out ? held->gib * GIB : 0,
                .kept_bytes = held->is_out,
                .is_called = held->is_called,
                .has_ranks = held->is_out && held->has_ranks,
                .has_failed = held->has_failed,
                .may_later = held->may_later,
                .why = "for now"};
    }
    slurm_controller_report_jobs(controller, "n0", agent.suspends, reports, n, now_us);
}

static void update(void)
{
    const struct task_request request = {
        .need = {NEED_DECLARED, 30 * GIB}, .expect.smact = reading_of(0.2)};
    assert_true(fake_controller_update(controller, &fake, now_us) >= 0);
    fake_controller_answer(controller, &request);
}

static void pass_second(void)
{
    now_us += SECOND_US;
    fake.now_s++;
    for (size_t i = 0; i < agent.n; i++)
        if (runs(&agent.jobs[i])) {
            carry_out(&agent.jobs[i]);
            compute(&agent.jobs[i]);
        }
    if (!agent.is_cut_off) {
        report_gpus();
        report_jobs();
    }
    update();
    fake_slurm_start(&fake);
    agent.lease_s -= agent.lease_s > 0;
    if (agent.is_cut_off || !agent.suspends)
        return;
    agent.n_wanted = slurm_controller_list_away(controller, "n0", agent.wanted, JOBS_MAX);
    agent.lease_s = LEASE_S;
}

static void pass_seconds(int n)
{
    while (n-- > 0)
        pass_second();
}

static struct held_job *submit(int gib, int steps)
{
    assert_true(agent.n < JOBS_MAX);
    struct held_job *held = &agent.jobs[agent.n++];
    *held = (struct held_job){
        .job = fake_slurm_submit(&fake, 1000 - (uint32_t)agent.n), .gib = gib, .steps = steps};
    return held;
}

/* Two jobs of 30 and 40 GiB on one GPU, of which the first wants 20 more. */
static struct held_job *two_jobs(struct held_job **ret_first)
{
    *ret_first = submit(30, 100);
    struct held_job *second = submit(40, 100);
    pass_seconds(10);
    assert_true(runs(*ret_first) && runs(second));
    (*ret_first)->wants_gib = 20;
    return second;
}

/* A job that computes is ordered out once the allocation has waited for as long as that costs; two
 * seconds later it is out, and the other has its memory. */
static void pass_until_out(void)
{
    const struct core *core = slurm_controller_core(controller);
    int cost_s = (int)(core_yield_cost_us(core, core_task(core, 2)) / SECOND_US);
    pass_seconds(cost_s - 1);
    assert_int_equal(agent.n_wanted, 0);
    for (int i = 0; i < 10 && agent.n_wanted == 0; i++)
        pass_second();
    assert_int_equal(agent.n_wanted, 1);
    pass_seconds(2);
}

static void expect_ends(void)
{
    for (int i = 0; i < 1000; i++)
        pass_second();
    for (size_t i = 0; i < agent.n; i++) {
        assert_int_equal(agent.jobs[i].job->job.state, SLURM_STATE_COMPLETED);
        assert_int_equal(agent.jobs[i].job->starts, 1);
        assert_false(agent.jobs[i].is_out);
    }
}

/* ---- tests ---- */

static void a_job_gives_way_to_an_allocation(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    second = two_jobs(&first);
    pass_until_out();
    assert_int_equal(first->gib, 50);
    assert_true(second->is_out);
    assert_int_equal(second->job->job.state, SLURM_STATE_RUNNING);
    expect_ends();
    end_cluster();
}

static void suspend_no_leaves_all_where_they_are(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    settings.can_suspend = false;
    replace_controller();
    second = two_jobs(&first);
    pass_seconds(20);
    assert_false(first->is_out || second->is_out);
    end_cluster();
}

static void an_agent_that_cannot_is_not_waited_for(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    agent.suspends = false;
    second = two_jobs(&first);
    pass_seconds(20);
    assert_false(first->is_out || second->is_out);
    assert_int_equal(core_task(slurm_controller_core(controller), 2)->state, TASK_RUNNING);
    end_cluster();
}

static void what_fails_for_now_is_tried_again(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    second = two_jobs(&first);
    second->may_later = first->may_later = true;
    pass_until_out();
    assert_false(second->is_out);
    assert_string_equal(controller_why_stays(controller,
                            controller_find_job(controller, second->job->job.id, SLURM_NO_INDEX)),
        "for now");
    second->may_later = first->may_later = false;
    pass_seconds(30);
    assert_int_equal(first->gib, 50);
    expect_ends();
    end_cluster();
}

/* Its pin and its shards stay: a new job does not get them. */
static void a_job_that_is_out_keeps_its_shards(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    second = two_jobs(&first);
    pass_until_out();
    assert_true(second->is_out);
    assert_true(controller_shards_left(controller, 0, NULL) == 20);
    assert_true(fake.held[0][0] == 60);
    end_cluster();
}

static void a_new_controller_takes_over(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    second = two_jobs(&first);
    pass_until_out();
    assert_true(second->is_out);
    replace_controller();
    pass_seconds(10);
    assert_true(second->is_out); /* there is no room for it yet */
    assert_int_equal(agent.n_wanted, 1);
    expect_ends();
    end_cluster();
}

/* The lease ends, and the job comes back when there is room, without a controller. */
static void without_a_controller_it_comes_back(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    second = two_jobs(&first);
    pass_until_out();
    assert_true(second->is_out);
    agent.is_cut_off = true;
    first->gib = 10;
    pass_seconds(LEASE_S + 2);
    assert_false(second->is_out);
    agent.is_cut_off = false;
    pass_seconds(5);
    assert_int_equal(core_task(slurm_controller_core(controller), 2)->state, TASK_RUNNING);
    expect_ends();
    end_cluster();
}

static void an_unused_job_leaves_until_it_calls_cuda(void **state)
{
    begin_cluster(1);
    settings.suspend_unused_us = 60 * SECOND_US;
    replace_controller();
    struct held_job *notebook = submit(30, 100);
    pass_seconds(10);
    notebook->idle_s = 61;
    pass_seconds(4);
    assert_true(notebook->is_out);
    notebook->idle_s = 0;
    pass_seconds(60);
    assert_true(notebook->is_out);
    notebook->is_called = true;
    pass_seconds(4);
    assert_false(notebook->is_out);
    notebook->is_called = false;
    expect_ends();
    end_cluster();
}

/* Their own watchdog would end them. So they come back in time: without a call of CUDA, and where
 * another job has their memory that leaves for them. */
static void ranks_come_back_in_time(void **state)
{
    begin_cluster(1);
    settings.suspend_unused_us = 60 * SECOND_US;
    replace_controller();
    struct held_job *unused = submit(30, 100);
    unused->has_ranks = true;
    pass_seconds(10);
    unused->idle_s = 61;
    pass_seconds(4);
    assert_true(unused->is_out);
    unused->idle_s = 0;
    pass_seconds(AWAY_S - 10);
    assert_true(unused->is_out);
    pass_seconds(20);
    assert_false(unused->is_out);
    expect_ends();
    end_cluster();
}

static void ranks_that_gave_way_come_back_in_time(void **state)
{
    struct held_job *first, *second;
    begin_cluster(1);
    first = submit(30, 2000);
    second = submit(40, 100);
    second->has_ranks = true;
    pass_seconds(10);
    first->wants_gib = 20;
    pass_until_out();
    assert_true(second->is_out);
    replace_controller(); /* the next one hears it from the agent */
    pass_seconds(AWAY_S - 20);
    assert_true(second->is_out);
    pass_seconds(40);
    assert_false(second->is_out);
    assert_true(first->is_out);
    first->steps = 10;
    expect_ends();
    end_cluster();
}

/* By `--nice`, and only where shards are left for the job that waits. */
static void a_job_of_a_lower_priority_gives_way(void **state)
{
    begin_cluster(1);
    settings.preempt = true;
    replace_controller();
    struct held_job *low = submit(60, 200);
    low->job->job.nice = 100;
    pass_seconds(70);
    assert_true(runs(low));
    struct held_job *high = submit(30, 20);
    high->job->job.nice = -1;
    pass_seconds(12);
    assert_true(low->is_out);
    assert_true(runs(high));
    expect_ends();
    end_cluster();
}

static void a_job_over_several_nodes_is_left_alone(void **state)
{
    begin_cluster(2);
    struct held_job *both = submit(40, 100), *other;
    both->job->job.nodes = 2;
    pass_seconds(10);
    assert_true(runs(both));
    other = submit(30, 100);
    other->job->job.required_nodes = "n0";
    pass_seconds(10);
    assert_true(runs(other));
    const struct tracked_job *job = controller_find_job(
        controller, both->job->job.id, SLURM_NO_INDEX);
    assert_string_equal(controller_why_stays(controller, job), "never: it runs on several nodes");
    other->wants_gib = 20;
    pass_seconds(20);
    assert_false(both->is_out);
    end_cluster();
}

/* Crashes of the controller, of the agent's link and of the agent, at random instants: no job is
 * lost, runs twice, or stays out. */
static void crashes_leave_none_out(void **state)
{
    const char *count = getenv("COLLOC_CRASHES");
    int crashes = 0, wanted = count ? atoi(count) : 500;
    for (unsigned seed = 1; crashes < wanted; seed++) {
        srand(seed);
        begin_cluster(1);
        for (int i = 0; i < 8; i++)
            submit(10 + rand() % 25, 20 + rand() % 40);
        for (int second = 0; second < 400; second++) {
            struct held_job *held = &agent.jobs[rand() % 8];
            if (runs(held) && rand() % 10 == 0 && held->gib < 50)
                held->wants_gib = 1 + rand() % 25;
            switch (rand() % 40) {
            case 0:
                replace_controller();
                crashes++;
                break;
            case 1: /* of its agent: the next one knows no order */
                agent.lease_s = 0;
                crashes++;
                break;
            case 2:
                agent.is_cut_off = !agent.is_cut_off;
                crashes++;
                break;
            case 3: /* of slurmctld: what was reported and decided meanwhile is lost */
                replace_controller();
                agent.lease_s = 0;
                crashes++;
                break;
            default:
                break;
            }
            pass_second();
        }
        agent.is_cut_off = false;
        for (size_t i = 0; i < agent.n; i++)
            agent.jobs[i].wants_gib = 0;
        expect_ends();
        end_cluster();
    }
    print_message("%d crashes\n", crashes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_job_gives_way_to_an_allocation),
        cmocka_unit_test(suspend_no_leaves_all_where_they_are),
        cmocka_unit_test(an_agent_that_cannot_is_not_waited_for),
        cmocka_unit_test(what_fails_for_now_is_tried_again),
        cmocka_unit_test(a_job_that_is_out_keeps_its_shards),
        cmocka_unit_test(a_new_controller_takes_over),
        cmocka_unit_test(without_a_controller_it_comes_back),
        cmocka_unit_test(an_unused_job_leaves_until_it_calls_cuda),
        cmocka_unit_test(ranks_come_back_in_time),
        cmocka_unit_test(ranks_that_gave_way_come_back_in_time),
        cmocka_unit_test(a_job_of_a_lower_priority_gives_way),
        cmocka_unit_test(a_job_over_several_nodes_is_left_alone),
        cmocka_unit_test(crashes_leave_none_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
