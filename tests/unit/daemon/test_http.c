/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part http with pretend parts below, requests and helper processes: each test gives a
 * request to its route and reads the status and body of the answer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/server.h"
#include "api/stream.h"
#include "base/units.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/memory_requirement.h"
#include "daemon/http/routes.h"
#include "daemon/http/task_change.h"
#include "daemon/mps/mps_by_hand.h"
#include "exec/attempt.h"
#include "model/network.h"
#include "pretend_driver.h"
#include "service/estimate_helpers.h"

enum { ADA = 1000, BOB = 1001 };

#define SUMMARY "Linear-1 [-1, 10] 110\nLinear-2 [-1, 10] 110\n"

struct api_request {
    struct api_peer peer;
    uint64_t id;
    json_t *body;
    const char *key, *value; /* a query parameter; NULL: none */
    int status;              /* 0: not answered */
    json_t *reply;           /* NULL: the answer was no JSON */
    char *text;              /* then that */
};

static struct {
    struct http *http;
    struct config config;
    struct run_history run_history;
    int server; /* a descriptor to poll */
    const char *deferred, *why_no_gpus;
    bool is_watched, has_metrics;
    struct cgroup_controllers enforced;
    unsigned read_us; /* how long reading a submission takes at least */
    void (*on_closed)(void *context);
    void *reader; /* of events */
    char sent[4096];
    struct gpu_info info;
    struct gpu_sample sample;
    struct gpu_process external;
    struct share shares[2];
    int cleared, mps_answer, metric_questions;
    int64_t asked_ms[3]; /* since, until and step of the last question */
    uid_t mps_uid;
    char mps_instance[96];
} seen;

/* ---- the server ---- */

int api_server_create(
    const struct api_server_options *options, struct fault *fault, struct api_server **ret_server)
{
    assert_ptr_equal(options->context, seen.http);
    *ret_server = (struct api_server *)(void *)&seen.server;
    return 0;
}

void api_server_destroy(struct api_server *server)
{
    tell("server destroyed; ");
}

int api_server_fd(const struct api_server *server)
{
    return seen.server;
}

void api_server_run(struct api_server *server)
{
}

int64_t api_server_timeout_ms(struct api_server *server)
{
    return -1;
}

void api_server_set_unlisted(struct api_server *server, uid_t uid, bool is_unlisted)
{
    tell("%u is %slisted; ", (unsigned)uid, is_unlisted ? "un" : "");
}

/* ---- a request ---- */

struct api_peer api_request_peer(const struct api_request *request)
{
    return request->peer;
}

uint64_t api_request_id(const struct api_request *request)
{
    return request->id;
}

const char *api_request_name(const struct api_request *request)
{
    return request->id ? "" : "GPU-0";
}

void *api_request_context(const struct api_request *request)
{
    return seen.http;
}

const char *api_request_header(const struct api_request *request, const char *name)
{
    return api_request_query(request, name);
}

struct api_stream *api_reply_stream(
    struct api_request *request, const char *type, void (*on_closed)(void *context), void *context)
{
    assert_string_equal(type, "text/event-stream");
    request->status = 200;
    seen.on_closed = on_closed;
    seen.reader = context;
    return (struct api_stream *)(void *)&seen.reader;
}

bool api_stream_is_idle(const struct api_stream *stream)
{
    return true;
}

/* A piece is its text. */
struct api_piece *api_piece_create(const void *data, size_t size)
{
    return (struct api_piece *)(void *)strndup(data, size);
}

void api_piece_release(struct api_piece *piece)
{
    free(piece);
}

void api_stream_send(struct api_stream *stream, struct api_piece *piece)
{
    snprintf(seen.sent, sizeof seen.sent, "%s", (char *)(void *)piece);
}

const json_t *api_request_body(const struct api_request *request)
{
    return request->body;
}

const char *api_request_query(const struct api_request *request, const char *key)
{
    return request->key && strcmp(request->key, key) == 0 ? request->value : NULL;
}

void api_reply(struct api_request *request, int status, json_t *body)
{
    assert_int_equal(request->status, 0); /* answered once */
    request->status = body ? status : 500;
    request->reply = body;
}

void api_reply_text(struct api_request *request, int status, char *text)
{
    api_reply(request, status, json_loads(text, 0, NULL));
    free(text);
}

bool api_request_hold(struct api_request *request, size_t bytes)
{
    return true;
}

void api_reply_held_text(struct api_request *request, int status, char *text)
{
    api_reply_text(request, status, text);
}

json_t *api_error_json(int status, const char *message)
{
    return json_pack("{s:s}", "message", message);
}

void api_reply_error(struct api_request *request, int status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    api_reply(request, status, json_pack("{s:s}", "message", text));
}

void api_reply_bytes(struct api_request *request, const char *type, const void *data, size_t size,
    const struct api_header *headers)
{
    assert_int_equal(request->status, 0);
    request->status = 200;
    request->text = strndup(data, size);
}

/* ---- the log ---- */

int store_put_blob(struct store *store, uint64_t task, const void *data, size_t size,
    struct fault *fault, char ret_key[static 65])
{
    strcpy(ret_key, "blob");
    return 0;
}

int store_get_blob(
    struct store *store, const char *key, struct fault *fault, char **ret_data, size_t *ret_size)
{
    *ret_data = strdup("echo");
    *ret_size = strlen(*ret_data);
    return 0;
}

int64_t store_last_event(const struct store *store)
{
    return 7;
}

int store_changed_tasks(struct store *store, int64_t seq, size_t limit, struct fault *fault,
    uint64_t *ret_tasks, size_t *ret_count)
{
    *ret_count = 0;
    return 0;
}

int store_get_ended(struct store *store, uint64_t task, struct fault *fault, json_t **ret_record)
{
    return STORE_NONE;
}

int store_get_array(struct store *store, uint64_t array, struct fault *fault, uint64_t *ret_first,
    uint64_t *ret_last)
{
    *ret_first = array + 1;
    *ret_last = array + 2;
    return array == pretend.array ? 0 : STORE_NONE;
}

int store_count_ended(struct store *store, uint64_t first, uint64_t last, struct fault *fault,
    int64_t ret_counts[static TASK_STATES])
{
    memset(ret_counts, 0, TASK_STATES * sizeof *ret_counts);
    ret_counts[TASK_COMPLETED] = pretend.array && first > pretend.array;
    return 0;
}

int store_list_ended(struct store *store, const struct store_ended_filter *filter,
    store_on_ended *on_ended, void *context, struct fault *fault)
{
    return 0;
}

int store_list_ended_users(
    struct store *store, store_on_ended_user *on_user, void *context, struct fault *fault)
{
    return 0;
}

int store_skip_ended(struct store *store, const struct store_ended_filter *filter,
    struct fault *fault, uint64_t *ret_task)
{
    *ret_task = 0;
    return 0;
}

/* In three steps. */
int store_add_totals(struct store *store, int max, struct fault *fault, struct store_totals *totals)
{
    totals->tasks[TASK_COMPLETED]++;
    return totals->tasks[TASK_COMPLETED] < 3;
}

