/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers colloc's commands on the controller. The answers are made from the controller's data of
 * the last update (cluster_json.h), so no request costs slurmctld anything. The kernel reports the
 * user of a request. Jobs are changed by Slurm's own commands: a request to change one is answered
 * with their names.
 */
#include "slurm/slurm_api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/server.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "service/socket_folder.h"
#include "service/tcp_server.h"
#include "service/user_names.h"
#include "service/web_server.h"
#include "slurm/cluster_json.h"
#include "slurm/login_gate.h"
#include "slurm/slurm_events.h"

/* Chosen: only refused requests have bodies; the rest is as in collocd. */
enum {
    BODY_MAX = 64 * 1024,
    BYTES_MAX = 64 * 1024 * 1024,
    IDLE_TIMEOUT_S = 75,
    LOGIN_TIMEOUT_S = 10,       /* of connections from other machines, which are used once */
    CONNECTIONS_MAX = 256,      /* of one user */
    LOGIN_CONNECTIONS_MAX = 32, /* of one user from other machines */
};

struct slurm_api {
    const struct slurm_config *config;
    const struct slurm_controller *controller;
    struct names *names;
    struct tcp_server *server; /* the Unix socket's */
    struct tcp_server *login;  /* of other machines; NULL: none */
    struct login_gate *gate;   /* of these */
    struct web *web;
    struct slurm_events *events;
    struct cluster_starts starts;
    bool lacks_name; /* the answer that is being made has a number for a user */
    uid_t lacking;   /* the last such user */
    bool is_retry;   /* it is made for the second time */
};

static const char *find_user_name(void *context, uid_t uid)
{
    struct slurm_api *api = context;
    const struct name *name = names_of_uid(api->names, uid);
    if (name->state == NAME_ASKED) {
        api->lacks_name = true;
        api->lacking = uid;
    }
    return name->name;
}

static struct cluster_asker asker_of(struct slurm_api *api, const struct api_request *request)
{
    return (struct cluster_asker){api_request_peer(request).uid, find_user_name, api};
}

/* ---- answers that wait for names ---- */

/* Sends answers that were made outside of the servers' own turns. */
static void run_servers(void *context)
{
    struct slurm_api *api = context;
    tcp_server_run(api->server);
    if (api->login)
        tcp_server_run(api->login);
    web_run(api->web);
}

typedef void handle_request(void *context, struct api_request *request);

struct late_answer {
    struct slurm_api *api;
    struct api_request *request;
    handle_request *handle;
};

static void on_name(void *context, const struct name *name)
{
    struct late_answer *late = context;
    late->api->is_retry = true;
    late->handle(late->api, late->request);
    late->api->is_retry = false;
    run_servers(late->api);
    free(late);
}

/* Users are looked up by helper processes. An answer without a name is made again, once, when the
 * last name is known or took too long; then the number is shown. */
static bool waits_for_names(
    struct slurm_api *api, struct api_request *request, handle_request *handle)
{
    bool waits = api->lacks_name && !api->is_retry;
    api->lacks_name = false;
    struct late_answer *late = waits ? malloc(sizeof *late) : NULL;
    if (!late)
        return false;
    *late = (struct late_answer){api, request, handle};
    names_ask_uid(api->names, api->lacking, on_name, late);
    return true;
}

/* ---- the routes ---- */

static void route_jobs(void *context, struct api_request *request)
{
    struct slurm_api *api = context;
    const struct cluster_asker asker = asker_of(api, request);
    const char *state = api_request_query(request, "state");
    const struct cluster_jobs_query query = {.state = state ? state : "live",
        .user = api_request_query(request, "user"),
        .after = api_request_query(request, "after")};
    json_t *answer = NULL;
    int r = cluster_jobs_json(api->controller, &asker, &query, &answer);
    if (waits_for_names(api, request, route_jobs))
        json_decref(answer);
    else if (r == -EINVAL)
        api_reply_error(request, 400, "after: this place was not made by the controller");
    else
        api_reply(request, 200, r == 0 ? answer : NULL);
}

static void route_job(void *context, struct api_request *request)
{
    struct slurm_api *api = context;
    const struct cluster_asker asker = asker_of(api, request);
    const char *name = api_request_name(request);
    uint64_t id = api_request_id(request);
    int64_t index = SLURM_NO_INDEX;
    json_t *answer = NULL;
    int r = -ENOENT;
    if (id < SLURM_NO_INDEX && (!*name || parse_int64(name, 0, SLURM_NO_INDEX - 1, &index) == 0))
        r = cluster_job_json(api->controller, &asker, (uint32_t)id, (uint32_t)index, &answer);
    if (waits_for_names(api, request, route_job))
        json_decref(answer);
    else if (r == -ENOENT)
        api_reply_error(request, 404,
            "there is no job %llu in the partitions %s and %s: `squeue` and `sacct` know all others",
            (unsigned long long)id, api->config->intake_partition, api->config->run_partition);
    else
        api_reply(request, 200, answer);
}

