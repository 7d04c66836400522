/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and GPUs as colloc's commands see them: order, pages, reasons, rights, unknown values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "fake_controller.h"
#include "slurm/cluster_json.h"
#include "slurm/ended_jobs.h"

enum { ADA = 1000, BOB = 1001 };

static struct fake_slurm fake;
static struct slurm_controller *controller;
static int64_t now_us;

static const char *find_user_name(void *context, uid_t uid)
{
    return uid == ADA ? "ada" : "bob";
}

static const struct cluster_asker ada = {ADA, find_user_name, NULL};
static const struct cluster_asker bob = {BOB, find_user_name, NULL};
static const struct cluster_asker root = {0, find_user_name, NULL};

static void begin_cluster(int nodes, int gpus)
{
    const struct core_settings settings = fake_controller_settings();
    fake_slurm_init(&fake, nodes, gpus);
    now_us = 1000 * SECOND_US;
    controller = fake_controller_create(&settings, 80 * GIB);
    assert_non_null(controller);
}

static void end_cluster(void)
{
    slurm_controller_destroy(controller);
    fake_slurm_fini(&fake);
}

static void update(void)
{
    const struct task_request request = {
        .need = {NEED_DECLARED, 10 * GIB}, .expect.smact = reading_of(0.2), .exclusive = true};
    now_us += SECOND_US;
    fake.now_s++;
    assert_true(fake_controller_update(controller, &fake, now_us) >= 0);
    fake_controller_answer(controller, &request);
    fake_slurm_start(&fake);
}

static void settle(void)
{
    for (int i = 0; i < 8; i++)
        update();
}

/* The page of the query, of which the caller releases the answer. */
static json_t *list_jobs(
    const struct cluster_asker *asker, const struct cluster_jobs_query *query, json_t **ret_answer)
{
    assert_int_equal(cluster_jobs_json(controller, asker, query, ret_answer), 0);
    return json_object_get(*ret_answer, "tasks");
}

static json_int_t id_at(const json_t *jobs, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(jobs, i), "id"));
}

static const char *text_at(const json_t *jobs, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(jobs, i), key));
}

static void running_jobs_come_first_then_by_priority(void **state)
{
    const struct cluster_jobs_query live = {.state = "live"}, ended = {.state = "ended"},
                                    of_bob = {.state = "all", .user = "bob"};
    json_t *answer;
    begin_cluster(1, 1);
    struct fake_job *low = fake_slurm_submit(&fake, 1);
    struct fake_job *done = fake_slurm_submit(&fake, 9);
    settle();
    struct fake_job *high = fake_slurm_submit(&fake, 5), *held = fake_slurm_submit(&fake, 3);
    held->job.is_held = true;
    held->job.time_limit_s = 3600;
    high->job.uid = BOB;
    settle();
    json_t *jobs = list_jobs(&ada, &live, &answer);
    assert_int_equal(json_array_size(jobs), 4);
    assert_int_equal(id_at(jobs, 0), done->job.id);
    assert_string_equal(text_at(jobs, 0, "state"), "RUNNING");
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json_array_get(jobs, 0), "gpus"), 0)),
        "n0:0");
    assert_int_equal(id_at(jobs, 1), high->job.id);
    assert_string_equal(text_at(jobs, 1, "reason"), "Resources");
    assert_non_null(strstr(text_at(jobs, 1, "reason_text"), "job 2 has it to itself"));
    assert_int_equal(id_at(jobs, 2), held->job.id);
    assert_string_equal(text_at(jobs, 2, "reason"), "JobHeldUser");
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(jobs, 2), "time_limit_s")), 3600);
    assert_int_equal(id_at(jobs, 3), low->job.id);
    assert_true(json_is_null(json_object_get(json_array_get(jobs, 3), "time_limit_s")));
    assert_string_equal(text_at(jobs, 3, "reason"), "Priority");
    assert_string_equal(text_at(jobs, 3, "reason_text"), "1 job is before it");
    json_decref(answer);
    fake_slurm_end(&fake, done, SLURM_STATE_COMPLETED);
    update();
    jobs = list_jobs(&ada, &ended, &answer);
    assert_int_equal(json_array_size(jobs), 1);
    assert_string_equal(text_at(jobs, 0, "state"), "COMPLETED");
    json_decref(answer);
    jobs = list_jobs(&ada, &of_bob, &answer);
    assert_int_equal(json_array_size(jobs), 1);
    assert_string_equal(text_at(jobs, 0, "user"), "bob");
    json_decref(answer);
    end_cluster();
}