int store_first_submitted(struct store *store, struct fault *fault, int64_t *ret_wall_us)
{
    (void)store, (void)fault;
    *ret_wall_us = 0;
    return 0;
}

const char *store_get_loss(const struct store *store)
{
    return "";
}

/* ---- names and files of users ---- */

static struct name name_of(uid_t uid)
{
    struct name name = {.state = NAME_KNOWN, .uid = uid, .gid = 100};
    strcpy(name.name, uid == ADA ? "ada" : "bob");
    return name;
}

const struct name *names_of_uid(struct names *names, uid_t uid)
{
    static struct name name;
    name = name_of(uid);
    return &name;
}

void names_ask_uid(struct names *names, uid_t uid, names_on_answer *on_answer, void *context)
{
    const struct name name = name_of(uid);
    on_answer(context, &name);
}

void names_ask_name(
    struct names *names, const char *text, names_on_answer *on_answer, void *context)
{
    const struct name name = name_of(strcmp(text, "ada") == 0 ? ADA : BOB);
    on_answer(context, &name);
}

struct user_files *user_files_create(uv_loop_t *loop)
{
    return (struct user_files *)(void *)&seen;
}

void user_files_close(struct user_files *files)
{
}

void user_files_destroy(struct user_files *files)
{
}

int user_files_read(struct user_files *files, const struct user_file_read *read)
{
    static const struct user_file_piece piece = {.size = 5, .data = "hello"};
    tell("read %s as %u; ", read->path, (unsigned)read->uid);
    read->on_done(read->context, 0, &piece, NULL);
    return 0;
}

struct estimate_helpers *estimate_helpers_create(uv_loop_t *loop, int limit_ms)
{
    return (struct estimate_helpers *)(void *)&seen;
}

void estimate_helpers_close(struct estimate_helpers *helpers)
{
}

void estimate_helpers_destroy(struct estimate_helpers *helpers)
{
}

int estimate_helpers_begin(struct estimate_helpers *helpers, const struct estimate_work *work)
{
    void *answer = calloc(1, work->answer_size);
    struct fault fault = {0};
    assert_non_null(answer);
    tell("estimate %s as %u; ", work->path ? work->path : "a text", (unsigned)work->uid);
    int r = work->estimate(work->context, SUMMARY, strlen(SUMMARY), answer, &fault);
    work->on_done(work->context, r, answer, &fault);
    free(answer);
    return 0;
}

int spec_output_path(const struct attempt_spec *spec, const char *pattern, char *path, size_t size)
{
    snprintf(path, size, "%s/out", spec->cwd);
    return 0;
}

/* ---- the parts below ---- */

bool kernel_asker_is_on(const struct kernel_asker *asker)
{
    return false;
}

const struct kernel_answers *kernel_asker_answers(
    const struct kernel_asker *asker, const char *gpu_kind, bool is_any)
{
    return NULL;
}

const char *kernel_asker_ask(struct kernel_asker *asker, const struct kernel_request *request)
{
    return "it is not asked here";
}

bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report)
{
    *ret_report = (struct gpu_report){.info = &seen.info,
        .sample = &seen.sample,
        .external = &seen.external,
        .n_external = 1,
        .shares = seen.shares,
        .n_shares = 2};
    return i == 0 && !seen.why_no_gpus;
}

const char *gpus_why_none(const struct gpus *gpus)
{
    return seen.why_no_gpus ? seen.why_no_gpus : "";
}

struct reading gpus_idle_us(
    const struct gpus *gpus, size_t i, const struct resident *resident, bool *ret_is_long)
{
    *ret_is_long = true;
    return reading_of(7e6);
}

struct disk_space disk_get_space(const struct disk *disk)
{
    return (struct disk_space){.available_bytes = reading_of(5e9)};
}

struct gpu_totals gpus_totals(const struct gpus *gpus)
{
    return (struct gpu_totals){.energy_j = 5e6, .mean_smact = READING_NONE};
}

bool metric_recorder_ask(struct metric_recorder *recorder, struct metric_query *query, char *head,
    metric_on_answer *on_answer, void *asker)
{
    if (!seen.has_metrics)
        return false;
    assert_int_equal(query->n_gpus, 1);
    assert_string_equal(query->gpus[0].index, "0");
    char *text = NULL;
    seen.asked_ms[0] = query->since_ms;
    seen.asked_ms[1] = query->until_ms;
    seen.asked_ms[2] = query->step_ms;
    assert_true(asprintf(&text, "{%s,\"metrics\":\"%s\",\"only_gpu\":%zu}",
                    query->as_rows ? "\"rows\":[]" : head, query->metrics, query->only_gpu) > 0);
    seen.metric_questions++;
    free(query);
    free(head);
    on_answer(asker, text, NULL);
    return true;
}

char *metric_rows_run(struct metric_db *db, const struct metric_query *query, struct fault *fault)
{
    assert_null(db);
    return query->n_gpus ? NULL : strdup("{\"gpus\":[]}");
}

void gpus_clear_errors(struct gpus *gpus, size_t i)
{
    seen.cleared++;
}

int attempts_apply_limits(const struct attempts *attempts, uint64_t task, struct fault *fault)
{
    return 0;
}

struct cgroup_controllers attempts_enforced(const struct attempts *attempts)
{
    usleep(seen.read_us);
    return seen.enforced;
}

const char *attempts_why_deferred(const struct attempts *attempts, uint64_t task)
{
    return seen.deferred;
}

bool attempts_is_watched(const struct attempts *attempts, uint64_t task)
{
    return seen.is_watched;
}

json_t *mps_list(const struct mps *mps)
{
    return json_array();
}

int mps_start_by_hand(
    struct mps *mps, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault)
{
    assert_int_equal(gid, 100);
    seen.mps_uid = uid;
    if (seen.mps_answer < 0)
        return fault_set(fault, -seen.mps_answer, "it is starting");
    api_reply(asker, 200, json_object());
    return 0;
}

int mps_stop_by_hand(struct mps *mps, uid_t uid, const char *instance, struct api_request *asker,
    struct fault *fault)
{
    snprintf(seen.mps_instance, sizeof seen.mps_instance, "%s", instance);
    return fault_set(fault, ESRCH, "there is none");
}

bool mps_find_group(const struct mps *mps, uid_t uid, gid_t *ret_gid)
{
    return false;
}

const char *suspension_why_failed(const struct suspension *suspension, uint64_t task)
{
    return "a profiler is attached";
}

struct room_totals preload_manager_rooms(const struct preload_manager *manager)
{
    return (struct room_totals){
        .max_bytes = 8000, .bytes = 3000, .used_bytes = 1000, .share_bytes = 4000, .rooms = 2};
}

bool preload_manager_rooms_of_task(
    const struct preload_manager *manager, uint64_t task, struct room_of_task *ret_rooms)
{
    *ret_rooms = (struct room_of_task){.bytes = (uint64_t)(2 * GIB),
        .user_bytes = (uint64_t)(3 * GIB),
        .share_bytes = (uint64_t)(4 * GIB)};
    return true;
}

