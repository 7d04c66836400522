/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller against a Slurm in memory (fake_slurm.h): which job is pinned where, in which
 * order, and that a new controller takes over without placing anything twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "fake_controller.h"
#include "slurm/controller_state.h"
#include "slurm/slurm_controller.h"

static struct fake_slurm fake;
static struct slurm_controller *controller;
static int64_t now_us;
static double smact;     /* of jobs, as their scripts say */
static int64_t memory;   /* likewise; 0: not given */
static bool wants_alone; /* likewise */

static void create_controller(void)
{
    const struct core_settings settings = fake_controller_settings();
    controller = fake_controller_create(&settings, 80 * GIB);
    assert_non_null(controller);
}

static void begin_cluster(int nodes, int gpus)
{
    fake_slurm_init(&fake, nodes, gpus);
    now_us = 1000 * SECOND_US;
    smact = 0.2;
    memory = 10 * GIB;
    wants_alone = false;
    create_controller();
}

static void end_cluster(void)
{
    slurm_controller_destroy(controller);
    fake_slurm_fini(&fake);
}

/* kill -9: a new controller knows nothing but what Slurm shows. */
static void replace_controller(void)
{
    slurm_controller_destroy(controller);
    create_controller();
}

static void answer_scripts(void)
{
    struct task_request request = {.exclusive = wants_alone};
    if (memory)
        request.need = (struct need){NEED_DECLARED, memory};
    request.expect.smact = reading_of(smact);
    fake_controller_answer(controller, &request);
}

/* A round, a second later. Returns how many changes it made. */
static int update(void)
{
    now_us += SECOND_US;
    fake.now_s++;
    int n = fake_controller_update(controller, &fake, now_us);
    assert_true(n >= 0);
    answer_scripts();
    return n;
}

/* Until nothing changes any more: for longer than it takes to know the activity of a GPU. */
static void settle(void)
{
    for (int rounds = 0, quiet = 0; quiet < 8; rounds++) {
        int n = update() + fake_slurm_start(&fake);
        quiet = n > 0 || slurm_controller_has_news(controller) ? 0 : quiet + 1;
        assert_true(rounds < 1000);
    }
}

static void examine_logs(bool is_oom)
{
    struct slurm_job_key key;
    while (slurm_controller_wanted_log(controller, &key))
        slurm_controller_log_examined(controller, &key, is_oom);
}

static void assert_on(const struct fake_job *job, const char *node, const char *gres)
{
    assert_int_equal(job->job.state, SLURM_STATE_RUNNING);
    assert_string_equal(job->nodes, node);
    assert_string_equal(job->gres, gres);
}

static void jobs_share_a_gpu_by_typed_shards(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *a = fake_slurm_submit(&fake, 5), *b = fake_slurm_submit(&fake, 5);
    b->job.uid = 1001;
    settle();
    assert_on(a, "n0", "gres:shard:i0:10");
    assert_on(b, "n0", "gres:shard:i0:10");
    assert_true(fake.held[0][0] == 20);
    assert_string_equal(a->note,
        "colloc want=1 attempt=1 restart=0 ooms=0 state=pinned node=n0 gpus=0 shards=10 "
        "smact=20");
    assert_string_equal(a->comment, "colloc: node n0, GPU 0, 10 shards; GPU memory 10.0 GiB");
    end_cluster();
}

/* Memory that is not known is not none: the second job waits. So does one of unknown activity. */
static void unknown_is_never_idle(void **state)
{
    begin_cluster(1, 1);
    memory = 0;
    struct fake_job *a = fake_slurm_submit(&fake, 5), *b = fake_slurm_submit(&fake, 5);
    settle();
    assert_int_equal(a->job.state, SLURM_STATE_RUNNING);
    assert_int_equal(b->job.state, SLURM_STATE_PENDING);
    assert_true(strncmp(b->comment, "colloc: waits: ", 15) == 0);
    fake_slurm_end(&fake, a, SLURM_STATE_COMPLETED);
    settle();
    assert_int_equal(b->job.state, SLURM_STATE_RUNNING);
    end_cluster();
}

static void order_is_slurms_priority(void **state)
{
    begin_cluster(1, 1);
    wants_alone = true;
    struct fake_job *jobs[4];
    static const uint32_t priorities[4] = {3, 9, 1, 7};
    static const int order[4] = {1, 3, 0, 2};
    for (int i = 0; i < 4; i++)
        jobs[i] = fake_slurm_submit(&fake, priorities[i]);
    for (int i = 0; i < 4; i++) {
        settle();
        assert_on(jobs[order[i]], "n0", "gres:shard:i0:80");
        fake_slurm_end(&fake, jobs[order[i]], SLURM_STATE_COMPLETED);
    }
    end_cluster();
}

static void a_changed_priority_reorders(void **state)
{
    begin_cluster(1, 1);
    wants_alone = true;
    struct fake_job *running = fake_slurm_submit(&fake, 9);
    settle();
    struct fake_job *a = fake_slurm_submit(&fake, 5), *b = fake_slurm_submit(&fake, 4);
    struct fake_job *c = fake_slurm_submit(&fake, 3);
    settle();
    c->job.priority = 8;
    settle();
    fake_slurm_end(&fake, running, SLURM_STATE_COMPLETED);
    settle();
    assert_on(c, "n0", "gres:shard:i0:80");
    assert_int_equal(a->job.state, SLURM_STATE_PENDING);
    assert_int_equal(b->job.state, SLURM_STATE_PENDING);
    end_cluster();
}

static void waits_for_dependency_begin_and_hold(void **state)
{
    begin_cluster(1, 4);
    struct fake_job *jobs[3];
    for (int i = 0; i < 3; i++)
        jobs[i] = fake_slurm_submit(&fake, 5);
    jobs[0]->job.dependency = "afterok:9(unfulfilled)";
    jobs[1]->job.begin_s = fake.now_s + 1000;
    jobs[2]->job.is_held = true;
    settle();
    for (int i = 0; i < 3; i++)
        assert_string_equal(jobs[i]->partition, "intake");
    jobs[0]->job.dependency = NULL;
    jobs[1]->job.begin_s = fake.now_s;
    jobs[2]->job.is_held = false;
    settle();
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobs[i]->job.state, SLURM_STATE_RUNNING);
    end_cluster();
}

/* A node with CPUs for one job of the two, however much GPU memory it has. */
static void cpus_and_memory_are_counted_before(void **state)
{
    begin_cluster(1, 4);
    fake.counts_memory = true;
    struct fake_job *jobs[3];
    for (int i = 0; i < 3; i++)
        jobs[i] = fake_slurm_submit(&fake, 5);
    jobs[0]->job.cpus = jobs[1]->job.cpus = 40;
    jobs[2]->job.cpus = 4;
    jobs[2]->job.memory_bytes = 63000 * MIB;
    settle();
    assert_int_equal(jobs[0]->job.state, SLURM_STATE_RUNNING);
    assert_string_equal(jobs[1]->partition, "intake");
    fake_slurm_end(&fake, jobs[0], SLURM_STATE_COMPLETED);
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_RUNNING);
    fake_slurm_end(&fake, jobs[1], SLURM_STATE_COMPLETED);
    struct fake_job *last = fake_slurm_submit(&fake, 5);
    last->job.memory_bytes = 2000 * MIB;
    settle();
    assert_int_equal(jobs[2]->job.state, SLURM_STATE_RUNNING);
    assert_string_equal(last->partition, "intake");
    end_cluster();
}

/* One that waits for a licence takes no GPU, and stops no other. */
static void licences_are_counted_before(void **state)
{
    struct slurm_licence matlab = {"matlab", 2, 1}; /* one is used by another cluster */
    begin_cluster(1, 4);
    fake.licences = &matlab;
    fake.n_licences = 1;
    wants_alone = true;
    struct fake_job *jobs[4];
    for (int i = 0; i < 4; i++)
        jobs[i] = fake_slurm_submit(&fake, 9 - (uint32_t)i);
    jobs[0]->job.licences = "matlab:3";
    jobs[1]->job.licences = jobs[2]->job.licences = "matlab";
    for (int i = 0; strcmp(jobs[1]->partition, "run") != 0; i++) {
        assert_true(i < 20);
        update();
    }
    for (int i = 0; i < 8; i++)
        update(); /* Slurm has not started it: its licence is not free */
    assert_string_equal(jobs[2]->partition, "intake");
    assert_string_equal(jobs[3]->partition, "run");
    assert_string_equal(
        jobs[0]->comment, "colloc: the cluster has 2 licences of matlab, the job asks for 3");
    assert_string_equal(jobs[2]->comment, "colloc: waits for licences: matlab");
    fake_slurm_start(&fake);
    matlab.free = 0;
    settle();
    assert_string_equal(jobs[2]->partition, "intake");
    fake_slurm_end(&fake, jobs[1], SLURM_STATE_COMPLETED);
    matlab.free = 1;
    settle();
    assert_int_equal(jobs[2]->starts, 1);
    assert_int_equal(jobs[0]->starts, 0);
    end_cluster();
}

static void advance_time(int64_t time_s)
{
    now_us += time_s * SECOND_US;
    fake.now_s += time_s;
}

/* A node of two GPUs, each for one job. The first job gets one of them; its time limit, in seconds,
 * is changed while it runs. The next, the head of the queue, wants both GPUs. */
static void begin_with_head(int64_t limit_s, int64_t changed_s)
{
    begin_cluster(1, 2);
    wants_alone = true;
    struct fake_job *running = fake_slurm_submit(&fake, 9);
    running->job.time_limit_s = limit_s;
    settle();
    assert_int_equal(running->starts, 1);
    fake_slurm_set_limit(running, changed_s);
    settle();
    struct fake_job *head = fake_slurm_submit(&fake, 8);
    snprintf(head->gres, sizeof head->gres, "gres:gpu:2");
    settle();
    assert_int_equal(head->starts, 0);
}