/* As its agent says it, and only while it runs. */
static void a_job_shows_the_memory_for_its_copy(void **state)
{
    const struct cluster_jobs_query live = {.state = "live"};
    json_t *answer;
    begin_cluster(1, 1);
    struct fake_job *fake_job = fake_slurm_submit(&fake, 1);
    settle();
    const struct slurm_job_report said = {
        .job = fake_job->job.id, .room_bytes = 3 * GIB, .rooms = "3.0 GiB are ready"};
    slurm_controller_report_jobs(controller, "n0", true, &said, 1, now_us);
    json_t *jobs = list_jobs(&ada, &live, &answer);
    assert_string_equal(text_at(jobs, 0, "copy_room_text"), "3.0 GiB are ready");
    assert_true(json_real_value(json_object_get(json_array_get(jobs, 0), "copy_room_mib")) == 3072);
    json_decref(answer);
    slurm_controller_report_jobs(controller, "n0", true, NULL, 0, now_us);
    jobs = list_jobs(&ada, &live, &answer);
    assert_true(json_is_null(json_object_get(json_array_get(jobs, 0), "copy_room_text")));
    assert_true(json_is_null(json_object_get(json_array_get(jobs, 0), "copy_room_mib")));
    json_decref(answer);
    end_cluster();
}

static void a_long_list_comes_in_pages(void **state)
{
    struct cluster_jobs_query query = {.state = "live"};
    char after[100];
    json_t *answer;
    size_t n = 0, pages = 0;
    uint32_t seen[1203] = {0};
    begin_cluster(1, 1);
    for (uint32_t i = 0; i < 1201; i++)
        fake_slurm_submit(&fake, i % 7);
    update();
    do {
        json_t *jobs = list_jobs(&ada, &query, &answer);
        for (size_t i = 0; i < json_array_size(jobs); i++, n++)
            assert_int_equal(seen[id_at(jobs, i)]++, 0);
        const char *next = json_string_value(json_object_get(answer, "next"));
        query.after = next ? strcpy(after, next) : NULL;
        json_decref(answer);
        if (pages++ == 0) /* the last of the page ends: the next goes on behind its place */
            fake_slurm_end(&fake, fake.jobs[1200], SLURM_STATE_CANCELLED);
    } while (query.after);
    assert_int_equal(n, 1201);
    assert_int_equal(pages, 3);
    for (size_t i = 0; i < 4; i++) {
        static const char *const wrong[] = {"", "1.2.3", "3.1.1.1", "1.1.1.1x"};
        query.after = wrong[i];
        assert_int_equal(cluster_jobs_json(controller, &ada, &query, &answer), -EINVAL);
    }
    end_cluster();
}

static void other_users_jobs_can_be_hidden(void **state)
{
    const struct cluster_jobs_query live = {.state = "live"};
    json_t *answer;
    begin_cluster(1, 1);
    uint32_t id = fake_slurm_submit(&fake, 1)->job.id;
    for (int is_hidden = 0; is_hidden < 2; is_hidden++) {
        fake.hides_jobs = is_hidden;
        settle();
        for (int i = 0; i < 3; i++) {
            const struct cluster_asker *asker = i == 0 ? &ada : i == 1 ? &bob : &root;
            size_t wanted = is_hidden && asker == &bob ? 0 : 1;
            assert_int_equal(json_array_size(list_jobs(asker, &live, &answer)), wanted);
            json_decref(answer);
            assert_int_equal(cluster_job_json(controller, asker, id, SLURM_NO_INDEX, &answer),
                wanted ? 0 : -ENOENT);
            json_decref(answer);
            answer = cluster_gpus_json(controller, asker);
            json_t *gpu = json_array_get(json_object_get(answer, "gpus"), 0);
            assert_int_equal(json_array_size(json_object_get(gpu, "tasks")), wanted);
            json_decref(answer);
        }
    }
    end_cluster();
}