enum carrier_use suspension_ask_carrier(
    const struct suspension *suspension, const struct task *task, char *ret_why, size_t size)
{
    snprintf(ret_why, size, "process 7: it uses managed memory");
    return CARRIER_CANNOT;
}

bool suspension_answer_later(
    struct suspension *suspension, uint64_t task, struct api_request *request)
{
    return false;
}

int attempts_order_profile(
    const struct attempts *attempts, uint64_t task, const struct torch_order *order)
{
    return -ESRCH;
}

int attempts_profile_was_asked(const struct attempts *attempts, uint64_t task)
{
    return 0;
}

/* ---- the hooks ---- */

static void on_served(void *context)
{
}

static int on_make_login(
    void *context, const struct api_peer *peer, struct fault *fault, char **ret_url)
{
    if (peer->uid == BOB)
        return fault_set(fault, EPERM, "this daemon serves no web page");
    *ret_url = strdup("http://127.0.0.1:7480/login?token=1");
    return 0;
}

/* ---- */

static json_t *record_end(const struct task *task)
{
    return http_task_json(seen.http, task);
}

static void task_ended(uint64_t task, const json_t *record)
{
    http_task_ended(seen.http, task, record);
}

static int begin(void **state)
{
    static char store;
    struct fault fault = {0};
    memset(&seen, 0, sizeof seen);
    seen.server = eventfd(0, EFD_CLOEXEC);
    config_defaults(&seen.config);
    seen.config.sharing = SHARING_STREAMS;
    config_complete(&seen.config);
    strcpy(seen.config.socket_path, "socket");
    strcpy(seen.config.state_dir, "/nowhere");
    strcpy(seen.info.uuid, "GPU-0");
    strcpy(seen.info.index, "0");
    seen.info.is_place = true;
    seen.sample = (struct gpu_sample){.mem_used_bytes = reading_of(3 * (double)GIB),
        .smact = reading_of(0.25),
        .processes = {.valid = true}};
    seen.external = (struct gpu_process){.pid = 1 << 30, .used_bytes = reading_of((double)GIB)};
    seen.shares[0] = (struct share){.task = 1, .smact = reading_of(0.2), .power_w = READING_NONE};
    seen.shares[1] = (struct share){.task = 0, .smact = reading_of(0.05), .power_w = READING_NONE};
    pretend_driver_begin(1);
    pretend.record_end = record_end;
    pretend.ended = task_ended;
    const struct http_options options = {
        .loop = &pretend.loop,
        .config = &seen.config,
        .core = pretend.core,
        .jobs = pretend.jobs,
        .store = (struct store *)(void *)&store,
        .driver = pretend.driver,
        .run_history = &seen.run_history,
        .hooks = {NULL, on_served, on_make_login},
    };
    seen.http = http_create(&options);
    assert_int_equal(http_open(seen.http, &fault), 0);
    return 0;
}

static int end(void **state)
{
    http_close(seen.http);
    pretend_driver_end();
    http_destroy(seen.http);
    close(seen.server);
    return 0;
}

/* ---- requests ---- */

static void forget(struct api_request *request)
{
    json_decref(request->body);
    json_decref(request->reply);
    free(request->text);
    *request = (struct api_request){0};
}

static struct api_request from(uid_t uid, uint64_t id)
{
    return (struct api_request){.peer = {.uid = uid, .gid = 100}, .id = id};
}

/* Gives the request to its route. */
static void handle(const char *method, const char *path, struct api_request *request)
{
    const struct api_route *route = http_routes;
    while (route->method && (strcmp(route->method, method) != 0 || strcmp(route->path, path) != 0))
        route++;
    assert_non_null(route->method);
    route->handle(seen.http, request);
}

/* The same, and runs the loop until nothing is left to do now. */
static void serve(const char *method, const char *path, struct api_request *request)
{
    handle(method, path, request);
    for (int i = 0; i < 3; i++)
        uv_run(&pretend.loop, UV_RUN_NOWAIT);
}

static const char *message_of(const struct api_request *request)
{
    return json_string_value(json_object_get(request->reply, "message"));
}

static const char *text_of(const struct api_request *request, const char *key)
{
    const json_t *task = json_object_get(request->reply, "task");
    const char *text = json_string_value(json_object_get(task, key));
    return text ? text : "(none)";
}

static json_t *submission(void)
{
    return json_pack("{s:s, s:s, s:{}, s:s}", "script", "#!/bin/sh\n", "cwd", "/home/ada",
        "environment", "name", "resnet");
}

static void submit(uid_t uid)
{
    struct api_request request = from(uid, 0);
    request.body = submission();
    serve("POST", "/v1/tasks", &request);
    assert_int_equal(request.status, 201);
    assert_int_equal(json_integer_value(json_object_get(request.reply, "id")), 1);
    forget(&request);
    expect_story("SUBMIT; PLACE; ");
}

/* ---- tests ---- */

static void test_a_submission_becomes_a_task(void **state)
{
    submit(ADA);
    struct job *job = jobs_find(pretend.jobs, 1);
    assert_string_equal(job->name, "resnet");
    assert_string_equal(job->user, "ada");
    assert_true(sizeof *job <= 392); /* there may be tens of thousands */
    json_t *update = json_pack("{s:s}", "name", "resnet-50, with a longer name");
    job_note_update(job, update);
    job_note_update(job, update);
    json_decref(update);
    assert_string_equal(job->name, "resnet-50, with a longer name");
    assert_string_equal(job->user, "ada");
    assert_int_equal(core_task(pretend.core, 1)->uid, ADA);
    /* nothing says how much memory it takes, which is not zero */
    assert_int_equal(core_task(pretend.core, 1)->request.need.kind, NEED_UNKNOWN);
}

/* Submits a task that names its CPUs and main memory. */
static void expect_warnings(struct cgroup_controllers enforced, const char *expected)
{
    struct api_request request = from(ADA, 0);
    char text[512] = "";
    const json_t *line;
    size_t i;
    seen.enforced = enforced;
    request.body = submission();
    json_object_set_new(request.body, "cpus", json_integer(1));
    json_object_set_new(request.body, "host_memory_mib", json_integer(200));
    serve("POST", "/v1/tasks", &request);
    assert_int_equal(request.status, 201);
    json_array_foreach(json_object_get(request.reply, "warnings"), i, line)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s; ", json_string_value(line));
    assert_string_equal(text, expected);
    forget(&request);
}

/* Submits a task of Ada and one of Bob, and runs one turn of the loop. */
static void submit_in_one_turn(int status_of_bob)
{
    struct api_request ada = from(ADA, 0), bob = from(BOB, 0);
    ada.body = submission();
    bob.body = submission();
    handle("POST", "/v1/tasks", &ada);
    handle("POST", "/v1/tasks", &bob);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
    assert_int_equal(ada.status, 201);
    assert_int_equal(bob.status, status_of_bob);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
    assert_int_equal(bob.status, 201);
    forget(&ada);
    forget(&bob);
}