static void route_gpus(void *context, struct api_request *request)
{
    struct slurm_api *api = context;
    const struct cluster_asker asker = asker_of(api, request);
    json_t *answer = cluster_gpus_json(api->controller, &asker);
    json_object_set_new(answer, "sharing", json_string(sharing_name(api->config->sharing)));
    api_reply(request, 200, answer);
}

static void route_starts(void *context, struct api_request *request)
{
    struct slurm_api *api = context;
    const struct cluster_asker asker = asker_of(api, request);
    api_reply(request, 200,
        cluster_starts_json(
            api->controller, &asker, clock_wall_us() - clock_monotonic_us(), &api->starts));
}

static json_t *settings_json(const struct slurm_config *config)
{
    const struct conditions *conditions = &config->core.conditions;
    return json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "intake_partition",
        config->intake_partition, "run_partition", config->run_partition, "shards_per_gpu",
        config->shards_per_gpu, "smact_max", conditions->smact_max, "min_free_mib",
        (double)conditions->min_free_bytes / (double)MIB, "margin_mib",
        (double)conditions->margin_bytes / (double)MIB, "window_s",
        (double)config->core.window_us / 1e6, "settle_s", (double)config->core.settle_us / 1e6,
        "settle_max_s", (double)config->core.settle_max_us / 1e6, "recoveries",
        config->core.recoveries_max, "tasks_per_gpu", conditions->tasks_per_gpu_max);
}

static void route_info(void *context, struct api_request *request)
{
    const struct slurm_api *api = context;
    const struct slurm_config *config = api->config;
    int waiting, running;
    cluster_count_jobs(api->controller, &waiting, &running);
    api_reply(request, 200,
        json_pack("{s:s, s:i, s:b, s:i, s:s, s:s, s:s, s:s, s:o, s:i, s:i}", "version",
            COLLOC_VERSION, "api", 1, "slurm", true, "pid", (int)getpid(), "policy",
            config->core.policy->name, "sharing", sharing_name(config->sharing), "estimator",
            config->estimator, "state_dir", config->state_dir, "settings", settings_json(config),
            "queued", waiting, "running", running));
}

static void route_events(void *context, struct api_request *request)
{
    struct slurm_api *api = context;
    slurm_events_follow(api->events, request);
}

/* Over the network the login could be read, and another browser could use it first. */
static void refuse_remote_login(struct api_request *request)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    api_reply_error(request, 409,
        "no login to the web page is sent to another machine, since it could be read on the "
        "network: log in to the controller's machine %s with ssh and run `colloc web` there; it "
        "says how to reach the page through an SSH tunnel",
        host);
}

/* The kernel has identified the user, which gets the address of a login to the page. */
static void route_web(void *context, struct api_request *request)
{
    struct slurm_api *api = context;
    struct api_peer peer = api_request_peer(request);
    struct fault fault = {0};
    char *url;
    if (api_request_is_signed(request)) {
        refuse_remote_login(request);
        return;
    }
    int r = web_make_login(api->web, &peer, &fault, &url);
    if (r < 0) {
        api_reply_error(request, r == -EPERM ? 409 : 503, "%s", fault.text);
        return;
    }
    api_reply(request, 200, json_pack("{s:s}", "url", url));
    free(url);
}

static void refuse_submission(void *context, struct api_request *request)
{
    const struct slurm_api *api = context;
    api_reply_error(request, 409, "jobs of this cluster are submitted with `sbatch -p %s`",
        api->config->intake_partition);
}

static void refuse_change(void *context, struct api_request *request)
{
    api_reply_error(request, 409,
        "jobs of this cluster are changed with Slurm's commands: `scancel`, `scontrol hold`, "
        "`release`, `update`");
}

static void refuse_series(void *context, struct api_request *request)
{
    api_reply_error(request, 404,
        "the controller of a Slurm cluster does not record GPUs and jobs over time: all figures "
        "here are of now");
}

static void refuse_question(void *context, struct api_request *request)
{
    api_reply_error(request, 404,
        "the controller of a Slurm cluster does not record this: see `sacct`, and the files of "
        "the jobs");
}

static const struct api_route routes[] = {
    {"GET", "/v1/tasks", route_jobs},
    {"GET", "/v1/tasks/{id}", route_job},
    {"GET", "/v1/gpus", route_gpus},
    {"GET", "/v1/info", route_info},
    {"POST", "/v1/tasks", refuse_submission},
    {"POST", "/v1/tasks/cancel", refuse_change},
    {"POST", "/v1/tasks/hold", refuse_change},
    {"POST", "/v1/tasks/release", refuse_change},
    {"POST", "/v1/tasks/{id}/cancel", refuse_change},
    {"POST", "/v1/tasks/{id}/hold", refuse_change},
    {"POST", "/v1/tasks/{id}/release", refuse_change},
    {"POST", "/v1/tasks/{id}/update", refuse_change},
    {"POST", "/v1/tasks/{id}/suspend", refuse_change},
    {"POST", "/v1/tasks/{id}/resume", refuse_change},
    {"POST", "/v1/tasks/{id}/move", refuse_change},
    {"GET", "/v1/tasks/{id}/log", refuse_question},
    {"GET", "/v1/tasks/{id}/wait", refuse_question},
    {"GET", "/v1/tasks/{id}/series", refuse_series},
    {"GET", "/v1/gpus/{name}/series", refuse_series},
    {"GET", "/v1/events", route_events},
    {"GET", "/v1/samples", refuse_question},
    {"GET", "/v1/starts", route_starts},
    {"GET", "/v1/share", refuse_question},
    {"GET", "/v1/reservations", refuse_question},
    {"GET", "/v1/stats", refuse_question},
    {"POST", "/v1/web", route_web},
    {NULL, NULL, NULL},
};

