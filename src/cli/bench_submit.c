/* SPDX-License-Identifier: Apache-2.0 */
/* Submits a training of `colloc bench` to the daemon: the command of its table as a task, with the
 * way of sharing, the name and the number of GPUs from the table. */
#include "cli/bench_submit.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/client.h"
#include "base/cleanup.h"
#include "cli/request.h"
#include "taskfile/taskfile.h"

static int count_gpus(const char *list)
{
    int n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* With MIG no way of sharing is requested: the instances in the table separate the tasks. */
static int describe_task(
    const struct bench_group *group, int i, struct fault *fault, struct task_description *task)
{
    int r = taskfile_of_command((const char *const *)group->tasks[i].argv, fault, task);
    if (r == 0 && group->tasks[i].sharing != BENCH_MIG)
        r = option_set_text(&task_options[TASK_SHARING], "--sharing",
            group->tasks[i].sharing == BENCH_MPS ? "mps" : "streams", &task->values[TASK_SHARING],
            fault);
    if (r == 0)
        r = option_set_text(&task_options[TASK_NAME], "--name", group->tasks[i].name,
            &task->values[TASK_NAME], fault);
    if (r == 0 && strchr(group->tasks[i].gpus, ',')) {
        char count[16];
        snprintf(count, sizeof count, "%d", count_gpus(group->tasks[i].gpus));
        r = option_set_text(
            &task_options[TASK_GPUS], "--gpus", count, &task->values[TASK_GPUS], fault);
    }
    return r;
}

/* A refusal is a fault with the daemon's own words. */
int bench_submit(struct client *client, const struct bench_group *group, int i, struct fault *fault,
    int64_t *ret_id)
{
    CLEANUP(task_description_fini) struct task_description task = {0};
    json_auto_t *request = NULL, *reply = NULL;
    int status, r = describe_task(group, i, fault, &task);
    if (r == 0)
        r = request_create(&task, (const char *const *)group->tasks[i].argv, fault, &request);
    if (r == 0 && group->tasks[i].folder)
        json_object_set_new(request, "cwd", json_string(group->tasks[i].folder));
    if (r == 0)
        r = client_request(client, "POST", "/v1/tasks", request, fault, &status, &reply);
    if (r == 0 && status >= 400) {
        client_error(status, reply, fault);
        r = -EPROTO;
    }
    if (r == 0)
        *ret_id = json_integer_value(json_object_get(reply, "id"));
    return r;
}