static struct fake_job *submit_with_limit(int64_t limit_s)
{
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    job->job.time_limit_s = limit_s;
    settle();
    return job;
}

/* Behind the head, a job is placed that ends in time for it; one without a limit never does. */
static void time_limits_allow_backfill(void **state)
{
    begin_with_head(3600, 3600);
    assert_int_equal(submit_with_limit(0)->starts, 0);
    assert_int_equal(submit_with_limit(4500)->starts, 0);
    assert_int_equal(submit_with_limit(2700)->starts, 1);
    end_cluster();
}

static void a_changed_time_limit_counts(void **state)
{
    begin_with_head(3600, 1800);
    struct fake_job *waiting = submit_with_limit(2700);
    assert_int_equal(waiting->starts, 0);
    fake_slurm_set_limit(waiting, 900);
    settle();
    assert_int_equal(waiting->starts, 1);
    end_cluster();
    begin_with_head(1800, 3600);
    assert_int_equal(submit_with_limit(2700)->starts, 1);
    end_cluster();
}

/* It is not zero: when the head starts is not known, and nothing is placed before it. */
static void an_unlimited_time_is_unknown(void **state)
{
    begin_with_head(1800, 0);
    assert_int_equal(submit_with_limit(60)->starts, 0);
    end_cluster();
}

/* A new controller knows how long a job has run already. */
static void of_a_running_job_the_rest_counts(void **state)
{
    begin_with_head(3600, 3600);
    advance_time(1800);
    replace_controller();
    settle();
    assert_int_equal(submit_with_limit(2700)->starts, 0);
    assert_int_equal(submit_with_limit(900)->starts, 1);
    end_cluster();
}

/* A job that no node can ever run does not stop the others. */
static void an_impossible_job_stops_no_other(void **state)
{
    begin_cluster(2, 4);
    struct fake_job *large = fake_slurm_submit(&fake, 9), *cpus = fake_slurm_submit(&fake, 8);
    snprintf(large->gres, sizeof large->gres, "gres:gpu:8");
    cpus->job.cpus = 1000;
    struct fake_job *wide = fake_slurm_submit(&fake, 7), *hundred = fake_slurm_submit(&fake, 7);
    wide->job.nodes = 3;
    snprintf(hundred->note, sizeof hundred->note, "colloc want=100");
    struct fake_job *small = fake_slurm_submit(&fake, 1);
    settle();
    assert_string_equal(large->partition, "intake");
    assert_string_equal(cpus->partition, "intake");
    assert_string_equal(wide->partition, "intake");
    assert_string_equal(hundred->partition, "intake");
    assert_non_null(strstr(hundred->comment, "colloc: no node has the GPUs"));
    assert_non_null(strstr(cpus->comment, "colloc: no node has the GPUs, GPU memory, CPUs"));
    assert_non_null(strstr(wide->comment, "colloc: too few nodes have the same GPUs"));
    assert_int_equal(small->job.state, SLURM_STATE_RUNNING);
    memory = 100 * GIB; /* no GPU is that large */
    struct fake_job *declared = fake_slurm_submit(&fake, 9);
    settle();
    memory = 10 * GIB;
    struct fake_job *other = fake_slurm_submit(&fake, 1);
    settle();
    assert_int_equal(declared->starts, 0);
    assert_int_equal(other->starts, 1);
    end_cluster();
}

/* More of them than the window has places. */
static void many_impossible_jobs_stop_no_other(void **state)
{
    begin_cluster(1, 1);
    for (int i = 0; i < 2100; i++)
        fake_slurm_submit(&fake, 9)->job.cpus = 1000;
    struct fake_job *small = fake_slurm_submit(&fake, 1);
    for (int i = 0; i < 20; i++) {
        update();
        fake_slurm_start(&fake);
    }
    assert_on(small, "n0", "gres:shard:i0:10");
    end_cluster();
}

static void several_gpus_are_of_one_node(void **state)
{
    begin_cluster(2, 4);
    wants_alone = true;
    struct fake_job *three = fake_slurm_submit(&fake, 9);
    snprintf(three->gres, sizeof three->gres, "gres:gpu:3");
    settle();
    struct fake_job *two = fake_slurm_submit(&fake, 8);
    snprintf(two->note, sizeof two->note, "colloc want=2");
    settle();
    assert_on(three, "n0", "gres:shard:i0:80,gres:shard:i1:80,gres:shard:i2:80");
    assert_on(two, "n1", "gres:shard:i0:80,gres:shard:i1:80");
    end_cluster();
}

/* Slurm's request for GPUs holds on each node: the indices are the same there. */
static void a_job_over_nodes_has_the_same_gpus_of_each(void **state)
{
    begin_cluster(3, 2);
    wants_alone = true;
    struct fake_job *first = fake_slurm_submit(&fake, 9), *second = fake_slurm_submit(&fake, 8);
    first->job.required_nodes = "n0";
    second->job.nodes = 3;
    settle();
    assert_on(first, "n0", "gres:shard:i0:80");
    assert_on(second, "n0,n1,n2", "gres:shard:i1:80");
    assert_int_equal(second->job.nodes, 3);
    assert_true(strncmp(second->comment, "colloc: nodes n0,n1,n2, GPU 1 of each, 80 shards",
                    strlen("colloc: nodes n0,n1,n2, GPU 1 of each, 80 shards")) == 0);
    struct fake_job *third = fake_slurm_submit(&fake, 9), *small = fake_slurm_submit(&fake, 1);
    third->job.nodes = 2;
    snprintf(third->note, sizeof third->note, "colloc total=4"); /* sbatch -N 2 --gpus=4 */
    settle();
    assert_int_equal(third->starts + small->starts, 0); /* it keeps its place in the queue */
    fake_slurm_end(&fake, second, SLURM_STATE_COMPLETED);
    settle();
    assert_on(third, "n1,n2", "gres:shard:i0:80,gres:shard:i1:80");
    assert_on(small, "n0", "gres:shard:i1:80");
    end_cluster();
}

/* `scontrol update NumNodes` while it waits; and Slurm computes a number of nodes late. */
static void a_changed_number_of_nodes_counts(void **state)
{
    begin_cluster(3, 2);
    wants_alone = true;
    struct fake_job *running = fake_slurm_submit(&fake, 9);
    snprintf(running->note, sizeof running->note, "colloc want=2");
    running->job.nodes = 3;
    settle();
    struct fake_job *more = fake_slurm_submit(&fake, 8), *fewer = fake_slurm_submit(&fake, 7);
    snprintf(more->note, sizeof more->note, "colloc want=2");
    fewer->job.nodes = 3;
    settle();
    assert_int_equal(more->starts + fewer->starts, 0);
    more->job.nodes = 2;
    fewer->job.nodes = 1;
    settle();
    fake_slurm_end(&fake, running, SLURM_STATE_COMPLETED);
    settle();
    assert_on(more, "n0,n1", "gres:shard:i0:80,gres:shard:i1:80");
    assert_on(fewer, "n2", "gres:shard:i0:80");
    assert_int_equal(more->job.nodes, 2);
    end_cluster();
}

static void jobs_over_nodes_share_gpus(void **state)
{
    begin_cluster(2, 1);
    fake.counts_memory = true;
    struct fake_job *jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = fake_slurm_submit(&fake, 9 - (uint32_t)i);
        jobs[i]->job.nodes = 2;
        jobs[i]->job.cpus = 2 * 24; /* two of them fit on a node of 64 */
    }
    settle();
    assert_on(jobs[0], "n0,n1", "gres:shard:i0:10");
    assert_on(jobs[1], "n0,n1", "gres:shard:i0:10");
    assert_int_equal(jobs[2]->starts, 0);
    assert_true(fake.held[0][0] == 20 && fake.held[1][0] == 20);
    fake_slurm_end(&fake, jobs[0], SLURM_STATE_CANCELLED);
    settle();
    assert_on(jobs[2], "n0,n1", "gres:shard:i0:10");
    end_cluster();
}

/* One that no nodes can ever run says why, and stops no other. */
static void an_impossible_job_over_nodes_says_why(void **state)
{
    static const struct {
        const char *note, *nodes, *comment;
        int n;
    } cases[] = {{"colloc total=3", NULL, "is no multiple of its number of nodes", 2},
        {"colloc want=2", "n1", "name all of them, or none", 2},
        {"colloc want=3", NULL, "too few nodes have the same GPUs", 2},
        {"", NULL, "more than 64 nodes", 65}};
    begin_cluster(3, 2);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fake_job *job = fake_slurm_submit(&fake, 9), *other = fake_slurm_submit(&fake, 1);
        snprintf(job->note, sizeof job->note, "%s", cases[i].note);
        job->job.nodes = cases[i].n;
        job->job.required_nodes = cases[i].nodes;
        settle();
        assert_string_equal(job->partition, "intake");
        assert_non_null(strstr(job->comment, cases[i].comment));
        assert_int_equal(other->job.state, SLURM_STATE_RUNNING);
        fake_slurm_end(&fake, job, SLURM_STATE_CANCELLED);
    }
    end_cluster();
}

