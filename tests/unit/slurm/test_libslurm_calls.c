/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls make of slurmctld's answers, and of a request that fails. The functions of
 * libslurm that ask slurmctld are replaced by those here, which answer from `server`.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "slurm/libslurm_calls.h"
#include "spank/libslurm_versions.h"

static struct {
    bool licences_fail, partitions_fail;
    bool has_news; /* since the last load of jobs */
    uint16_t intake_state;
    slurm_job_info_t job;
    job_desc_msg_t updates[2];
    int n_updates;
    int stale_errors, n_refused; /* updates that are refused with EAGAIN, and that were */
} server;

static char version[] = "22.05.8", node_name[] = "n0", matlab[] = "matlab", intake[] = "intake",
            run[] = "run", both_nodes[] = "n0,n1", last_node[] = "n1";

static int fail_with(int error)
{
    libslurm_set_error(error);
    return SLURM_ERROR;
}

void slurm_init(const char *conf)
{
}

void slurm_fini(void)
{
}

int slurm_load_ctl_conf(time_t since, slurm_conf_t **ret_conf)
{
    static slurm_conf_t conf;
    conf.version = version;
    *ret_conf = &conf;
    return SLURM_SUCCESS;
}

void slurm_free_ctl_conf(slurm_conf_t *conf)
{
}

int slurm_load_node(time_t since, node_info_msg_t **ret_nodes, uint16_t flags)
{
    static node_info_t node = {.name = node_name};
    static node_info_msg_t nodes = {.last_update = 1, .record_count = 1, .node_array = &node};
    *ret_nodes = &nodes;
    return since ? fail_with(SLURM_NO_CHANGE_IN_DATA) : SLURM_SUCCESS;
}

void slurm_free_node_info_msg(node_info_msg_t *nodes)
{
}

int slurm_load_jobs(time_t since, job_info_msg_t **ret_jobs, uint16_t flags)
{
    static job_info_msg_t jobs = {.last_update = 1, .record_count = 1, .job_array = &server.job};
    if (since && !server.has_news)
        return fail_with(SLURM_NO_CHANGE_IN_DATA);
    server.has_news = false;
    *ret_jobs = &jobs;
    return SLURM_SUCCESS;
}

void slurm_free_job_info_msg(job_info_msg_t *jobs)
{
}

/* On the heap, so that a sanitizer sees a list that is released too early, or never. */
int slurm_load_licenses(time_t since, license_info_msg_t **ret_licences, uint16_t flags)
{
    if (server.licences_fail)
        return fail_with(SLURM_COMMUNICATIONS_CONNECTION_ERROR);
    license_info_msg_t *list = calloc(1, sizeof *list);
    assert_non_null(list);
    list->num_lic = 1;
    list->lic_array = calloc(1, sizeof *list->lic_array);
    assert_non_null(list->lic_array);
    *list->lic_array = (slurm_license_info_t){.name = matlab, .total = 2, .available = 1};
    *ret_licences = list;
    return SLURM_SUCCESS;
}

void slurm_free_license_info_msg(license_info_msg_t *licences)
{
    free(licences->lic_array);
    free(licences);
}

int slurm_load_partitions(time_t since, partition_info_msg_t **ret_partitions, uint16_t flags)
{
    static partition_info_t list[2];
    static partition_info_msg_t partitions = {.record_count = 2, .partition_array = list};
    list[0] = (partition_info_t){.name = intake, .state_up = server.intake_state};
    list[1] = (partition_info_t){.name = run, .state_up = PARTITION_UP};
    *ret_partitions = &partitions;
    return server.partitions_fail ? fail_with(SLURM_COMMUNICATIONS_CONNECTION_ERROR)
                                  : SLURM_SUCCESS;
}

void slurm_free_partition_info_msg(partition_info_msg_t *partitions)
{
}

int slurm_update_job2(job_desc_msg_t *update, job_array_resp_msg_t **ret_answers)
{
    if (server.n_refused < server.stale_errors) {
        server.n_refused++;
        return fail_with(EAGAIN);
    }
    assert_true(server.n_updates < 2);
    server.updates[server.n_updates++] = *update;
    return SLURM_SUCCESS;
}

int slurm_job_cpus_allocated_on_node_id(job_resources_t *resources, int node)
{
    return 4 * (node + 1);
}

static void begin_server(struct slurm_calls *ret_calls)
{
    server.licences_fail = server.partitions_fail = server.has_news = false;
    server.intake_state = PARTITION_DOWN;
    server.n_updates = 0;
    server.job = (slurm_job_info_t){.job_id = 7,
        .job_state = JOB_PENDING,
        .partition = intake,
        .licenses = matlab,
        .num_nodes = 1};
    assert_int_equal(libslurm_calls_init(intake, run, ret_calls), 0);
}

static void assert_licences(const struct slurm_snapshot *snapshot)
{
    assert_int_equal(snapshot->n_licences, 1);
    assert_string_equal(snapshot->licences[0].name, "matlab");
    assert_true(snapshot->licences[0].total == 2 && snapshot->licences[0].free == 1);
}