static void test_users_that_are_not_listed_are_one_reader(void **state)
{
    seen.read_us = 20000; /* a turn has no more for a user */
    submit_in_one_turn(201);
    pretend.lacks_users = true;
    submit_in_one_turn(0);
}

static void test_limits_that_are_not_enforced_are_named(void **state)
{
#define IS_COUNTED " is counted, but not enforced on this server: the task can use more; "
    expect_warnings((struct cgroup_controllers){.cpu = true, .memory = true}, "");
    expect_warnings((struct cgroup_controllers){.cpu = true}, "--host-memory" IS_COUNTED);
    expect_warnings((struct cgroup_controllers){0}, "--host-memory" IS_COUNTED "--cpus" IS_COUNTED);
}

static void submit_summary(json_t *summary, const char *story)
{
    struct api_request request = from(ADA, 0);
    request.body = submission();
    json_object_set_new(request.body, "batch", json_integer(8));
    json_object_set_new(request.body, "summary", summary);
    serve("POST", "/v1/tasks", &request);
    assert_int_equal(request.status, 201);
    forget(&request);
    expect_story(story);
}

static void test_a_large_summary_is_estimated_by_a_helper(void **state)
{
    submit_summary(json_pack("{s:s, s:s}", "name", "net.json", "path", "/home/ada/net.json"),
        "estimate /home/ada/net.json as 1000; SUBMIT; PLACE; ");
    int64_t by_helper = core_task(pretend.core, 1)->request.need.bytes;
    submit_summary(json_pack("{s:s, s:s}", "name", "net.txt", "text", SUMMARY), "SUBMIT; ");
    assert_int_equal(core_task(pretend.core, 2)->request.need.kind, NEED_ESTIMATED);
    assert_true(by_helper > 0);
    assert_int_equal(core_task(pretend.core, 2)->request.need.bytes, by_helper);
    /* few bytes, many layers */
    submit_summary(json_pack("{s:s, s:s}", "name", "net.txt", "text",
                       "Net(\n  (0-4999): 5000 x Linear(in_features=1, out_features=1)\n)\n"),
        "estimate a text as 1000; SUBMIT; ");
}

static uint64_t summary_fingerprint(void)
{
    struct network network;
    struct fault fault;
    assert_int_equal(network_parse(SUMMARY, strlen(SUMMARY), &fault, &network), 0);
    uint64_t fingerprint = model_fingerprint(network.model);
    network_fini(&network);
    return fingerprint;
}

/* Only the submitter's own run can lower the estimate. */
static void test_whose_runs_an_estimate_uses(void **state)
{
    const struct task_request *requests[3];
    struct past_run run = {
        .uid = BOB, .fingerprint = summary_fingerprint(), .batch = 8, .peak_bytes = MIB};
    json_t *summary = json_pack("{s:s, s:s}", "name", "net.txt", "text", SUMMARY);
    submit_summary(json_incref(summary), "SUBMIT; PLACE; ");
    seen.run_history = (struct run_history){.runs = &run, .n = 1};
    submit_summary(json_incref(summary), "SUBMIT; ");
    run.uid = ADA;
    submit_summary(summary, "SUBMIT; ");
    for (uint64_t i = 0; i < 3; i++)
        requests[i] = &core_task(pretend.core, i + 1)->request;
    assert_int_equal(requests[1]->need.bytes, requests[0]->need.bytes);
    assert_true(requests[2]->need.bytes < requests[0]->need.bytes);
}

static void expect_refusal(const char *key, json_t *value, int status, const char *part)
{
    struct api_request request = from(ADA, 0);
    request.body = submission();
    json_object_set_new(request.body, key, value);
    serve("POST", "/v1/tasks", &request);
    assert_int_equal(request.status, status);
    if (!strstr(message_of(&request), part))
        fail_msg("'%s' without '%s'", message_of(&request), part);
    forget(&request);
    expect_story("");
}

static void test_bad_submissions_are_refused(void **state)
{
    expect_refusal("nodes", json_integer(2), 400, "nodes: there is no such key");
    expect_refusal("script", json_string(""), 400, "script: is required");
    expect_refusal("cwd", json_string("here"), 400, "cwd: ");
    expect_refusal("gpus", json_string("two"), 400, "gpus: ");
    expect_refusal("gpus", json_integer(9), 400, "gpus=9: a task can have at most 1 here");
    expect_refusal("policy", json_string("best"), 400, "policy=best: must be one of");
    expect_refusal("environment", json_integer(1), 400, "environment: ");
    expect_refusal("arguments", json_string("x"), 400, "arguments: ");
    expect_refusal("summary", json_pack("{s:s, s:s}", "name", "x", "path", "x.json"), 400,
        "summary: path: has to be absolute");
    expect_refusal("summary", json_pack("{s:s, s:s, s:s}", "name", "x", "path", "/x", "text", "x"),
        400, "summary: has to be");
    assert_int_equal(jobs_next_id(pretend.jobs), 1); /* no id was used */
}

static struct api_request service_on(int port)
{
    struct api_request request = from(ADA, 0);
    request.body = submission();
    json_object_set_new(request.body, "service", json_true());
    json_object_set_new(request.body, "port", json_integer(port));
    return request;
}

static void expect_answer(struct api_request *request, int status, const char *part)
{
    assert_int_equal(request->status, status);
    if (part && !strstr(message_of(request), part))
        fail_msg("'%s' without '%s'", message_of(request), part);
    forget(request);
}

static void submit_service(int port, int status, const char *part)
{
    struct api_request request = service_on(port);
    serve("POST", "/v1/tasks", &request);
    expect_answer(&request, status, part);
}

static void test_services_have_different_ports(void **state)
{
    seen.config.services_for_all = true;
    submit_service(8000, 201, NULL);
    submit_service(8001, 201, NULL); /* it waits: its port counts, too */
    submit_service(8000, 409, "port=8000: task 1, a service");
    submit_service(8001, 409, "port=8001: task 2, a service");
    assert_int_equal(feed(EVENT_CANCEL, 1), 0);
    assert_int_equal(core_task(pretend.core, 1)->ending, FAILURE_CANCELLED);
    submit_service(8000, 201, NULL);
}

static void test_services_of_one_turn_have_different_ports(void **state)
{
    struct api_request requests[] = {service_on(8000), service_on(8000), service_on(8001)};
    seen.config.services_for_all = true;
    handle("POST", "/v1/tasks", &requests[0]);
    handle("POST", "/v1/tasks", &requests[1]);
    serve("POST", "/v1/tasks", &requests[2]);
    expect_answer(&requests[0], 201, NULL);
    expect_answer(&requests[1], 409, "port=8000: task 1, a service");
    expect_answer(&requests[2], 201, NULL);
    assert_int_equal(jobs_count(pretend.jobs), 2);
}