/* A node goes down: Slurm requeues the job of both, and it is placed on the others. */
static void a_job_over_nodes_survives_one_of_them(void **state)
{
    begin_cluster(3, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    job->job.nodes = 2;
    settle();
    assert_on(job, "n0,n1", "gres:shard:i0:10");
    replace_controller();
    update();
    int n = fake.n_changes;
    settle();
    assert_int_equal(fake.n_changes, n); /* it knows the job by Slurm's record */
    fake.nodes[1].is_down = true;
    fake_slurm_requeue(&fake, job, false);
    job->job.is_completing = true; /* it has left one of them */
    job->job.nodes = 1;
    settle();
    assert_int_equal(job->starts, 1);
    job->job.is_completing = false;
    job->job.nodes = 2;
    settle();
    assert_string_equal(job->nodes, "n0,n2");
    assert_int_equal(job->starts, 2);
    fake.nodes[2].is_drained = true;
    fake_slurm_requeue(&fake, job, false);
    settle();
    assert_int_equal(job->starts, 2);
    assert_string_equal(job->comment, "colloc: its nodes are down or drained");
    end_cluster();
}

/* The agent of either node reports the crash, or the error file shows it; then it runs alone. */
static void a_job_over_nodes_recovers(void **state)
{
    for (int is_reported = 0; is_reported < 2; is_reported++) {
        begin_cluster(2, 1);
        fake.can_change_gres = false;
        struct fake_job *job = fake_slurm_submit(&fake, 5), *other = fake_slurm_submit(&fake, 4);
        job->job.nodes = 2;
        other->job.required_nodes = "n1";
        settle();
        assert_on(job, "n0,n1", "gres:shard:i0:10");
        assert_on(other, "n1", "gres:shard:i0:10");
        if (is_reported) {
            slurm_controller_crashed(controller, job->job.id, 0, now_us);
            fake_slurm_requeue(&fake, job, true);
            slurm_controller_crashed(controller, job->job.id, 0, now_us); /* the other agent */
        } else {
            fake_slurm_end(&fake, job, SLURM_STATE_FAILED);
        }
        update();
        if (!is_reported)
            examine_logs(true);
        settle();
        assert_int_equal(job->starts, 1); /* the other job is still there */
        replace_controller();
        update();
        examine_logs(true);
        settle();
        fake_slurm_end(&fake, other, SLURM_STATE_COMPLETED);
        settle();
        assert_on(job, "n0,n1", "gres:shard:i0:80");
        assert_int_equal(job->starts, 2);
        end_cluster();
    }
}

/* Between its pin and its start, an administrator moves it to other nodes. */
static void a_pin_over_nodes_changed_by_hand_is_believed(void **state)
{
    begin_cluster(3, 2);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    job->job.nodes = 2;
    for (int i = 0; strcmp(job->gres, "gres:shard:i0:10") != 0; i++) {
        assert_true(i < 20);
        update();
    }
    update();
    snprintf(job->nodes, sizeof job->nodes, "n1,n2");
    snprintf(job->gres, sizeof job->gres, "gres:shard:i1:80");
    assert_int_equal(fake_slurm_start(&fake), 1);
    wants_alone = true;
    struct fake_job *others[2];
    for (int i = 0; i < 2; i++) {
        others[i] = fake_slurm_submit(&fake, 5);
        others[i]->job.required_nodes = i ? "n2" : "n1";
    }
    settle();
    assert_on(others[0], "n1", "gres:shard:i0:80");
    assert_on(others[1], "n2", "gres:shard:i0:80");
    end_cluster();
}

/* After kill -9 at any moment: nothing is pinned twice, and what ran is known. */
static void a_new_controller_places_nothing_twice(void **state)
{
    begin_cluster(2, 2);
    struct fake_job *jobs[12];
    for (int i = 0; i < 12; i++)
        jobs[i] = fake_slurm_submit(&fake, 5);
    for (int round = 0; round < 30; round++) {
        update();
        if (round % 3 == 0)
            replace_controller();
        if (round % 2 == 0)
            fake_slurm_start(&fake);
    }
    settle();
    for (int i = 0; i < 12; i++)
        assert_int_equal(jobs[i]->starts, 1);
    int n = fake.n_changes;
    replace_controller();
    settle();
    assert_int_equal(fake.n_changes, n);
    end_cluster();
}

/* Two jobs share GPU 1 of a node; GPU 0 is taken by a third, alone. */
static void share_and_fail(struct fake_job *ret_jobs[3])
{
    wants_alone = true;
    ret_jobs[0] = fake_slurm_submit(&fake, 9);
    settle();
    wants_alone = false;
    ret_jobs[1] = fake_slurm_submit(&fake, 8);
    ret_jobs[2] = fake_slurm_submit(&fake, 7);
    settle();
    assert_on(ret_jobs[1], "n0", "gres:shard:i1:10");
    assert_on(ret_jobs[2], "n0", "gres:shard:i1:10");
    fake_slurm_end(&fake, ret_jobs[1], SLURM_STATE_FAILED);
    update();
}

static void out_of_memory_runs_again_alone(void **state)
{
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    fake.can_change_gres = false; /* 22.05: the same index again */
    share_and_fail(jobs);
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_FAILED);
    examine_logs(true);
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_PENDING); /* GPU 1 is drained for it */
    fake_slurm_end(&fake, jobs[0], SLURM_STATE_COMPLETED);     /* not that one */
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_PENDING);
    fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
    settle();
    assert_on(jobs[1], "n0", "gres:shard:i1:80");
    assert_int_equal(jobs[1]->starts, 2);
    fake_slurm_end(&fake, jobs[1], SLURM_STATE_FAILED); /* alone, it is its own fault */
    update();
    examine_logs(true);
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_FAILED);
    end_cluster();
}

/* A job that ran out of GPU memory does not run again without its licence. */
static void a_recovery_waits_for_licences(void **state)
{
    struct slurm_licence matlab = {"matlab", 1, 1};
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    fake.licences = &matlab;
    fake.n_licences = 1;
    share_and_fail(jobs);
    jobs[1]->job.licences = "matlab";
    matlab.free = 0; /* another job has got it meanwhile */
    examine_logs(true);
    fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
    for (int i = 0; i < 20; i++)
        update();
    assert_int_equal(jobs[1]->starts, 1);
    assert_true(strstr(jobs[1]->gres, ":80") == NULL);
    matlab.free = 1;
    settle();
    assert_on(jobs[1], "n0", "gres:shard:i1:80");
    end_cluster();
}

/* The licence of a pinned job counts before that of one that recovers, which Slurm listed first. */
static void a_recovery_takes_no_licence_of_a_pinned_job(void **state)
{
    struct slurm_licence matlab = {"matlab", 1, 1};
    struct fake_job *jobs[3];
    begin_cluster(2, 2);
    fake.licences = &matlab;
    fake.n_licences = 1;
    fake.nodes[1].is_drained = true;
    share_and_fail(jobs);
    fake.nodes[1].is_drained = false;
    struct fake_job *pinned = fake_slurm_submit(&fake, 5);
    pinned->job.licences = jobs[1]->job.licences = "matlab";
    for (int i = 0; strcmp(pinned->partition, "run") != 0; i++) {
        assert_true(i < 20);
        update();
    }
    examine_logs(true);
    for (int i = 0; i < 20; i++)
        update(); /* Slurm has not started the pinned one: it shows the licence as free */
    assert_null(strstr(jobs[1]->gres, ":80"));
    fake_slurm_start(&fake);
    matlab.free = 0;
    settle();
    assert_int_equal(jobs[1]->starts, 1);
    fake_slurm_end(&fake, pinned, SLURM_STATE_COMPLETED);
    matlab.free = 1;
    settle();
    assert_int_equal(jobs[1]->starts, 2);
    end_cluster();
}

static void another_failure_is_final(void **state)
{
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    share_and_fail(jobs);
    examine_logs(false);
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_FAILED);
    assert_int_equal(jobs[1]->starts, 1);
    end_cluster();
}

/* Slurm may let a job run on (OverTimeLimit), and suspend it: it alone ends jobs at their limit. */
static void a_job_over_its_limit_still_recovers(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 9), *other = fake_slurm_submit(&fake, 8);
    job->job.time_limit_s = 60;
    settle();
    assert_int_equal(other->starts, 1);
    advance_time(120);
    settle();
    fake_slurm_end(&fake, job, SLURM_STATE_FAILED);
    update();
    examine_logs(true);
    fake_slurm_end(&fake, other, SLURM_STATE_COMPLETED);
    settle();
    assert_int_equal(job->starts, 2);
    end_cluster();
}

/* The controller is killed after each step of a recovery. */
static void a_recovery_survives_a_new_controller(void **state)
{
    struct fake_job *jobs[3];
    for (int when = 0; when < 4; when++) {
        begin_cluster(1, 2);
        share_and_fail(jobs);
        if (when == 0)
            replace_controller(); /* before the log was read */
        update();
        examine_logs(true);
        if (when == 1)
            replace_controller(); /* read, and nothing done yet: it is read again */
        update();
        examine_logs(true);
        if (when == 2)
            replace_controller(); /* requeued */
        update();
        examine_logs(true);
        fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
        update();
        if (when == 3)
            replace_controller(); /* pinned again */
        settle();
        assert_on(jobs[1], "n0", "gres:shard:i1:80");
        assert_int_equal(jobs[1]->starts, 2);
        end_cluster();
    }
}

/* Slurm does not start its second run: it is held by hand, or its node has failed. It keeps no GPU
 * from others, and runs alone later. */
static void a_recovery_that_does_not_start_is_placed_anew(void **state)
{
    struct fake_job *jobs[3];
    for (int is_held = 0; is_held < 2; is_held++) {
        begin_cluster(1, 2);
        share_and_fail(jobs);
        examine_logs(true);
        fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
        for (int i = 0; strcmp(jobs[1]->gres, "gres:shard:i1:80") != 0; i++) {
            assert_true(i < 20);
            update();
        }
        jobs[1]->job.is_held = is_held;
        fake.nodes[0].is_down = !is_held;
        update();
        now_us += 121 * SECOND_US;
        fake.now_s += 121;
        update();
        assert_string_equal(jobs[1]->partition, "intake");
        fake.nodes[0].is_down = false;
        jobs[1]->job.is_held = true;
        struct fake_job *other = fake_slurm_submit(&fake, 1);
        settle();
        assert_on(other, "n0", "gres:shard:i1:10");
        jobs[1]->job.is_held = false;
        settle();
        assert_int_equal(jobs[1]->starts, 1);
        fake_slurm_end(&fake, other, SLURM_STATE_COMPLETED);
        settle();
        assert_on(jobs[1], "n0", "gres:shard:i1:80");
        end_cluster();
    }
}