/* ---- life ---- */

static struct api_server_options server_options(struct slurm_api *api)
{
    return (struct api_server_options){
        .routes = routes,
        .context = api,
        .version = COLLOC_VERSION,
        .body_max_bytes = BODY_MAX,
        .bytes_max = BYTES_MAX,
        .idle_timeout_s = IDLE_TIMEOUT_S,
        .connections_per_user_max = CONNECTIONS_MAX,
    };
}

static int listen_on_socket(struct slurm_api *api, struct fault *fault)
{
    struct api_server_options options = server_options(api);
    if (strcmp(api->config->socket, "none") == 0)
        return 0;
    options.socket_path = api->config->socket;
    options.socket_mode = 0666;
    int r = socket_folder_make(api->config->socket, 0755, fault);
    return r < 0 ? r : tcp_server_listen_unix(api->server, &options, fault);
}

static void on_login_listening(void *gate)
{
    log_info("login-listen: requests of other machines are accepted");
}

static int listen_for_logins(struct slurm_api *api, uv_loop_t *loop, struct fault *fault)
{
    struct api_server_options options = server_options(api);
    if (strcmp(api->config->login_listen, "none") == 0)
        return 0;
    if (strcmp(api->config->login_name, "none") == 0)
        log_warning("login-name is not set: requests to another controller with the same port and "
                    "munge key are accepted here, too");
    api->login = tcp_server_create(loop);
    if (!api->login)
        return fault_set(fault, ENOMEM, "out of memory");
    const struct login_gate_options gate = {.loop = loop,
        .munge_socket = api->config->munge_socket,
        .name = api->config->login_name,
        .address = tcp_server_address(api->login),
        .answered = run_servers,
        .context = api};
    api->gate = login_gate_create(&gate);
    if (!api->gate)
        return fault_set(fault, ENOMEM, "out of memory");
    options.admit = login_gate_admit;
    options.forget = login_gate_forget;
    options.server_data = api->gate;
    options.idle_timeout_s = LOGIN_TIMEOUT_S;
    options.connections_per_user_max = LOGIN_CONNECTIONS_MAX;
    options.proves_users = true;
    return tcp_server_listen_patiently(
        api->login, "login-listen", api->config->login_listen, &options, on_login_listening, fault);
}

static struct web *create_web(
    struct slurm_api *api, const struct slurm_config *config, uv_loop_t *loop)
{
    const struct web_options options = {.loop = loop,
        .address = config->web,
        .bytes_max = BYTES_MAX,
        .routes = routes,
        .context = api};
    return web_create(&options);
}

int slurm_api_create(uv_loop_t *loop, const struct slurm_config *config,
    const struct slurm_controller *controller, struct fault *fault, struct slurm_api **ret_api)
{
    struct slurm_api *api = calloc(1, sizeof *api);
    *ret_api = api;
    if (!api)
        return fault_set(fault, ENOMEM, "out of memory");
    *api = (struct slurm_api){.config = config,
        .controller = controller,
        .names = names_create(loop, NULL, NULL),
        .server = tcp_server_create(loop),
        .events = slurm_events_create(loop, controller, run_servers, api),
        .web = create_web(api, config, loop)};
    if (!api->names || !api->server || !api->events || !api->web)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = listen_on_socket(api, fault);
    if (r == 0)
        r = web_open(api->web, fault);
    return r < 0 ? r : listen_for_logins(api, loop, fault);
}

void slurm_api_updated(struct slurm_api *api)
{
    if (api && api->events)
        slurm_events_updated(api->events);
}

void slurm_api_close(struct slurm_api *api)
{
    if (!api)
        return;
    names_close(api->names); /* answers the requests that wait for a name */
    login_gate_close(api->gate);
    tcp_server_close(api->login);
    tcp_server_close(api->server);
    web_close(api->web);
    slurm_events_close(api->events);
}

void slurm_api_destroy(struct slurm_api *api)
{
    if (!api)
        return;
    web_destroy(api->web);
    slurm_events_destroy(api->events);
    tcp_server_destroy(api->login);
    tcp_server_destroy(api->server);
    login_gate_destroy(api->gate);
    names_destroy(api->names);
    free(api);
}