static void test_limits_of_a_user(void **state)
{
    seen.config.bytes_per_user = 5;
    expect_refusal("name", json_string("a"), 503, "bytes-per-user");
    seen.config.tasks_per_user = 0;
    expect_refusal("name", json_string("a"), 503, "tasks-per-user");
}

#define NO_LIMIT "gpus=9: a task can have at most 1 here" /* is refused for this only */

/* The lower number first, as in a table that was read. */
static void put_in_project(uid_t first, uid_t second)
{
    struct share_table *shares = &seen.config.share_table;
    share_table_init(shares);
    shares->n_projects = 2;
    shares->n_users = 2;
    shares->users[0] = (struct user_shares){.uid = first, .project = 1};
    shares->users[1] = (struct user_shares){.uid = second, .project = 1};
}

/* Ada and Bob are of one project; what Bob has counts for Ada, too. */
static void test_limits_of_a_project(void **state)
{
    put_in_project(ADA, BOB);
    seen.config.tasks_per_project = 1;
    submit(BOB);
    expect_refusal("name", json_string("a"), 503, "1 tasks of your project have not ended");
    seen.config.tasks_per_project = 2;
    expect_refusal("gpus", json_integer(9), 400, NO_LIMIT);
    expect_refusal(
        "array", json_string("0-1"), 503, "with these 2 tasks your project would have more than 2");
    seen.config.share_table.n_users = 0;
    expect_refusal("array", json_string("0-99999"), 400, "10000");
    seen.config.tasks_per_project = 1;
    expect_refusal("gpus", json_integer(9), 400, NO_LIMIT);
}

/* Root is in the project, but its tasks do not count there. */
static void test_a_projects_limit_without_root(void **state)
{
    put_in_project(0, ADA);
    seen.config.tasks_per_project = 1;
    submit(0);
    expect_refusal("gpus", json_integer(9), 400, NO_LIMIT);
}

/* Together they are one user for the limit of a user; in a project each counts once. */
static void test_a_projects_limit_of_unlisted_users(void **state)
{
    put_in_project(ADA, BOB);
    pretend.lacks_users = true;
    submit(BOB);
    seen.config.tasks_per_project = 2;
    expect_refusal("gpus", json_integer(9), 400, NO_LIMIT);
    seen.config.tasks_per_project = 1;
    expect_refusal("name", json_string("a"), 503, "1 tasks of your project have not ended");
    seen.config.tasks_per_user = 1;
    expect_refusal("name", json_string("a"), 503, "1 tasks of yours have not ended");
}

/* Submits tasks of these users so that one turn of the loop reads all, and expects the answers. */
static void expect_of_one_turn(
    const uid_t *users, const int *statuses, size_t n, const char *refusal)
{
    struct api_request requests[4];
    for (size_t i = 0; i < n; i++) {
        requests[i] = from(users[i], 0);
        requests[i].body = submission();
        handle("POST", "/v1/tasks", &requests[i]);
    }
    for (int i = 0; i < 4; i++)
        uv_run(&pretend.loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < n; i++)
        expect_answer(&requests[i], statuses[i], statuses[i] == 201 ? NULL : refusal);
}

static void test_a_users_limit_in_one_turn(void **state)
{
    const uid_t users[] = {ADA, BOB, ADA, ADA};
    seen.config.tasks_per_user = 2;
    expect_of_one_turn(users, (int[]){201, 201, 201, 503}, 4, "2 tasks of yours have not ended");
}

static void test_a_projects_limit_in_one_turn(void **state)
{
    const uid_t users[] = {ADA, BOB, ADA};
    put_in_project(ADA, BOB);
    seen.config.tasks_per_project = 2;
    expect_of_one_turn(users, (int[]){201, 201, 503}, 3, "2 tasks of your project have not ended");
}

static void test_a_users_bytes_in_one_turn(void **state)
{
    const uid_t users[] = {ADA, BOB, ADA, ADA};
    struct api_request one = from(ADA, 0);
    one.body = submission();
    serve("POST", "/v1/tasks", &one);
    forget(&one);
    int64_t each = jobs_bytes_of_user(pretend.jobs, ADA, driver_now_us(pretend.driver));
    seen.config.bytes_per_user = 2 * each + each / 2;
    expect_of_one_turn(users, (int[]){201, 201, 503, 503}, 4, "bytes-per-user");
}

static void test_nothing_is_submitted_at_the_end(void **state)
{
    http_finish_submissions(seen.http);
    expect_refusal("name", json_string("a"), 503, "going down");
}

static void test_no_gpus(void **state)
{
    seen.why_no_gpus = "NVML is not installed";
    expect_refusal("name", json_string("a"), 400, "no task can run here: NVML is not installed");
}

static void test_a_deferred_start_is_pending(void **state)
{
    submit(ADA);
    seen.deferred = "the disk is full";
    struct api_request request = from(ADA, 1);
    serve("GET", "/v1/tasks/{id}", &request);
    assert_string_equal(text_of(&request, "state"), "PENDING");
    assert_string_equal(text_of(&request, "reason"), "Resources");
    assert_string_equal(
        text_of(&request, "reason_text"), "its start is retried every second: the disk is full");
    assert_string_equal(text_of(&request, "script"), "echo"); /* the owner may read it */
    forget(&request);
    request = from(BOB, 1);
    serve("GET", "/v1/tasks/{id}", &request);
    assert_string_equal(text_of(&request, "state"), "PENDING");
    assert_string_equal(text_of(&request, "script"), "(none)");
    forget(&request);
}

static void test_a_service_that_is_run_again_has_the_reason(void **state)
{
    seen.config.services_for_all = true;
    submit_service(8000, 201, NULL);
    json_t *detail = json_pack("{s:s}", "evidence", "port 8000 is taken");
    assert_int_equal(feed(EVENT_EXITED, 1), 0);
    job_note_exit(jobs_find(pretend.jobs, 1), FAILURE_LAUNCH, detail);
    json_decref(detail);
    struct api_request request = from(ADA, 1);
    serve("GET", "/v1/tasks/{id}", &request);
    assert_string_equal(text_of(&request, "reason"), "BeginTime");
    assert_non_null(strstr(text_of(&request, "reason_text"), "is started again in "));
    assert_non_null(strstr(text_of(&request, "reason_text"), ": port 8000 is taken"));
    forget(&request);
}

static void test_a_waiting_request_is_answered_at_the_end(void **state)
{
    submit(ADA);
    struct api_request request = from(ADA, 1), other = from(ADA, 1);
    serve("GET", "/v1/tasks/{id}/wait", &request);
    other.key = "timeout_s";
    other.value = "0";
    serve("GET", "/v1/tasks/{id}/wait", &other);
    while (!other.status)
        uv_run(&pretend.loop, UV_RUN_ONCE);
    assert_int_equal(request.status, 0);
    assert_int_equal(feed(EVENT_CANCEL, 1), 0);
    assert_int_equal(feed(EVENT_UNSTARTED, 1), 0);
    assert_int_equal(request.status, 200);
    assert_string_equal(text_of(&request, "state"), "CANCELLED");
    expect_story("CANCEL; UNSTARTED; END; ");
    forget(&request);
    forget(&other);
}

