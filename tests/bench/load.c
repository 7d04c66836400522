/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load on a collocd: clients that submit as fast as they are answered, or a single one that waits
 * for each task's first instruction. bench_daemon.py runs it; lines on stdout are its answers.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client.h"
#include "base/units.h"
#include "bench.h"

enum {
    SCRIPT_BYTES = 1024,
    ENVIRONMENT_BYTES = 3072,
    SUMMARY_BYTES = 20 * 1024,
    SUMMARY_EVERY = 5
};

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static struct client *connect_to(const char *socket)
{
    struct fault fault = {""};
    struct client *client;
    if (client_open(socket, &fault, &client) < 0)
        give_up(fault.text);
    return client;
}

/* The reply, of this status. */
static json_t *ask(
    struct client *client, const char *method, const char *path, const json_t *body, int wanted)
{
    struct fault fault = {""};
    int status;
    json_t *reply;
    if (client_request(client, method, path, body, &fault, &status, &reply) < 0)
        give_up(fault.text);
    if (status != wanted) {
        client_error(status, reply, &fault);
        give_up(fault.text);
    }
    return reply;
}

/* ---- many clients, no task starts ---- */

struct submitter {
    pthread_t thread;
    struct client *client;
    int number;
    size_t count;
    double *took_us;
};

static json_t *made_up_environment(int client)
{
    static const int variables = 48;
    char name[32], value[64];
    json_t *environment = json_object();
    for (int i = 0; i < variables; i++) {
        snprintf(name, sizeof name, "VARIABLE_%02d", i);
        snprintf(value, sizeof value, "/home/user%d/%0*d", client,
            ENVIRONMENT_BYTES / variables - 28, i);
        json_object_set_new(environment, name, json_string(value));
    }
    return environment;
}

/* As torchsummary prints it. */
static json_t *made_up_summary(void)
{
    char text[SUMMARY_BYTES + 128];
    static const char *const types[] = {"Conv2d", "BatchNorm2d", "ReLU"};
    size_t n = 0;
    for (int i = 1; n < SUMMARY_BYTES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%20s-%-4d [32, 256, 14, 14] %15s\n",
            types[i % 3], i, "590,080");
    return json_pack("{s:s, s:s}", "name", "model.txt", "text", text);
}

static json_t *made_up_task(
    const struct submitter *self, const json_t *environment, const json_t *summary, size_t i)
{
    char script[SCRIPT_BYTES + 1];
    int n = snprintf(
        script, sizeof script, "#!/bin/bash\npython train.py --seed=%d-%zu\n", self->number, i);
    memset(script + n, '#', sizeof script - (size_t)n - 1);
    script[SCRIPT_BYTES] = '\0';
    json_t *task = json_pack("{s:s, s:s, s:s, s:i, s:O}", "script", script, "name", "train.sh",
        "cwd", "/tmp", "gpus", 1, "environment", environment);
    if (i % SUMMARY_EVERY == 0) {
        json_object_set(task, "summary", (json_t *)(uintptr_t)summary);
        json_object_set_new(task, "batch", json_integer(32));
    }
    return task;
}

static void *submit_all(void *context)
{
    struct submitter *self = context;
    json_t *environment = made_up_environment(self->number), *summary = made_up_summary();
    for (size_t i = 0; i < self->count; i++) {
        json_t *task = made_up_task(self, environment, summary, i);
        double before = bench_now_us();
        json_t *reply = ask(self->client, "POST", "/v1/tasks", task, 201);
        self->took_us[i] = bench_now_us() - before;
        json_decref(reply);
        json_decref(task);
    }
    json_decref(environment);
    json_decref(summary);
    client_close(self->client);
    return NULL;
}

static int submit_many(const char *socket, size_t clients, size_t tasks)
{
    struct submitter *submitters = calloc(clients, sizeof *submitters);
    double *took_us = calloc(tasks, sizeof *took_us);
    if (!submitters || !took_us)
        give_up("out of memory");
    size_t each = tasks / clients, n = each * clients;
    for (size_t i = 0; i < clients; i++)
        submitters[i] = (struct submitter){.client = connect_to(socket),
            .number = (int)i,
            .count = each,
            .took_us = took_us + i * each};
    double before = bench_now_us();
    for (size_t i = 0; i < clients; i++)
        if (pthread_create(&submitters[i].thread, NULL, submit_all, &submitters[i]) != 0)
            give_up("no thread to be had");
    for (size_t i = 0; i < clients; i++)
        pthread_join(submitters[i].thread, NULL);
    double seconds = (bench_now_us() - before) / 1e6;
    bench_sort(took_us, n);
    printf("%.6g %.6g %.6g\n", (double)n / seconds, bench_quantile(took_us, n, 0.5),
        bench_quantile(took_us, n, 0.99));
    free(took_us);
    free(submitters);
    return 0;
}

/* ---- one client, each task starts ---- */

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t read_stamp(struct client *client, int64_t id)
{
    char path[128];
    struct fault fault = {""};
    struct client_log log;
    int status;
    snprintf(path, sizeof path, "/v1/tasks/%lld/log?stream=stdout", (long long)id);
    if (client_read_log(client, path, &fault, &status, &log) < 0 || status != 200 || log.size == 0)
        give_up("a task has left no stamp");
    int64_t ns = strtoll(log.data, NULL, 10);
    free(log.data);
    return ns;
}

static void await_end(struct client *client, int64_t id)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/tasks/%lld/wait?timeout_s=30", (long long)id);
    json_decref(ask(client, "GET", path, NULL, 200));
}

/* One line per task: milliseconds from the reply to the task's first instruction, below zero when
 * that came first. */
static int start_each(const char *socket, const char *stamp, int tasks)
{
    char script[4200];
    snprintf(script, sizeof script, "#!%s\n", stamp);
    struct client *client = connect_to(socket);
    json_t *body = json_pack(
        "{s:s, s:s, s:{s:s}}", "script", script, "cwd", "/tmp", "environment", "PATH", "/bin");
    for (int i = 0; i < tasks; i++) {
        json_t *reply = ask(client, "POST", "/v1/tasks", body, 201);
        int64_t returned_ns = wall_ns();
        int64_t id = json_integer_value(json_object_get(reply, "id"));
        json_decref(reply);
        await_end(client, id);
        printf("%.6g\n", (double)(read_stamp(client, id) - returned_ns) / 1e6);
    }
    json_decref(body);
    client_close(client);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t first, second;
    if (argc == 5 && strcmp(argv[1], "submit") == 0 && parse_int64(argv[3], 1, 1000, &first) == 0 &&
        parse_int64(argv[4], first, 1000000, &second) == 0)
        return submit_many(argv[2], (size_t)first, (size_t)second);
    if (argc == 5 && strcmp(argv[1], "start") == 0 && parse_int64(argv[4], 1, 1000000, &first) == 0)
        return start_each(argv[2], argv[3], (int)first);
    fprintf(
        stderr, "usage: load submit SOCKET CLIENTS TASKS\n       load start SOCKET STAMP TASKS\n");
    return 2;
}