static void an_array_is_counted(void **state)
{
    const struct cluster_jobs_query live = {.state = "live"};
    json_t *answer;
    begin_cluster(1, 1);
    struct fake_job *waiting = fake_slurm_submit(&fake, 1), *split = fake_slurm_submit(&fake, 1);
    waiting->job.array_id = split->job.array_id = waiting->job.id;
    waiting->job.array_indices = "3-6,9%2";
    split->job.array_index = 2;
    waiting->job.is_held = split->job.is_held = true;
    update();
    json_t *jobs = list_jobs(&ada, &live, &answer);
    assert_int_equal(json_array_size(jobs), 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(jobs, 0), "array_index")), 2);
    assert_string_equal(text_at(jobs, 1, "array_indices"), "3-6,9");
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(jobs, 1), "array_limit")), 2);
    json_decref(answer);
    assert_int_equal(
        cluster_job_json(controller, &ada, waiting->job.id, SLURM_NO_INDEX, &answer), 0);
    const json_t *array = json_object_get(answer, "array");
    assert_int_equal(json_integer_value(json_object_get(array, "count")), 6);
    json_decref(answer);
    assert_int_equal(cluster_job_json(controller, &ada, waiting->job.id, 2, &answer), 0);
    json_decref(answer);
    assert_int_equal(cluster_job_json(controller, &ada, waiting->job.id, 7, &answer), -ENOENT);
    end_cluster();
}

static void what_is_not_measured_is_null(void **state)
{
    begin_cluster(2, 1);
    fake_slurm_submit(&fake, 1);
    settle();
    const struct slurm_gpu_reading reading = {.index = 0,
        .uuid = "GPU-7",
        .mem_total_bytes = reading_of(40.0 * GIB),
        .mem_used_bytes = reading_of(3.0 * GIB),
        .smact = reading_of(0.5),
        .processes_known = true};
    assert_int_equal(slurm_controller_report(controller, "n1", &reading, 1, now_us), 0);
    update();
    json_t *answer = cluster_gpus_json(controller, &ada);
    json_t *silent = json_array_get(json_object_get(answer, "gpus"), 0);
    json_t *reported = json_array_get(json_object_get(answer, "gpus"), 1);
    assert_true(json_is_null(json_object_get(silent, "mem_used_mib")));
    assert_true(json_is_null(json_object_get(silent, "smact")));
    assert_non_null(strstr(json_string_value(json_object_get(silent, "health_text")), "no agent"));
    assert_string_equal(json_string_value(json_object_get(reported, "uuid")), "GPU-7");
    assert_true(json_real_value(json_object_get(reported, "mem_used_mib")) == 3 * 1024);
    assert_true(json_real_value(json_object_get(reported, "smact")) == 0.5);
    assert_true(json_is_null(json_object_get(reported, "power_w")));
    json_decref(answer);
    fake.nodes[0].is_down = true;
    update();
    answer = cluster_gpus_json(controller, &ada);
    silent = json_array_get(json_object_get(answer, "gpus"), 0);
    assert_string_equal(json_string_value(json_object_get(silent, "health")), "lost");
    json_decref(answer);
    end_cluster();
}

/* Each job has a GPU to itself: the next starts when the time limit of the one that runs ends. Of
 * the array, the task of index 4 is the next. */
static void waiting_jobs_have_a_start(void **state)
{
    static const int64_t offset_us = 7000 * SECOND_US;
    struct cluster_starts known = {0};
    begin_cluster(1, 1);
    struct fake_job *runs = fake_slurm_submit(&fake, 9), *array = fake_slurm_submit(&fake, 5),
                    *last = fake_slurm_submit(&fake, 1);
    fake_slurm_set_limit(runs, 600);
    array->job.array_id = array->job.id;
    array->job.array_index = SLURM_NO_INDEX;
    array->job.array_indices = "4,6%1";
    last->job.uid = BOB;
    settle();
    fake_slurm_set_limit(fake.jobs[3], 60); /* the task: its comment has split it off */
    update();
    assert_int_equal(runs->job.state, SLURM_STATE_RUNNING);
    json_t *answer = cluster_starts_json(controller, &bob, offset_us, &known);
    const json_t *list = json_object_get(answer, "starts"), *first = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(json_integer_value(json_object_get(first, "array_index")), 4);
    double start_s = json_number_value(json_object_get(first, "expected_start"));
    double end_s = (double)(runs->job.end_s - fake.now_s) + (double)(now_us + offset_us) / 1e6;
    assert_true(start_s > end_s - 5 && start_s < end_s + 5);
    const json_t *second = json_array_get(list, 1);
    assert_true(json_is_null(json_object_get(second, "array_index")));
    assert_true(json_number_value(json_object_get(second, "expected_start")) == start_s + 60);
    json_decref(answer);
    fake.hides_jobs = true;
    update();
    answer = cluster_starts_json(controller, &bob, offset_us, &known);
    assert_int_equal(json_array_size(json_object_get(answer, "starts")), 1);
    assert_int_equal(id_at(json_object_get(answer, "starts"), 0), last->job.id);
    json_decref(answer);
    end_cluster();
}