/* The agent of the node requeues it while it still counts as running. */
static void an_agent_reports_the_crash(void **state)
{
    struct fake_job *jobs[3];
    for (int is_early = 0; is_early < 2; is_early++) {
        begin_cluster(1, 2);
        wants_alone = false;
        jobs[0] = fake_slurm_submit(&fake, 8);
        jobs[1] = fake_slurm_submit(&fake, 7);
        settle();
        if (is_early)
            slurm_controller_crashed(controller, jobs[0]->job.id, 0, now_us);
        fake_slurm_requeue(&fake, jobs[0], true);
        update();
        slurm_controller_crashed(controller, jobs[0]->job.id, 0, now_us); /* repeated */
        examine_logs(false);
        slurm_controller_crashed(controller, jobs[0]->job.id, 0, now_us);
        settle();
        assert_int_equal(jobs[0]->starts, 2);
        assert_non_null(strstr(jobs[0]->gres, ":80"));
        end_cluster();
    }
}

/* The controller has read the jobs just before the requeue, and hears of the crash first. */
static void a_crash_counts_once_beside_an_older_record(void **state)
{
    begin_cluster(1, 2);
    struct fake_job *job = fake_slurm_submit(&fake, 8), *other = fake_slurm_submit(&fake, 7);
    settle();
    slurm_controller_crashed(controller, job->job.id, 0, now_us);
    update(); /* it runs, as Slurm says */
    fake_slurm_requeue(&fake, job, true);
    update();
    examine_logs(true);
    fake_slurm_end(&fake, other, SLURM_STATE_COMPLETED);
    settle();
    assert_int_equal(job->starts, 2);
    assert_non_null(strstr(job->gres, ":80"));
    assert_non_null(strstr(job->note, " ooms=1 "));
    end_cluster();
}

/* Its agent's requeue is forgotten by slurmctld, which shows another end: no further run. */
static void a_job_with_another_end_is_not_requeued(void **state)
{
    static const enum slurm_state ends[] = {
        SLURM_STATE_CANCELLED, SLURM_STATE_COMPLETED, SLURM_STATE_TIMEOUT};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        begin_cluster(1, 2);
        struct fake_job *job = fake_slurm_submit(&fake, 8), *other = fake_slurm_submit(&fake, 7);
        settle();
        slurm_controller_crashed(controller, job->job.id, 0, now_us);
        fake_slurm_end(&fake, job, ends[i]);
        settle();
        assert_int_equal(job->job.state, ends[i]);
        assert_int_equal(job->starts, 1);
        fake_slurm_end(&fake, other, SLURM_STATE_COMPLETED); /* its GPU is free again */
        wants_alone = true;
        struct fake_job *alone[2] = {fake_slurm_submit(&fake, 1), fake_slurm_submit(&fake, 1)};
        settle();
        assert_int_equal(alone[0]->starts + alone[1]->starts, 2);
        end_cluster();
    }
}

static struct fake_job *submit_dependent(const char *format, uint32_t id)
{
    struct fake_job *job = fake_slurm_submit(&fake, 1);
    snprintf(job->dependency, sizeof job->dependency, format, id);
    job->job.dependency = job->dependency;
    return job;
}

/* Slurm takes a dependent of a failed job for one that can never run, and the job is run again. */
static void dependents_wait_for_the_second_run(void **state)
{
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    share_and_fail(jobs);
    uint32_t id = jobs[1]->job.id;
    struct fake_job *dependent = submit_dependent("singleton(unfulfilled),afterok:%u(failed)", id),
                    *any = submit_dependent("afterok:%u(failed)?afterok:9(failed)", id),
                    *of_another = submit_dependent("afterok:7%u(failed)", id),
                    *opposite = submit_dependent("afternotok:%u(failed)", id),
                    *open = submit_dependent("afterok:%u(failed),afterok:1(unfulfilled)", id),
                    *ended = submit_dependent("afterok:%u(failed),afterany:9999(unfulfilled)", id),
                    *forgotten = submit_dependent(
                        "afterok:%u(failed),afterok:9999(unfulfilled)", id),
                    *hopeless = submit_dependent("afterok:%u(failed),afterok:9(failed)", id),
                    *elsewhere = submit_dependent("afterok:%u_*(failed)", id);
    snprintf(elsewhere->partition, sizeof elsewhere->partition, "cpus");
    struct fake_job *task = fake_slurm_submit(&fake, 1),
                    *of_task = submit_dependent("afterok:%u(failed),afterok:13(unfulfilled)", id);
    assert_int_equal(task->job.id, 13);
    snprintf(task->partition, sizeof task->partition, "cpus");
    task->job.array_id = 4000;
    int64_t begin_s = dependent->job.begin_s = fake.now_s + 1000;
    update();
    assert_int_equal(dependent->renewals, 0); /* it has not run again yet */
    examine_logs(true);
    update();
    replace_controller(); /* requeued, and killed before the dependents were renewed */
    settle();
    assert_int_equal(dependent->renewals, 1);
    assert_string_equal(dependent->dependency, "singleton,afterok:2");
    assert_int_equal(dependent->job.begin_s, begin_s);
    assert_string_equal(any->dependency, "afterok:2"); /* Slurm may have forgotten job 9 */
    assert_string_equal(elsewhere->dependency, "afterok:2_*");
    assert_int_equal(of_another->renewals + opposite->renewals + hopeless->renewals, 0);
    assert_string_equal(open->dependency, "afterok:2,afterok:1");
    assert_string_equal(of_task->dependency, "afterok:2,afterok:13");
    assert_string_equal(ended->dependency, "afterok:2,afterany:9999");
    assert_int_equal(forgotten->renewals, 0); /* job 9999 may have failed */
    end_cluster();
}

/* slurmctld cannot renew the dependency at first: it does later, also when the second run has
 * succeeded. */
static void a_renewal_that_fails_is_made_later(void **state)
{
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    share_and_fail(jobs);
    struct fake_job *dependent = submit_dependent("afterok:%u(failed)", jobs[1]->job.id);
    examine_logs(true);
    update(); /* it is requeued */
    fake.failing = 1000;
    for (int i = 0; i < 10; i++)
        update();
    fake.failing = 0;
    for (int i = 0; i < 4; i++)
        update();
    assert_int_equal(dependent->renewals, 1);
    fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_RUNNING);
    fake_slurm_end(&fake, jobs[1], SLURM_STATE_COMPLETED);
    dependent->job.dependency = "afterok:2(failed)"; /* as if that had failed until now */
    struct fake_job *of_array = submit_dependent("afterok:%u_*(failed)", jobs[1]->job.id);
    now_us += 100 * SECOND_US;
    settle();
    assert_int_equal(dependent->renewals, 2);
    assert_string_equal(dependent->dependency, "afterok:2");
    assert_int_equal(of_array->renewals, 0); /* another task of the array may have failed */
    end_cluster();
}

/* One that Slurm goes on to show as failed is not renewed at each turn, nor after the last end. */
static void dependents_are_renewed_seldom(void **state)
{
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    share_and_fail(jobs);
    struct fake_job *dependent = submit_dependent("afterok:%u(failed)", jobs[1]->job.id);
    examine_logs(true);
    for (int i = 0; i < 100; i++) {
        update();
        dependent->job.dependency = "afterok:2(failed)";
    }
    assert_int_equal(dependent->renewals, 2);
    fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
    settle();
    fake_slurm_end(&fake, jobs[1], SLURM_STATE_FAILED);
    update();
    examine_logs(true); /* alone, it is its own fault */
    int before = dependent->renewals;
    dependent->job.dependency = "afterok:2(failed)";
    now_us += 100 * SECOND_US;
    settle();
    assert_int_equal(dependent->renewals, before);
    end_cluster();
}

static int64_t cpu_time_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