/* Otherwise the controller would take it that Slurm counts none, and pin all jobs that wait. */
static void licences_that_cannot_be_read_end_the_round(void **state)
{
    struct slurm_calls calls;
    struct slurm_snapshot snapshot, none;
    struct fault fault = {""};
    begin_server(&calls);
    server.licences_fail = true;
    assert_int_equal(calls.load(calls.context, &fault, &none), -EAGAIN);
    assert_non_null(strstr(fault.text, "licences cannot be read"));
    server.licences_fail = false;
    assert_int_equal(calls.load(calls.context, &fault, &snapshot), 0);
    assert_licences(&snapshot);
    for (int has_news = 0; has_news < 2; has_news++) {
        server.licences_fail = true;
        server.has_news = has_news;
        assert_int_equal(calls.load(calls.context, &fault, &none), -EAGAIN);
        assert_licences(&snapshot); /* the former list is still there */
        server.licences_fail = false;
        assert_int_equal(calls.load(calls.context, &fault, &snapshot), 0);
        assert_licences(&snapshot);
    }
    libslurm_calls_fini(&calls);
}

static void trouble_ends_only_by_an_answer(void **state)
{
    struct slurm_calls calls;
    struct slurm_snapshot snapshot;
    begin_server(&calls);
    server.intake_state = PARTITION_UP;
    assert_int_equal(calls.load(calls.context, NULL, &snapshot), 0);
    assert_non_null(strstr(snapshot.trouble, "intake is UP"));
    server.partitions_fail = true;
    assert_int_equal(calls.load(calls.context, NULL, &snapshot), 0);
    assert_non_null(strstr(snapshot.trouble, "intake is UP"));
    server.partitions_fail = false;
    server.intake_state = PARTITION_DOWN;
    assert_int_equal(calls.load(calls.context, NULL, &snapshot), 0);
    assert_string_equal(snapshot.trouble, "");
    libslurm_calls_fini(&calls);
}

/* One that completes may have left the first node, and then the first CPUs are not of its list. */
static void cpus_of_nodes_are_known_until_it_completes(void **state)
{
    static int resources;
    struct slurm_calls calls;
    struct slurm_snapshot snapshot;
    begin_server(&calls);
    server.job.job_state = JOB_RUNNING;
    server.job.num_nodes = 2;
    server.job.nodes = both_nodes;
    server.job.job_resrcs = (void *)&resources;
    bool is_known = libslurm_node_cpus(&server.job, 0) >= 0;
    assert_int_equal(calls.load(calls.context, NULL, &snapshot), 0);
    assert_true((snapshot.jobs[0].node_cpus != NULL) == is_known);
    assert_true(!is_known || snapshot.jobs[0].node_cpus[1] == 8);
    server.job.job_state = JOB_COMPLETE | JOB_COMPLETING;
    server.job.nodes = last_node;
    server.has_news = true;
    assert_int_equal(calls.load(calls.context, NULL, &snapshot), 0);
    assert_true(snapshot.jobs[0].is_completing);
    assert_null(snapshot.jobs[0].node_cpus);
    libslurm_calls_fini(&calls);
}

/* In the run partition a job without a GPU must not start, should nothing move it back. */
static void a_renewed_dependency_starts_nothing(void **state)
{
    struct slurm_calls calls;
    for (int is_later = 0; is_later < 2; is_later++) {
        time_t now = time(NULL), begin = is_later ? now + 5000 : 0;
        struct slurm_change change = {.kind = SLURM_DEPEND, .job = 7, .index = SLURM_NO_INDEX};
        change.moves = true;
        change.begin_s = begin;
        snprintf(change.dependency, sizeof change.dependency, "afterok:6");
        begin_server(&calls);
        assert_int_equal(calls.change(calls.context, &change, NULL), 0);
        assert_int_equal(server.n_updates, 2);
        assert_string_equal(server.updates[0].partition, run);
        assert_true(server.updates[0].begin_time >= (is_later ? begin : now + 60));
        assert_string_equal(server.updates[1].partition, intake);
        assert_null(server.updates[1].dependency);
        assert_true(server.updates[1].begin_time >= (is_later ? begin : now));
        assert_true(server.updates[1].begin_time <= (is_later ? begin : time(NULL)));
        libslurm_calls_fini(&calls);
    }
}

/* slurmctld refuses a change by the errno of another call: it is asked again, some times. */
static void a_stale_errno_is_no_answer(void **state)
{
    struct slurm_calls calls;
    const struct slurm_change change = {
        .kind = SLURM_PIN, .job = 7, .index = SLURM_NO_INDEX, .nodes = "n0", .moves = true};
    struct fault fault = {0};
    begin_server(&calls);
    server.stale_errors = 3;
    assert_int_equal(calls.change(calls.context, &change, &fault), 0);
    assert_int_equal(server.n_updates, 1);
    assert_int_equal(server.n_refused, 3);
    server.stale_errors = 1000;
    assert_int_equal(calls.change(calls.context, &change, &fault), -EAGAIN);
    assert_int_equal(server.n_updates, 1);
    assert_true(server.n_refused < 100);
    server.stale_errors = 0;
    libslurm_calls_fini(&calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(licences_that_cannot_be_read_end_the_round),
        cmocka_unit_test(trouble_ends_only_by_an_answer),
        cmocka_unit_test(cpus_of_nodes_are_known_until_it_completes),
        cmocka_unit_test(a_renewed_dependency_starts_nothing),
        cmocka_unit_test(a_stale_errno_is_no_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