static void test_only_the_owner_and_root_cancel(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 1);
    serve("POST", "/v1/tasks/{id}/cancel", &request);
    assert_int_equal(request.status, 403);
    expect_story("");
    forget(&request);
    request = from(0, 1);
    serve("POST", "/v1/tasks/{id}/cancel", &request);
    assert_int_equal(request.status, 200);
    expect_story("CANCEL; ");
    forget(&request);
    request = from(0, 2);
    serve("POST", "/v1/tasks/{id}/cancel", &request);
    assert_int_equal(request.status, 404);
    forget(&request);
}

/* Cancels tasks that do not exist: each is an answer, too. */
static struct api_request cancel_many(uid_t uid, int n)
{
    struct api_request request = from(uid, 0);
    request.body = json_pack("{s:[]}", "tasks");
    for (int id = 1; id <= n; id++)
        json_array_append_new(json_object_get(request.body, "tasks"), json_integer(id));
    return request;
}

static void test_changes_of_many_tasks_by_users_in_turn(void **state)
{
    struct api_request ada[2] = {cancel_many(ADA, 1000), cancel_many(ADA, 1000)},
                       bob = cancel_many(BOB, 1);
    for (int i = 0; i < 2; i++)
        serve("POST", "/v1/tasks/cancel", &ada[i]);
    serve("POST", "/v1/tasks/cancel", &bob);
    assert_int_equal(bob.status, 200);
    assert_int_equal(ada[1].status, 0);
    while (ada[0].status == 0)
        uv_run(&pretend.loop, UV_RUN_NOWAIT);
    assert_int_equal(ada[1].status, 0); /* in the order of its user */
    while (ada[1].status == 0)
        uv_run(&pretend.loop, UV_RUN_NOWAIT);
    forget(&ada[0]);
    forget(&ada[1]);
    forget(&bob);
}

static void test_a_request_reads_an_array_once(void **state)
{
    pretend.array = 40;
    struct api_request request = from(ADA, 0);
    request.body = json_pack("{s:[s,s,s]}", "tasks", "40_0", "40_1", "40_7");
    serve("POST", "/v1/tasks/cancel", &request);
    assert_int_equal(request.status, 200);
    static const char *const errors[] = {
        "there is no task 41:", "there is no task 42:", "there is no task 40_7:"};
    for (size_t i = 0; i < 3; i++) {
        const json_t *result = json_array_get(json_object_get(request.reply, "results"), i);
        const json_t *error = json_object_get(result, "error");
        assert_non_null(strstr(json_string_value(json_object_get(error, "message")), errors[i]));
    }
    assert_int_equal(pretend.array_reads, 1);
    forget(&request);
    request = from(ADA, 0);
    request.body = submission();
    json_object_set_new(request.body, "after", json_string("any:40_0,any:40_1"));
    serve("POST", "/v1/tasks", &request);
    assert_int_equal(request.status, 201);
    assert_int_equal(pretend.array_reads, 2);
    forget(&request);
}

static void expect_command_refused(
    const char *verb, uid_t uid, json_t *body, int status, const char *word)
{
    char path[64];
    struct api_request request = from(uid, 1);
    request.body = body;
    snprintf(path, sizeof path, "/v1/tasks/{id}/%s", verb);
    serve("POST", path, &request);
    assert_int_equal(request.status, status);
    assert_non_null(strstr(message_of(&request), word));
    forget(&request);
    expect_story("");
}

static void test_a_suspension_is_refused_with_the_reason(void **state)
{
    submit(ADA);
    expect_command_refused("suspend", BOB, NULL, 403, "not yours");
    expect_command_refused("suspend", ADA, NULL, 409, "only a running task");
    assert_int_equal(feed(EVENT_STARTED, 1), 0);
    expect_story("STARTED; ");
    expect_command_refused(
        "suspend", ADA, NULL, 409, "cannot suspend"); /* the pretend core can not */
    expect_command_refused("resume", ADA, NULL, 409, "it cannot be resumed");
    expect_command_refused("move", ADA, NULL, 400, "gpus");
    expect_command_refused("move", ADA, json_pack("{s:[]}", "gpus"), 400, "gpus");
    expect_command_refused("move", ADA, json_pack("{s:[i]}", "gpus", 0), 400, "no GPU");
    expect_command_refused("move", ADA, json_pack("{s:[s]}", "gpus", "7"), 400, "no GPU 7");
    expect_command_refused("move", ADA, json_pack("{s:[s]}", "gpus", "0"), 409, "cannot be moved");
    struct api_request request = from(ADA, 1);
    serve("GET", "/v1/tasks/{id}", &request);
    assert_string_equal(text_of(&request, "suspension_error"), "a profiler is attached");
    assert_string_equal(text_of(&request, "carrier_obstacle"), "process 7: it uses managed memory");
    assert_string_equal(text_of(&request, "copy_room_text"),
        "2.0 GiB are ready; its user has 3.0 GiB, and a share of 4.0 GiB");
    forget(&request);
}

/* Counts `n` suspensions by a user now, as if they were in the log. */
static void note_commands(int n, uid_t by_uid)
{
    struct event event = {
        .kind = EVENT_SUSPEND, .task = 1, .time_us = driver_now_us(pretend.driver)};
    json_t *detail = json_pack("{s:I}", "by_uid", (json_int_t)by_uid);
    for (int i = 0; i < n; i++)
        jobs_note_change(pretend.jobs, &event, detail);
    json_decref(detail);
}

static void test_commands_of_a_user_are_limited(void **state)
{
    const struct event suspend = {.kind = EVENT_SUSPEND, .task = 1};
    struct fault fault;
    submit(ADA);
    note_commands(HTTP_COMMANDS_PER_DAY, 0);
    note_commands(HTTP_COMMANDS_PER_DAY - 1, ADA);
    assert_int_equal(http_check_command(seen.http, ADA, &suspend, &fault), 0);
    note_commands(1, ADA);
    assert_int_equal(http_check_command(seen.http, ADA, &suspend, &fault), -EAGAIN);
    assert_int_equal(http_check_command(seen.http, BOB, &suspend, &fault), 0);
    assert_int_equal(http_check_command(seen.http, 0, &suspend, &fault), 0);
    expect_command_refused("resume", ADA, NULL, 409, "cannot be resumed"); /* may still be */
    note_commands(HTTP_COMMANDS_PER_DAY, ADA);
    expect_command_refused("resume", ADA, NULL, 429, "try again in an hour");
    expect_command_refused("resume", 0, NULL, 409, "cannot be resumed");
    int64_t now_us = driver_now_us(pretend.driver);
    assert_int_equal(jobs_commands_of_user(pretend.jobs, ADA, now_us + DAY_US), 0);
}