/* No start is predicted for these jobs; the one that is held has no moment, and one has begun. */
static void jobs_that_wait_to_begin_have_an_earliest_start(void **state)
{
    struct cluster_starts known = {0};
    begin_cluster(1, 1);
    struct fake_job *later = fake_slurm_submit(&fake, 9), *soon = fake_slurm_submit(&fake, 5),
                    *held = fake_slurm_submit(&fake, 3), *of_bob = fake_slurm_submit(&fake, 2);
    later->job.begin_s = fake.now_s + 7200;
    later->job.array_id = later->job.id;
    later->job.array_index = SLURM_NO_INDEX;
    later->job.array_indices = "0-3";
    soon->job.begin_s = fake.now_s + 3600;
    held->job.begin_s = fake.now_s + 3600;
    held->job.is_held = true;
    of_bob->job.begin_s = fake.now_s + 1800;
    of_bob->job.uid = BOB;
    fake_slurm_submit(&fake, 1)->job.begin_s = fake.now_s - 3600;
    settle();
    fake.hides_jobs = true;
    update();
    json_t *answer = cluster_starts_json(controller, &ada, 0, &known);
    const json_t *list = json_object_get(answer, "starts"), *first = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(id_at(list, 0), soon->job.id);
    assert_int_equal(id_at(list, 1), later->job.id);
    assert_true(json_is_null(json_object_get(first, "expected_start")));
    assert_int_equal(
        json_integer_value(json_object_get(first, "earliest_start")), soon->job.begin_s);
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "array_index")));
    json_decref(answer);
    end_cluster();
}

/* One that runs ends, one that waits is cancelled, and one is not listed any more. */
static void jobs_that_ended_are_named(void **state)
{
    struct ended_jobs jobs = {0};
    begin_cluster(1, 1);
    struct fake_job *list[4];
    for (uint32_t i = 0; i < 4; i++)
        list[i] = fake_slurm_submit(&fake, 9 - i);
    list[2]->job.uid = BOB;
    settle();
    assert_int_equal(list[0]->job.state, SLURM_STATE_RUNNING);
    assert_int_equal(ended_jobs_update(&jobs, controller), 0);
    assert_int_equal(ended_jobs_count(&jobs, controller, &root), 0);
    fake_slurm_end(&fake, list[0], SLURM_STATE_FAILED);
    fake_slurm_end(&fake, list[2], SLURM_STATE_CANCELLED);
    list[3]->is_gone = true;
    fake_slurm_submit(&fake, 1);
    fake.hides_jobs = true;
    update();
    assert_int_equal(ended_jobs_update(&jobs, controller), 0);
    assert_int_equal(ended_jobs_count(&jobs, controller, &root), 3);
    json_t *all = ended_jobs_json(&jobs, controller, &root),
           *own = ended_jobs_json(&jobs, controller, &bob);
    char *text = json_dumps(all, JSON_COMPACT), *text_own = json_dumps(own, JSON_COMPACT);
    assert_string_equal(text, "{\"ids\":[1,3,4]}");
    assert_string_equal(text_own, "{\"ids\":[3]}");
    free(text);
    free(text_own);
    json_decref(all);
    json_decref(own);
    update();
    assert_int_equal(ended_jobs_update(&jobs, controller), 0);
    assert_int_equal(ended_jobs_count(&jobs, controller, &root), 0);
    ended_jobs_fini(&jobs);
    end_cluster();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(running_jobs_come_first_then_by_priority),
        cmocka_unit_test(a_job_shows_the_memory_for_its_copy),
        cmocka_unit_test(a_long_list_comes_in_pages),
        cmocka_unit_test(other_users_jobs_can_be_hidden), cmocka_unit_test(an_array_is_counted),
        cmocka_unit_test(what_is_not_measured_is_null), cmocka_unit_test(waiting_jobs_have_a_start),
        cmocka_unit_test(jobs_that_wait_to_begin_have_an_earliest_start),
        cmocka_unit_test(jobs_that_ended_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