/* A user may submit as many as MaxJobCount allows. */
static void many_failed_conditions_hold_no_loop(void **state)
{
    enum { JOBS = 10000, DEPENDENTS = 1000, CONDITIONS = 150 };
    static char text[SLURM_DEPENDENCY_MAX];
    struct fake_job *jobs[3];
    size_t used = 0;
    begin_cluster(1, 2);
    share_and_fail(jobs);
    examine_logs(true);
    for (int i = 0; i < JOBS; i++)
        fake_slurm_submit(&fake, 0);
    for (int i = 0; i < CONDITIONS; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%safterok:%d_*(failed)", i ? "?" : "", 10 * JOBS + i);
    for (int i = 0; i < DEPENDENTS; i++)
        fake_slurm_submit(&fake, 0)->job.dependency = text;
    int64_t before_us = cpu_time_us();
    for (int i = 0; i < 4; i++)
        update(); /* the first one requeues the job */
    assert_true(cpu_time_us() - before_us < SECOND_US);
    end_cluster();
}

/* A requeued job is seen with its restart counted, and only later with its new time of submission:
 * that is no other job. */
static void a_requeue_is_seen_in_two_steps(void **state)
{
    struct fake_job *jobs[3];
    for (int is_early = 0; is_early < 2; is_early++) {
        begin_cluster(1, 2);
        jobs[0] = fake_slurm_submit(&fake, 8);
        jobs[1] = fake_slurm_submit(&fake, 7);
        settle();
        if (is_early)
            slurm_controller_crashed(controller, jobs[0]->job.id, 0, now_us);
        fake_slurm_requeue(&fake, jobs[0], true);
        update();
        jobs[0]->job.submit_s = fake.now_s + 1;
        update();
        examine_logs(true);
        settle();
        assert_int_equal(jobs[0]->starts, 2);
        assert_non_null(strstr(jobs[0]->gres, ":80"));
        end_cluster();
    }
}

/* Its company had ended when a new controller took over, which has not seen it. */
static void company_of_earlier_counts(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *a = fake_slurm_submit(&fake, 8), *b = fake_slurm_submit(&fake, 7);
    settle();
    fake_slurm_end(&fake, b, SLURM_STATE_COMPLETED);
    replace_controller();
    settle();
    fake_slurm_end(&fake, a, SLURM_STATE_FAILED);
    update();
    examine_logs(true);
    settle();
    assert_on(a, "n0", "gres:shard:i0:80");
    assert_int_equal(a->starts, 2);
    end_cluster();
}

/* The agent reads all output and reports late; the controller found nothing in the error file, and
 * the job is back in the intake, held. */
static void what_the_agent_held_is_released(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *a = fake_slurm_submit(&fake, 8), *b = fake_slurm_submit(&fake, 7);
    settle();
    fake_slurm_requeue(&fake, a, true);
    update();
    examine_logs(false);
    settle();
    assert_string_equal(a->partition, "intake");
    assert_true(a->job.is_held);
    slurm_controller_crashed(controller, a->job.id, 0, now_us);
    slurm_controller_crashed(controller, a->job.id, 0, now_us); /* repeated */
    fake_slurm_end(&fake, b, SLURM_STATE_COMPLETED);
    fake.now_s += 120; /* Slurm's delay of a requeue */
    settle();
    assert_on(a, "n0", "gres:shard:i0:80");
    a->job.is_held = false;
    fake_slurm_requeue(&fake, a, true); /* by hand: it stays held */
    settle();
    examine_logs(false);
    settle();
    assert_true(a->job.is_held);
    end_cluster();
}

/* slurmctld crashes and has forgotten that the controller requeued a job: it is requeued again, by
 * the same controller and by a new one. */
static void a_forgotten_requeue_is_made_again(void **state)
{
    for (int is_new = 0; is_new < 2; is_new++) {
        struct fake_job *jobs[3];
        begin_cluster(1, 2);
        share_and_fail(jobs);
        const struct fake_job saved = *jobs[1];
        examine_logs(true);
        update();
        assert_int_equal(jobs[1]->job.state, SLURM_STATE_PENDING);
        assert_int_equal(jobs[1]->job.restarts, 1);
        update();
        *jobs[1] = saved;
        if (is_new)
            replace_controller();
        update();
        examine_logs(true);
        fake_slurm_end(&fake, jobs[2], SLURM_STATE_COMPLETED);
        settle();
        fake.now_s += 200; /* Slurm lets it wait for 2 minutes */
        settle();
        assert_on(jobs[1], "n0", "gres:shard:i1:80");
        assert_int_equal(jobs[1]->starts, 2);
        end_cluster();
    }
}

/* slurmctld forgets the second start: it shows the job requeued and held, as its agent left it, and
 * that start has begun its output anew. A new controller, too, knows why the job is held. */
static void a_forgotten_second_start_is_made_again(void **state)
{
    for (int is_new = 0; is_new < 2; is_new++) {
        begin_cluster(1, 1);
        struct fake_job *a = fake_slurm_submit(&fake, 8), *b = fake_slurm_submit(&fake, 7);
        settle();
        fake_slurm_requeue(&fake, a, true);
        update();
        slurm_controller_crashed(controller, a->job.id, 0, now_us);
        examine_logs(true);
        for (int i = 0; i < 5; i++)
            update();
        const struct fake_job saved = *a; /* it waits for the other one */
        assert_true(saved.job.is_held);
        fake_slurm_end(&fake, b, SLURM_STATE_COMPLETED);
        settle();
        assert_int_equal(a->starts, 2);
        fake_slurm_end(&fake, a, SLURM_STATE_COMPLETED); /* its shards are free */
        a->job = saved.job;
        memcpy(a->note, saved.note, sizeof a->note);
        memcpy(a->gres, saved.gres, sizeof a->gres);
        if (is_new)
            replace_controller();
        for (int i = 0; i < 30; i++) {
            update();
            examine_logs(false);
            fake_slurm_start(&fake);
        }
        assert_int_equal(a->starts, 3);
        assert_on(a, "n0", "gres:shard:i0:80");
        end_cluster();
    }
}

/* It was returned to the intake, and slurmctld forgets the release only. A user's hold stays. */
static void a_forgotten_release_is_made_again(void **state)
{
    for (int is_users = 0; is_users < 2; is_users++) {
        begin_cluster(1, 1);
        struct fake_job *a = fake_slurm_submit(&fake, 8);
        a->job.is_held = true;
        a->job.is_requeue_held = !is_users;
        a->job.restarts = 1;
        snprintf(a->note, sizeof a->note, "colloc want=1 attempt=1 restart=1 ooms=1 state=waiting");
        settle();
        examine_logs(false);
        settle();
        assert_int_equal(a->starts, is_users ? 0 : 1);
        end_cluster();
    }
}

/* A restarted slurmctld knows no GPUs until the nodes have registered: a job that a new controller
 * finds requeued by its agent then goes back to the intake, and must not stay held there. */
static void a_recovery_without_nodes_is_released(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *a = fake_slurm_submit(&fake, 8), *b = fake_slurm_submit(&fake, 7);
    settle();
    fake_slurm_requeue(&fake, a, true);
    fake_slurm_end(&fake, b, SLURM_STATE_COMPLETED);
    const char *gres = fake.nodes[0].gres;
    fake.nodes[0].gres = NULL;
    replace_controller();
    update();
    examine_logs(true);
    for (int i = 0; i < 5; i++)
        update();
    fake.nodes[0].gres = gres;
    fake.now_s += 120; /* Slurm's delay of a requeue */
    settle();
    assert_on(a, "n0", "gres:shard:i0:80");
    assert_int_equal(a->starts, 2);
    end_cluster();
}

/* The same of a job that the former controller has requeued: its note is of the run before that. */
static void a_requeue_without_nodes_is_released(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *a = fake_slurm_submit(&fake, 8), *b = fake_slurm_submit(&fake, 7);
    settle();
    fake_slurm_end(&fake, a, SLURM_STATE_FAILED);
    update();
    examine_logs(true);
    update();
    assert_true(a->job.is_requeue_held);
    assert_non_null(strstr(a->note, "restart=0 ooms=1 state=recovering"));
    fake_slurm_end(&fake, b, SLURM_STATE_COMPLETED);
    const char *gres = fake.nodes[0].gres;
    fake.nodes[0].gres = NULL;
    replace_controller();
    for (int i = 0; i < 5; i++)
        update();
    assert_false(a->job.is_held);
    fake.nodes[0].gres = gres;
    fake.now_s += 120; /* Slurm's delay of a requeue */
    settle();
    assert_on(a, "n0", "gres:shard:i0:80");
    assert_int_equal(a->starts, 2);
    end_cluster();
}

/* slurmctld crashes before it has saved the start, or the end: the job is as it was before. */
static void a_forgotten_start_is_made_again(void **state)
{
    for (int when = 0; when < 3; when++) {
        begin_cluster(1, 1);
        struct fake_job *a = fake_slurm_submit(&fake, 8), *b = fake_slurm_submit(&fake, 7);
        settle();
        fake_slurm_end(&fake, a, SLURM_STATE_FAILED); /* its shards are free */
        if (when > 0)
            update(); /* it is examined, */
        if (when > 1)
            examine_logs(true); /* and to be requeued */
        a->job.state = SLURM_STATE_PENDING;
        snprintf(a->partition, sizeof a->partition, "intake");
        *a->note = *a->comment = *a->gres = '\0';
        a->job.required_nodes = NULL;
        update();
        fake_slurm_start(&fake);
        assert_int_equal(a->starts, 1);                  /* slurmd may still have it */
        fake_slurm_end(&fake, b, SLURM_STATE_COMPLETED); /* that it ran out of memory is known */
        for (int i = 0; i < 20; i++) {
            update();
            examine_logs(true);
            fake_slurm_start(&fake);
        }
        assert_int_equal(a->starts, 2);
        assert_int_equal(b->starts, 1);
        assert_int_equal(a->job.state, SLURM_STATE_RUNNING);
        end_cluster();
    }
}

/* scontrol requeue, or a failed node: the old pin must not start it beside others. */
static void a_requeued_job_goes_back_to_the_intake(void **state)
{
    begin_cluster(1, 1);
    wants_alone = true;
    struct fake_job *a = fake_slurm_submit(&fake, 5), *b = fake_slurm_submit(&fake, 9);
    settle();
    assert_on(b, "n0", "gres:shard:i0:80");
    fake_slurm_requeue(&fake, b, false);
    update();
    assert_string_equal(b->partition, "intake");
    settle();
    assert_int_equal(b->starts + a->starts, 2); /* by priority and begin time, one of the two */
    end_cluster();
}

/* Slurm shows a pin as if the user had asked for the node. */
static void a_former_pin_is_no_rule(void **state)
{
    begin_cluster(2, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    settle();
    assert_string_equal(job->nodes, "n0");
    replace_controller();
    update();
    fake.nodes[0].is_down = true;
    fake_slurm_requeue(&fake, job, false);
    settle();
    assert_on(job, "n1", "gres:shard:i0:10");
    fake.nodes[0].is_down = false;
    struct fake_job *bound = fake_slurm_submit(&fake, 5);
    bound->job.required_nodes = "n0"; /* the user's own */
    settle();
    assert_int_equal(bound->starts, 1);
    replace_controller();
    update();
    fake.nodes[0].is_down = true;
    fake_slurm_requeue(&fake, bound, false);
    settle();
    assert_int_equal(bound->starts, 1);
    assert_string_equal(bound->comment, "colloc: its nodes are down or drained");
    end_cluster();
}

/* An administrator, or the user with scontrol, changes -w, -x or -C of a job that waits. */
static void rules_changed_by_hand_count(void **state)
{
    begin_cluster(3, 1);
    wants_alone = true;
    fake.nodes[1].features = "big";
    struct fake_job *running[3], *waiting[2];
    for (int i = 0; i < 3; i++)
        running[i] = fake_slurm_submit(&fake, 9);
    settle();
    waiting[0] = fake_slurm_submit(&fake, 5);
    waiting[1] = fake_slurm_submit(&fake, 4);
    waiting[1]->job.features = "big";
    settle();
    waiting[0]->job.required_nodes = "n2";
    waiting[1]->job.features = NULL;
    waiting[1]->job.excluded_nodes = "n0,n1";
    settle();
    fake_slurm_end(&fake, running[0], SLURM_STATE_COMPLETED);
    fake_slurm_end(&fake, running[1], SLURM_STATE_COMPLETED);
    settle();
    assert_int_equal(waiting[0]->starts + waiting[1]->starts, 0); /* both are to run on n2 now */
    waiting[1]->job.excluded_nodes = NULL;
    settle();
    assert_int_equal(waiting[0]->starts, 0);
    waiting[0]->job.required_nodes = "n1";
    settle();
    assert_string_equal(waiting[0]->nodes, "n1");
    assert_string_equal(waiting[1]->nodes, "n0");
    end_cluster();
}

/* Ids of tasks are the core's own: a comment has those of Slurm's jobs, also in a list. */
static void a_comment_names_slurms_jobs(void **state)
{
    begin_cluster(1, 2);
    wants_alone = true;
    fake_slurm_submit(&fake, 9);
    fake_slurm_submit(&fake, 8);
    settle();
    struct fake_job *third = fake_slurm_submit(&fake, 7);
    char expected[80];
    settle();
    snprintf(expected, sizeof expected,
        "colloc: waits: GPUs n0:0, n0:1: jobs %" PRIu32 ", %" PRIu32 " have them to themselves",
        third->job.id - 2, third->job.id - 1);
    assert_string_equal(third->comment, expected);
    end_cluster();
}

/* A comment is of now: a hindrance that has gone leaves it, and so does the head of the queue. */
static void a_comment_of_earlier_is_replaced(void **state)
{
    begin_cluster(1, 1);
    wants_alone = true;
    fake_slurm_submit(&fake, 9);
    settle();
    struct fake_job *head = fake_slurm_submit(&fake, 8), *large = fake_slurm_submit(&fake, 5);
    struct fake_job *plain = fake_slurm_submit(&fake, 4), *own = fake_slurm_submit(&fake, 3);
    snprintf(own->comment, sizeof own->comment, "the user's own");
    large->job.cpus = 1000;
    settle();
    assert_non_null(strstr(large->comment, "colloc: no node has"));
    assert_true(strncmp(head->comment, "colloc: waits: ", 15) == 0);
    large->job.cpus = 1;
    head->job.priority = 1;
    now_us += 20 * SECOND_US;
    settle();
    assert_true(strncmp(large->comment, "colloc: waits: ", 15) == 0); /* the head now */
    assert_string_equal(head->comment, "colloc: waits for those before it");
    assert_string_equal(plain->comment, "");
    assert_string_equal(own->comment, "the user's own");
    int n = fake.n_changes;
    now_us += 20 * SECOND_US;
    settle();
    assert_int_equal(fake.n_changes, n);
    end_cluster();
}

/* `scontrol hold`, then `requeue`: the job comes back held, and has no GPU any more. */
static void a_held_job_shows_no_former_gpu(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    settle();
    assert_non_null(strstr(job->comment, "colloc: node n0, GPU 0"));
    fake_slurm_requeue(&fake, job, true);
    job->job.is_requeue_held = false;
    update();
    examine_logs(false);
    for (int i = 0; i < 3; i++) {
        now_us += 20 * SECOND_US;
        settle();
    }
    assert_string_equal(job->comment, "colloc: held: it is not placed until `scontrol release`");
    job->job.is_held = false;
    for (int i = 0; i < 2; i++) {
        now_us += 20 * SECOND_US;
        settle();
    }
    assert_non_null(strstr(job->comment, "colloc: node n0, GPU 0"));
    end_cluster();
}

static void a_used_id_is_another_job(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    settle();
    assert_int_equal(job->starts, 1);
    fake_slurm_end(&fake, job, SLURM_STATE_COMPLETED); /* a crash of slurmctld forgets it */
    job->job.state = SLURM_STATE_PENDING;
    job->job.submit_s = fake.now_s + 5;
    *job->note = *job->comment = *job->gres = '\0';
    snprintf(job->partition, sizeof job->partition, "intake");
    settle();
    assert_int_equal(job->starts, 2);
    assert_non_null(strstr(job->note, "attempt=1 "));
    end_cluster();
}

/* The script of the former job is still being read when the id is another user's. */
static void an_answer_for_a_used_id_is_of_the_former_job(void **state)
{
    struct slurm_job_key former, key;
    struct slurm_change *changes;
    size_t n;
    const struct task_request request = {.need = {NEED_DECLARED, 70 * GIB}};
    begin_cluster(1, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    struct slurm_snapshot snapshot = fake_slurm_list(&fake);
    assert_int_equal(
        slurm_controller_update(controller, &snapshot, now_us, fake.now_s, &changes, &n), 0);
    assert_true(slurm_controller_wanted_script(controller, &former));
    job->job.submit_s += 5;
    job->job.uid = 1001;
    snapshot = fake_slurm_list(&fake);
    assert_int_equal(
        slurm_controller_update(controller, &snapshot, now_us, fake.now_s, &changes, &n), 0);
    assert_true(slurm_controller_wanted_script(controller, &key));
    assert_int_equal(key.uid, 1001);
    slurm_controller_want_again(controller, &former);
    slurm_controller_set_request(controller, &former, &request, "refused");
    assert_false(slurm_controller_wanted_script(controller, &former));
    slurm_controller_set_request(controller, &key, &request, NULL);
    settle();
    assert_on(job, "n0", "gres:shard:i0:70");
    end_cluster();
}

/* Nor counts what the error file of a job says for the one that has its id now. */
static void an_examined_log_counts_for_its_own_run(void **state)
{
    struct slurm_job_key former, key;
    struct fake_job *jobs[3];
    begin_cluster(1, 2);
    share_and_fail(jobs);
    assert_true(slurm_controller_wanted_log(controller, &former));
    jobs[1]->job.submit_s += 5; /* the id is used again, for a job that has failed, too */
    jobs[1]->job.uid = 1001;
    update();
    assert_true(slurm_controller_wanted_log(controller, &key));
    assert_int_equal(key.uid, 1001);
    slurm_controller_log_examined(controller, &former, true);
    slurm_controller_log_examined(controller, &key, false);
    settle();
    assert_int_equal(jobs[1]->job.state, SLURM_STATE_FAILED);
    end_cluster();
}

static void a_job_moved_by_hand_is_believed(void **state)
{
    begin_cluster(2, 2);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    snprintf(job->partition, sizeof job->partition, "run"); /* an administrator pins it */
    snprintf(job->nodes, sizeof job->nodes, "n1");
    snprintf(job->gres, sizeof job->gres, "gres:shard:i1:80");
    snprintf(job->note, sizeof job->note, "colloc state=pinned node=n0 gpus=0 shards=1");
    job->job.required_nodes = job->nodes;
    wants_alone = true;
    struct fake_job *other = fake_slurm_submit(&fake, 5);
    snprintf(other->note, sizeof other->note, "colloc want=2");
    settle();
    assert_on(job, "n1", "gres:shard:i1:80");
    assert_on(other, "n0", "gres:shard:i0:80,gres:shard:i1:80");
    end_cluster();
}

/* Between its pin and its start. */
static void a_pin_changed_by_hand_is_believed(void **state)
{
    begin_cluster(2, 2);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    for (int i = 0; strcmp(job->gres, "gres:shard:i0:10") != 0; i++) {
        assert_true(i < 20);
        update();
    }
    update();
    assert_string_equal(job->nodes, "n0");
    snprintf(job->nodes, sizeof job->nodes, "n1");
    snprintf(job->gres, sizeof job->gres, "gres:shard:i1:10");
    assert_int_equal(fake_slurm_start(&fake), 1);
    wants_alone = true;
    struct fake_job *other = fake_slurm_submit(&fake, 5);
    snprintf(other->note, sizeof other->note, "colloc want=2");
    settle();
    assert_on(job, "n1", "gres:shard:i1:10");
    assert_on(other, "n0", "gres:shard:i0:80,gres:shard:i1:80");
    end_cluster();
}

static void arrays_are_pinned_task_by_task(void **state)
{
    begin_cluster(1, 4);
    wants_alone = true;
    struct fake_job *array = fake_slurm_submit(&fake, 5);
    array->job.array_indices = "0-7%2";
    settle();
    int running = 0;
    for (size_t i = 0; i < fake.n_jobs; i++)
        running += fake.jobs[i]->job.state == SLURM_STATE_RUNNING;
    assert_int_equal(running, 2); /* of its limit, on four GPUs */
    assert_int_equal(fake.n_jobs, 3);
    assert_int_equal(fake.jobs[1]->job.array_index, 0);
    assert_int_equal(fake.jobs[2]->job.array_index, 1);
    assert_string_not_equal(fake.jobs[1]->gres, fake.jobs[2]->gres);
    end_cluster();
}

static void failed_changes_are_asked_for_again(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    fake.failing = 3;
    for (int i = 0; i < 20; i++) {
        update();
        fake_slurm_start(&fake);
    }
    assert_int_equal(job->starts, 1);
    end_cluster();
}

/* slurmctld did not answer when the script was asked for: it is asked for again. */
static void an_unread_script_is_wanted_again(void **state)
{
    struct slurm_job_key key, again;
    struct slurm_change *changes;
    size_t n;
    begin_cluster(1, 1);
    fake_slurm_submit(&fake, 5);
    struct slurm_snapshot snapshot = fake_slurm_list(&fake);
    assert_int_equal(
        slurm_controller_update(controller, &snapshot, now_us, fake.now_s, &changes, &n), 0);
    assert_true(slurm_controller_wanted_script(controller, &key));
    assert_false(slurm_controller_wanted_script(controller, &again));
    slurm_controller_want_again(controller, &key);
    assert_true(slurm_controller_wanted_script(controller, &again));
    assert_int_equal(again.base, key.base);
    struct fake_job *jobs[3];
    end_cluster();
    begin_cluster(1, 2);
    share_and_fail(jobs);
    assert_true(slurm_controller_wanted_log(controller, &key));
    assert_false(slurm_controller_wanted_log(controller, &again));
    slurm_controller_want_again(controller, &key);
    assert_true(slurm_controller_wanted_log(controller, &again));
    end_cluster();
}

/* A pin that Slurm refuses for good frees the GPU for others, and the job says why it waits. */
static void a_refused_job_keeps_no_gpu(void **state)
{
    begin_cluster(1, 1);
    wants_alone = true;
    struct fake_job *job = fake_slurm_submit(&fake, 9);
    update();
    fake.failing = 3;
    fake.failure = -EINVAL;
    for (int i = 0; i < 10; i++)
        update();
    assert_int_equal(fake.failing, 0);
    struct fake_job *other = fake_slurm_submit(&fake, 5);
    for (int i = 0; i < 12; i++) {
        update();
        fake_slurm_start(&fake);
    }
    assert_int_equal(other->starts, 1);
    assert_int_equal(job->starts, 0);
    assert_string_equal(job->comment, "colloc: failed: submit it anew");
    end_cluster();
}

/* Jobs of other partitions: their CPUs and GPUs are not free. */
static void other_jobs_hold_what_they_have(void **state)
{
    begin_cluster(1, 2);
    struct fake_job *other = fake_slurm_submit(&fake, 5);
    snprintf(other->partition, sizeof other->partition, "plain");
    snprintf(other->gres, sizeof other->gres, "gres:gpu:i0:1");
    snprintf(other->nodes, sizeof other->nodes, "n0");
    other->job.node_list = other->nodes;
    other->job.state = SLURM_STATE_RUNNING;
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    settle();
    assert_on(job, "n0", "gres:shard:i1:10");
    end_cluster();
}

/* Slurm starts a job with two whole GPUs although one has shards in use: what runs stays, nothing
 * else starts there, and a lack of memory counts as one beside others. */
static void a_whole_gpu_beside_shards(void **state)
{
    for (int named = 0; named < 2; named++) {
        begin_cluster(1, 2);
        struct fake_job *job = fake_slurm_submit(&fake, 5);
        settle();
        assert_on(job, "n0", "gres:shard:i0:10");
        struct cluster_node *node = controller->nodes.nodes[0];
        assert_false(node->is_overlap_logged);
        struct fake_job *whole = fake_slurm_submit(&fake, 5), *later = NULL;
        snprintf(whole->partition, sizeof whole->partition, "plain");
        snprintf(
            whole->gres, sizeof whole->gres, named ? "gres:gpu:i0:1,gres:gpu:i1:1" : "gres:gpu:2");
        snprintf(whole->nodes, sizeof whole->nodes, "n0");
        whole->job.node_list = whole->nodes;
        whole->job.state = SLURM_STATE_RUNNING;
        later = fake_slurm_submit(&fake, 5);
        settle();
        assert_true(node->is_overlap_logged);
        assert_on(job, "n0", "gres:shard:i0:10");
        assert_int_equal(later->starts, 0);
        const struct slurm_gpu_process process = {
            .job = whole->job.id, .mem_used_bytes = reading_of(60.0 * (double)GIB)};
        const struct slurm_gpu_reading reading = {.mem_used_bytes = reading_of(70.0 * (double)GIB),
            .smact = reading_of(0.9),
            .processes_known = true,
            .processes = &process,
            .n_processes = 1};
        assert_int_equal(slurm_controller_report(controller, "n0", &reading, 1, now_us), 0);
        const struct gpu_view *gpu = &core_view(slurm_controller_core(controller))->gpus[0];
        assert_true(reading_or(gpu->external_processes, -1) == 1);
        update();
        fake_slurm_end(&fake, job, SLURM_STATE_FAILED);
        for (int i = 0; i < 3; i++) {
            update();
            examine_logs(true);
        }
        settle();
        assert_int_equal(job->starts, 1);
        assert_int_equal(job->job.state, SLURM_STATE_PENDING); /* to be run again */
        fake_slurm_end(&fake, whole, SLURM_STATE_COMPLETED);
        whole->is_gone = true;
        settle();
        assert_int_equal(job->starts, 2);
        assert_int_equal(later->starts, 1);
        assert_false(node->is_overlap_logged);
        end_cluster();
    }
}

static void cancelled_and_lost_jobs_free_their_gpus(void **state)
{
    begin_cluster(1, 1);
    wants_alone = true;
    struct fake_job *jobs[4];
    for (int i = 0; i < 4; i++)
        jobs[i] = fake_slurm_submit(&fake, 9 - (uint32_t)i);
    settle();
    fake_slurm_end(&fake, jobs[0], SLURM_STATE_CANCELLED);
    fake_slurm_end(&fake, jobs[1], SLURM_STATE_CANCELLED); /* while it waited */
    settle();
    assert_int_equal(jobs[2]->starts, 1);
    fake_slurm_end(&fake, jobs[2], SLURM_STATE_TIMEOUT);
    jobs[2]->is_gone = true;
    settle();
    assert_int_equal(jobs[3]->starts, 1);
    assert_int_equal(jobs[1]->starts, 0);
    end_cluster();
}

static void a_drained_or_lost_node_gets_no_job(void **state)
{
    begin_cluster(2, 1);
    fake.nodes[0].is_drained = true;
    struct fake_job *a = fake_slurm_submit(&fake, 5);
    settle();
    assert_string_equal(a->nodes, "n1");
    fake.nodes[1].is_down = true;
    struct fake_job *b = fake_slurm_submit(&fake, 5);
    settle();
    assert_int_equal(b->starts, 0);
    fake.nodes[0].is_drained = false;
    settle();
    assert_string_equal(b->nodes, "n0");
    end_cluster();
}

/* One that asks for such a node waits without stopping those behind it, which magm would. */
static void a_job_of_a_lost_node_stops_no_other(void **state)
{
    begin_cluster(2, 1);
    wants_alone = true;
    fake.nodes[1].is_drained = true;
    struct fake_job *first = fake_slurm_submit(&fake, 9), *second = fake_slurm_submit(&fake, 5);
    first->job.required_nodes = "n1";
    settle();
    assert_string_equal(first->comment, "colloc: its nodes are down or drained");
    assert_on(second, "n0", "gres:shard:i0:80");
    fake.nodes[1].is_drained = false;
    settle();
    assert_on(first, "n1", "gres:shard:i0:80");
    struct fake_job *third = fake_slurm_submit(&fake, 9), *fourth = fake_slurm_submit(&fake, 5);
    third->job.required_nodes = "n1";
    settle();
    assert_true(strncmp(third->comment, "colloc: waits: ", 15) == 0); /* it is in the window */
    fake.nodes[1].is_down = true;
    fake_slurm_end(&fake, second, SLURM_STATE_COMPLETED);
    settle();
    assert_on(fourth, "n0", "gres:shard:i0:80");
    assert_int_equal(third->starts, 0);
    fake.nodes[1].is_down = false;
    fake_slurm_end(&fake, first, SLURM_STATE_COMPLETED);
    settle();
    assert_on(third, "n1", "gres:shard:i0:80");
    end_cluster();
}

/* What an agent measures counts before what is expected. */
static void a_report_replaces_expectations(void **state)
{
    begin_cluster(1, 1);
    struct fake_job *a = fake_slurm_submit(&fake, 5), *b = NULL;
    settle();
    for (int i = 0; i < 12; i++) {
        const struct slurm_gpu_process process = {
            .job = a->job.id, .mem_used_bytes = reading_of(75.0 * (double)GIB)};
        const struct slurm_gpu_reading reading = {.mem_total_bytes = reading_of(80.0 * (double)GIB),
            .mem_used_bytes = reading_of(75.0 * (double)GIB),
            .smact = reading_of(0.1),
            .processes_known = true,
            .processes = &process,
            .n_processes = 1};
        assert_int_equal(slurm_controller_report(controller, "n0", &reading, 1, now_us), 0);
        if (!b)
            b = fake_slurm_submit(&fake, 5);
        update();
        fake_slurm_start(&fake);
    }
    assert_int_equal(b->starts, 0); /* 5 GiB are free, it requires 10 */
    assert_int_equal(slurm_controller_report(controller, "n9", NULL, 0, now_us), -ENOENT);
    end_cluster();
}

/* The first report of an agent says how much memory the GPUs of its node have. That is news of
 * these GPUs alone: jobs go on to be placed on all that were sampled. */
static void a_new_agent_stops_no_placement(void **state)
{
    struct slurm_gpu_reading reading = {.mem_total_bytes = reading_of(80.0 * (double)GIB),
        .mem_used_bytes = reading_of(0),
        .smact = reading_of(0),
        .processes_known = true};
    begin_cluster(2, 1);
    update();
    assert_int_equal(slurm_controller_report(controller, "n0", &reading, 1, now_us), 0);
    update();
    struct fake_job *job = fake_slurm_submit(&fake, 5);
    job->job.required_nodes = "n0";
    update(); /* its script is read */
    reading.mem_total_bytes = reading_of(141.0 * (double)GIB);
    assert_int_equal(slurm_controller_report(controller, "n1", &reading, 1, now_us), 0);
    update();
    const struct gpu_view *gpus = core_view(slurm_controller_core(controller))->gpus;
    assert_int_equal(gpus[0].health, VIEW_OK);
    assert_int_equal(gpus[1].health, VIEW_OK);
    fake_slurm_start(&fake);
    assert_int_equal(job->starts, 1);
    end_cluster();
}

/* Without cgroups a process says itself which job it is of: another user's is not charged for it,
 * and the GPU has a program that colloc did not place. */
static void a_claim_of_another_user_is_not_believed(void **state)
{
    for (uid_t uid = 1000; uid < 1002; uid++) {
        begin_cluster(1, 1);
        struct fake_job *job = fake_slurm_submit(&fake, 5); /* of user 1000 */
        settle();
        const struct slurm_gpu_process process = {.job = job->job.id,
            .is_claimed = true,
            .uid = uid,
            .mem_used_bytes = reading_of(75.0 * (double)GIB)};
        const struct slurm_gpu_reading reading = {.mem_used_bytes = reading_of(75.0 * (double)GIB),
            .smact = reading_of(0.1),
            .processes_known = true,
            .processes = &process,
            .n_processes = 1};
        assert_int_equal(slurm_controller_report(controller, "n0", &reading, 1, now_us), 0);
        const struct gpu_view *gpu = &core_view(slurm_controller_core(controller))->gpus[0];
        assert_int_equal(gpu->n_residents, 1);
        bool is_charged = reading_or(gpu->residents[0].mem_used_bytes, 0) > 70.0 * (double)GIB;
        assert_int_equal(is_charged, uid == 1000);
        assert_true(reading_or(gpu->external_processes, -1) == (uid == 1000 ? 0 : 1));
        end_cluster();
    }
}

/* Where the job of one process is not known, others may still be seen to be external. */
static void external_processes_that_are_seen_count(void **state)
{
    for (uint32_t seen = 0; seen < 3; seen++) {
        begin_cluster(1, 1);
        update();
        const struct slurm_gpu_reading reading = {.mem_used_bytes = reading_of(5.0 * (double)GIB),
            .smact = reading_of(0.1),
            .external_at_least = seen};
        assert_int_equal(slurm_controller_report(controller, "n0", &reading, 1, now_us), 0);
        struct reading external =
            core_view(slurm_controller_core(controller))->gpus[0].external_processes;
        assert_int_equal(external.valid, seen > 0);
        assert_true(reading_or(external, 0) == seen);
        end_cluster();
    }
}

/* 3,000 random acts of users, administrators and crashes: Slurm's counts hold, the core's
 * invariants too (they abort), and all jobs end. */
static void random_acts_lose_nothing(void **state)
{
    uint32_t random = 7;
    begin_cluster(3, 2);
    for (int i = 0; i < 3000; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t act = random >> 8;
        struct fake_job *job = fake.n_jobs ? fake.jobs[act / 64 % fake.n_jobs] : NULL;
        bool is_running = job && job->job.state == SLURM_STATE_RUNNING;
        smact = (double)(act % 5) / 10;
        memory = (int64_t)(act % 4) * 20 * GIB;
        if (act % 64 < 12 && fake.n_jobs < 400)
            fake_slurm_submit(&fake, act / 64 % 100)->job.nodes = act % 64 < 3 ? 2 : 1;
        else if (act % 64 < 24 && is_running)
            fake_slurm_end(&fake, job, act & 4096 ? SLURM_STATE_FAILED : SLURM_STATE_COMPLETED);
        else if (act % 64 < 26 && job && !slurm_state_is_end(job->job.state))
            fake_slurm_end(&fake, job, SLURM_STATE_CANCELLED);
        else if (act % 64 < 28 && is_running)
            fake_slurm_requeue(&fake, job, act & 8192);
        else if (act % 64 < 30 && job && job->job.state == SLURM_STATE_PENDING)
            job->job.is_held = !job->job.is_held;
        else if (act % 64 < 31)
            replace_controller();
        else if (act % 64 < 33)
            fake.nodes[act / 64 % 3].is_down = !fake.nodes[act / 64 % 3].is_down;
        else if (act % 64 < 34)
            fake.failing = 2;
        else if (act % 64 < 38)
            examine_logs(act & 256);
        else
            update();
        fake_slurm_start(&fake);
    }
    for (size_t i = 0; i < fake.n_nodes; i++)
        fake.nodes[i].is_down = false;
    memory = 10 * GIB;
    for (int i = 0, left = 1; left > 0; i++) {
        left = 0;
        assert_true(i < 3000);
        update();
        examine_logs(false);
        fake_slurm_start(&fake);
        for (size_t k = 0; k < fake.n_jobs; k++) {
            struct fake_job *job = fake.jobs[k];
            job->job.is_held &= strcmp(job->partition, "run") == 0;
            if (job->job.is_held && job->job.state == SLURM_STATE_PENDING)
                job->job.is_held = i % 50 > 0;
            if (job->job.state == SLURM_STATE_RUNNING)
                fake_slurm_end(&fake, job, SLURM_STATE_COMPLETED);
            left += !slurm_state_is_end(job->job.state);
        }
    }
    end_cluster();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_share_a_gpu_by_typed_shards),
        cmocka_unit_test(unknown_is_never_idle), cmocka_unit_test(order_is_slurms_priority),
        cmocka_unit_test(a_changed_priority_reorders),
        cmocka_unit_test(waits_for_dependency_begin_and_hold),
        cmocka_unit_test(cpus_and_memory_are_counted_before),
        cmocka_unit_test(licences_are_counted_before), cmocka_unit_test(time_limits_allow_backfill),
        cmocka_unit_test(a_changed_time_limit_counts),
        cmocka_unit_test(an_unlimited_time_is_unknown),
        cmocka_unit_test(of_a_running_job_the_rest_counts),
        cmocka_unit_test(a_recovery_waits_for_licences),
        cmocka_unit_test(a_recovery_takes_no_licence_of_a_pinned_job),
        cmocka_unit_test(an_impossible_job_stops_no_other),
        cmocka_unit_test(many_impossible_jobs_stop_no_other),
        cmocka_unit_test(several_gpus_are_of_one_node),
        cmocka_unit_test(a_job_over_nodes_has_the_same_gpus_of_each),
        cmocka_unit_test(a_changed_number_of_nodes_counts),
        cmocka_unit_test(jobs_over_nodes_share_gpus),
        cmocka_unit_test(an_impossible_job_over_nodes_says_why),
        cmocka_unit_test(a_job_over_nodes_survives_one_of_them),
        cmocka_unit_test(a_job_over_nodes_recovers),
        cmocka_unit_test(a_pin_over_nodes_changed_by_hand_is_believed),
        cmocka_unit_test(a_new_controller_places_nothing_twice),
        cmocka_unit_test(out_of_memory_runs_again_alone),
        cmocka_unit_test(another_failure_is_final),
        cmocka_unit_test(a_job_over_its_limit_still_recovers),
        cmocka_unit_test(a_recovery_survives_a_new_controller),
        cmocka_unit_test(a_recovery_that_does_not_start_is_placed_anew),
        cmocka_unit_test(an_agent_reports_the_crash),
        cmocka_unit_test(a_requeue_is_seen_in_two_steps),
        cmocka_unit_test(a_crash_counts_once_beside_an_older_record),
        cmocka_unit_test(a_job_with_another_end_is_not_requeued),
        cmocka_unit_test(dependents_wait_for_the_second_run),
        cmocka_unit_test(a_renewal_that_fails_is_made_later),
        cmocka_unit_test(dependents_are_renewed_seldom),
        cmocka_unit_test(many_failed_conditions_hold_no_loop),
        cmocka_unit_test(company_of_earlier_counts),
        cmocka_unit_test(what_the_agent_held_is_released),
        cmocka_unit_test(a_forgotten_requeue_is_made_again),
        cmocka_unit_test(a_forgotten_second_start_is_made_again),
        cmocka_unit_test(a_forgotten_release_is_made_again),
        cmocka_unit_test(a_recovery_without_nodes_is_released),
        cmocka_unit_test(a_requeue_without_nodes_is_released),
        cmocka_unit_test(a_forgotten_start_is_made_again),
        cmocka_unit_test(a_requeued_job_goes_back_to_the_intake),
        cmocka_unit_test(a_former_pin_is_no_rule), cmocka_unit_test(rules_changed_by_hand_count),
        cmocka_unit_test(a_comment_names_slurms_jobs),
        cmocka_unit_test(a_comment_of_earlier_is_replaced),
        cmocka_unit_test(a_held_job_shows_no_former_gpu),
        cmocka_unit_test(a_used_id_is_another_job),
        cmocka_unit_test(an_answer_for_a_used_id_is_of_the_former_job),
        cmocka_unit_test(an_examined_log_counts_for_its_own_run),
        cmocka_unit_test(a_job_moved_by_hand_is_believed),
        cmocka_unit_test(a_pin_changed_by_hand_is_believed),
        cmocka_unit_test(arrays_are_pinned_task_by_task),
        cmocka_unit_test(failed_changes_are_asked_for_again),
        cmocka_unit_test(an_unread_script_is_wanted_again),
        cmocka_unit_test(a_refused_job_keeps_no_gpu),
        cmocka_unit_test(other_jobs_hold_what_they_have),
        cmocka_unit_test(a_whole_gpu_beside_shards),
        cmocka_unit_test(cancelled_and_lost_jobs_free_their_gpus),
        cmocka_unit_test(a_drained_or_lost_node_gets_no_job),
        cmocka_unit_test(a_job_of_a_lost_node_stops_no_other),
        cmocka_unit_test(a_report_replaces_expectations),
        cmocka_unit_test(a_new_agent_stops_no_placement),
        cmocka_unit_test(a_claim_of_another_user_is_not_believed),
        cmocka_unit_test(external_processes_that_are_seen_count),
        cmocka_unit_test(random_acts_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