static void test_the_list_has_live_tasks(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 0);
    serve("GET", "/v1/tasks", &request);
    const json_t *tasks = json_object_get(request.reply, "tasks");
    assert_int_equal(json_array_size(tasks), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(tasks, 0), "user")), "ada");
    forget(&request);
    request = from(BOB, 0);
    request.key = "state";
    request.value = "ASLEEP";
    serve("GET", "/v1/tasks", &request);
    assert_int_equal(request.status, 400);
    forget(&request);
}

static void test_gpus_with_tasks_and_external_processes(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 0);
    serve("GET", "/v1/gpus", &request);
    const json_t *gpu = json_array_get(json_object_get(request.reply, "gpus"), 0);
    const json_t *task = json_array_get(json_object_get(gpu, "tasks"), 0);
    assert_int_equal(json_integer_value(json_object_get(task, "id")), 1);
    assert_true(json_real_value(json_object_get(task, "unused_s")) > 6.9);
    assert_true(json_is_true(json_object_get(task, "unused_for_long")));
    assert_true(json_is_null(json_object_get(task, "power_w"))); /* unknown is not zero */
    assert_int_equal(json_array_size(json_object_get(gpu, "foreign_processes")), 1);
    assert_true(json_real_value(json_object_get(gpu, "foreign_smact")) > 0.04);
    assert_string_equal(json_string_value(json_object_get(gpu, "health")), "ok");
    forget(&request);
}

static void test_metrics_leave_out_what_is_not_known(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 0);
    serve("GET", "/v1/metrics", &request);
    assert_non_null(strstr(request.text, "colloc_gpu_sm_active_ratio{gpu=\"0\""));
    assert_non_null(strstr(request.text, "colloc_gpu_foreign_processes{gpu=\"0\""));
    assert_null(strstr(request.text, "colloc_gpu_power_watts{"));
    assert_non_null(strstr(request.text, "colloc_state_disk_available_bytes 5000000000\n"));
    assert_null(strstr(request.text, "colloc_state_disk_size_bytes 0"));
    assert_non_null(strstr(request.text, "colloc_carrier_pool_size_bytes 8000\n"));
    assert_non_null(strstr(request.text, "colloc_carrier_pool_bytes{state=\"ready\"} 2000\n"));
    assert_non_null(strstr(request.text, "colloc_carrier_pool_bytes{state=\"used\"} 1000\n"));
    assert_non_null(strstr(request.text, "# TYPE colloc_info gauge\n"));
    assert_null(strstr(request.text, "# EOF"));
    forget(&request);
}

static void test_metrics_as_openmetrics(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 0);
    request.key = "Accept";
    request.value = "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.25";
    serve("GET", "/v1/metrics", &request);
    assert_non_null(strstr(request.text, "# TYPE colloc info\n"));
    assert_non_null(strstr(request.text, "\ncolloc_info{"));
    assert_non_null(strstr(request.text, "# TYPE colloc_tasks_ended counter\n"));
    assert_non_null(strstr(request.text, "\ncolloc_tasks_ended_total{state=\"FAILED\"} 0\n"));
    assert_string_equal(request.text + strlen(request.text) - 7, "\n# EOF\n");
    forget(&request);
}

static void test_metrics_over_time(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 1);
    serve("GET", "/v1/tasks/{id}/series", &request);
    assert_int_equal(request.status, 404); /* none are recorded */
    forget(&request);
    seen.has_metrics = true;
    request = from(BOB, 1);
    request.key = "metric";
    request.value = "smact,power_w";
    serve("GET", "/v1/tasks/{id}/series", &request);
    assert_int_equal(request.status, 200);
    assert_int_equal(json_integer_value(json_object_get(request.reply, "task")), 1);
    assert_true(json_is_array(json_object_get(request.reply, "attempts")));
    assert_string_equal(
        json_string_value(json_object_get(request.reply, "metrics")), "smact,power_w");
    forget(&request);
    request = from(BOB, 1);
    request.key = "metric";
    request.value = "smact,speed";
    serve("GET", "/v1/tasks/{id}/series", &request);
    assert_int_equal(request.status, 400);
    forget(&request);
    request = from(BOB, 2);
    serve("GET", "/v1/tasks/{id}/series", &request);
    assert_int_equal(request.status, 404);
    forget(&request);
    request = from(BOB, 0);
    serve("GET", "/v1/gpus/{name}/series", &request);
    assert_true(json_is_null(json_object_get(request.reply, "task")));
    assert_int_equal(json_integer_value(json_object_get(request.reply, "only_gpu")), 0);
    forget(&request);
    seen.has_metrics = false;
}

static void test_lanes_of_many_pages_are_read_once(void **state)
{
    seen.has_metrics = true;
    for (int i = 0; i < 4; i++) { /* the first of each two asks the recorder */
        struct api_request request = from(BOB, 0);
        request.key = "since";
        request.value = i < 2 ? "1700000000" : "1700000010";
        serve("GET", "/v1/gpus/{name}/series", &request);
        assert_int_equal(request.status, 200);
        assert_int_equal(seen.metric_questions, i / 2 + 1);
        forget(&request);
    }
    submit(ADA);
    for (int i = 0; i < 2; i++) { /* a task's are its own */
        struct api_request request = from(BOB, 1);
        serve("GET", "/v1/tasks/{id}/series", &request);
        forget(&request);
        assert_int_equal(seen.metric_questions, 3 + i);
    }
    seen.has_metrics = false;
}

/* The finest steps of the setting that go back so far; whole steps only. */
static void expect_samples(const char *since_s, int64_t step_ms, int64_t back_ms)
{
    struct api_request request = from(BOB, 0);
    request.key = "since_s";
    request.value = since_s;
    serve("GET", "/v1/samples", &request);
    assert_int_equal(request.status, 200);
    forget(&request);
    assert_int_equal(seen.asked_ms[2], step_ms);
    assert_int_equal(seen.asked_ms[0] % step_ms, 0);
    assert_int_equal(seen.asked_ms[1] % step_ms, 0);
    int64_t span_ms = seen.asked_ms[1] - seen.asked_ms[0];
    assert_in_range(span_ms, back_ms - 2 * step_ms, back_ms);
}

static void test_samples_in_the_steps_of_the_setting(void **state)
{
    seen.has_metrics = true;
    seen.config.samples = (struct samples_kept){
        {{SECOND_US / 5, MINUTE_US}, {10 * SECOND_US, HOUR_US}}, 2};
    expect_samples("30", 200, 30000);
    expect_samples("61", 10000, 61000);
    expect_samples("7200", 10000, 3600000);
    struct api_request request = from(BOB, 0);
    request.key = "since_s";
    request.value = "x";
    serve("GET", "/v1/samples", &request);
    assert_int_equal(request.status, 400);
    forget(&request);
    int before = seen.metric_questions;
    for (int none = 0; none < 2; none++) { /* by the setting samples, or by metrics-size */
        seen.has_metrics = none;
        seen.config.samples.n = none ? 0 : 2;
        request = from(BOB, 0);
        serve("GET", "/v1/samples", &request);
        assert_int_equal(request.status, 200);
        assert_int_equal(json_array_size(json_object_get(request.reply, "gpus")), 0);
        forget(&request);
    }
    assert_int_equal(seen.metric_questions, before);
    seen.has_metrics = false;
}

static void test_readers_of_events(void **state)
{
    struct api_request request = from(BOB, 0);
    serve("GET", "/v1/events", &request);
    assert_non_null(strstr(seen.sent, "event: reset\n"));
    assert_non_null(strstr(seen.sent, "event: gpus\n"));
    forget(&request);
    seen.on_closed(seen.reader);
    request = from(BOB, 0);
    request.key = "Last-Event-ID";
    request.value = "five";
    serve("GET", "/v1/events", &request);
    assert_int_equal(request.status, 400);
    forget(&request);
}

static void test_logins_to_the_page(void **state)
{
    struct api_request request = from(ADA, 0);
    serve("POST", "/v1/web", &request);
    assert_int_equal(request.status, 200);
    assert_non_null(json_object_get(request.reply, "url"));
    forget(&request);
    request = from(BOB, 0);
    serve("POST", "/v1/web", &request);
    assert_int_equal(request.status, 409);
    forget(&request);
}

static void test_totals(void **state)
{
    struct api_request request = from(BOB, 0);
    serve("GET", "/v1/stats", &request);
    assert_int_equal(json_integer_value(json_object_get(request.reply, "tasks_completed")), 3);
    assert_true(json_is_null(json_object_get(request.reply, "mean_smact")));
    assert_true(json_real_value(json_object_get(request.reply, "energy_mj")) > 4.9);
    forget(&request);
}

static void test_only_root_clears_a_gpu(void **state)
{
    struct api_request request = from(BOB, 0);
    serve("POST", "/v1/gpus/clear", &request);
    assert_int_equal(request.status, 403);
    forget(&request);
    request = from(0, 0);
    request.body = json_pack("{s:s}", "gpu", "7");
    serve("POST", "/v1/gpus/clear", &request);
    assert_int_equal(request.status, 404);
    assert_int_equal(seen.cleared, 0);
    forget(&request);
    request = from(0, 0);
    request.body = json_pack("{s:s}", "gpu", "GPU-0");
    serve("POST", "/v1/gpus/clear", &request);
    assert_int_equal(request.status, 200);
    assert_int_equal(seen.cleared, 1);
    forget(&request);
}

static void test_mps_by_hand(void **state)
{
    struct api_request request = from(ADA, 0);
    serve("POST", "/v1/mps/start", &request);
    assert_int_equal(request.status, 200);
    assert_int_equal(seen.mps_uid, ADA);
    forget(&request);
    request = from(ADA, 0);
    request.body = json_pack("{s:i}", "uid", BOB);
    serve("POST", "/v1/mps/start", &request);
    assert_int_equal(request.status, 403);
    forget(&request);
    request = from(0, 0);
    request.body = json_pack("{s:i}", "uid", BOB);
    seen.mps_answer = -EBUSY;
    serve("POST", "/v1/mps/start", &request);
    assert_int_equal(request.status, 409);
    assert_int_equal(seen.mps_uid, BOB);
    forget(&request);
}

/* It is stopped by name, but not started. */
static void test_mps_of_an_instance(void **state)
{
    struct api_request request = from(ADA, 0);
    request.body = json_pack("{s:s}", "gpu_uuid", "MIG-1");
    serve("POST", "/v1/mps/stop", &request);
    assert_int_equal(request.status, 409);
    assert_string_equal(seen.mps_instance, "MIG-1");
    forget(&request);
    request = from(ADA, 0);
    request.body = json_pack("{s:s}", "gpu_uuid", "MIG-1");
    serve("POST", "/v1/mps/start", &request);
    assert_int_equal(request.status, 400);
    forget(&request);
}

static void test_output_is_read_as_its_owner(void **state)
{
    submit(ADA);
    struct api_request request = from(BOB, 1);
    serve("GET", "/v1/tasks/{id}/log", &request);
    assert_int_equal(request.status, 403);
    forget(&request);
    request = from(ADA, 1);
    request.key = "stream";
    request.value = "stdin";
    serve("GET", "/v1/tasks/{id}/log", &request);
    assert_int_equal(request.status, 400);
    forget(&request);
    expect_story("");
}

static void test_the_end_answers_what_waits(void **state)
{
    submit(ADA);
    struct api_request request = from(ADA, 1);
    serve("GET", "/v1/tasks/{id}/wait", &request);
    http_close(seen.http);
    expect_story("server destroyed; "); /* which answers those without an answer */
    http_close(seen.http);
    expect_story("");
    forget(&request);
}

static void test_users_that_are_not_listed(void **state)
{
    struct name name = name_of(ADA);
    http_name_changed(seen.http, &name);
    name.state = NAME_NONE;
    http_name_changed(seen.http, &name);
    name.state = NAME_NO_ANSWER;
    http_name_changed(seen.http, &name);
    expect_story("1000 is listed; 1000 is unlisted; 1000 is unlisted; ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_submission_becomes_a_task),
        TEST(users_that_are_not_listed_are_one_reader),
        TEST(limits_that_are_not_enforced_are_named),
        TEST(a_large_summary_is_estimated_by_a_helper),
        TEST(whose_runs_an_estimate_uses),
        TEST(bad_submissions_are_refused),
        TEST(services_have_different_ports),
        TEST(services_of_one_turn_have_different_ports),
        TEST(limits_of_a_user),
        TEST(limits_of_a_project),
        TEST(a_projects_limit_without_root),
        TEST(a_projects_limit_of_unlisted_users),
        TEST(a_users_limit_in_one_turn),
        TEST(a_projects_limit_in_one_turn),
        TEST(a_users_bytes_in_one_turn),
        TEST(nothing_is_submitted_at_the_end),
        TEST(no_gpus),
        TEST(a_deferred_start_is_pending),
        TEST(a_service_that_is_run_again_has_the_reason),
        TEST(a_waiting_request_is_answered_at_the_end),
        TEST(only_the_owner_and_root_cancel),
        TEST(changes_of_many_tasks_by_users_in_turn),
        TEST(a_request_reads_an_array_once),
        TEST(a_suspension_is_refused_with_the_reason),
        TEST(commands_of_a_user_are_limited),
        TEST(the_list_has_live_tasks),
        TEST(gpus_with_tasks_and_external_processes),
        TEST(metrics_leave_out_what_is_not_known),
        TEST(metrics_as_openmetrics),
        TEST(metrics_over_time),
        TEST(lanes_of_many_pages_are_read_once),
        TEST(samples_in_the_steps_of_the_setting),
        TEST(readers_of_events),
        TEST(logins_to_the_page),
        TEST(totals),
        TEST(only_root_clears_a_gpu),
        TEST(mps_by_hand),
        TEST(mps_of_an_instance),
        TEST(output_is_read_as_its_owner),
        TEST(the_end_answers_what_waits),
        TEST(users_that_are_not_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
