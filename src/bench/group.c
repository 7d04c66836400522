/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and frees groups and experiments, and names the ways in which a group shares its GPU. */
#include "bench/group.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "bench/training_command.h"

const char *bench_sharing_name(const struct bench_task *task)
{
    static const char *const names[] = {
        [BENCH_SERIAL] = "serial", [BENCH_STREAMS] = "streams", [BENCH_MPS] = "mps"};
    return task->sharing == BENCH_MIG ? task->profile : names[task->sharing];
}

bool bench_group_has(const struct bench_group *group, enum bench_sharing sharing)
{
    for (int i = 0; i < group->n_tasks; i++)
        if (group->tasks[i].sharing == sharing)
            return true;
    return false;
}

bool bench_group_is_serial(const struct bench_group *group)
{
    return bench_group_has(group, BENCH_SERIAL);
}

static bool all_share_alike(const struct bench_group *group)
{
    for (int i = 1; i < group->n_tasks; i++)
        if (strcmp(bench_sharing_name(&group->tasks[i]), bench_sharing_name(&group->tasks[0])) != 0)
            return false;
    return true;
}

int bench_group_name_sharing(struct bench_group *group)
{
    size_t size;
    FILE *out = open_memstream(&group->sharing, &size);
    if (!out)
        return -ENOMEM;
    int n = all_share_alike(group) ? 1 : group->n_tasks;
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? "/" : "", bench_sharing_name(&group->tasks[i]));
    return fclose(out) == 0 ? 0 : -ENOMEM;
}

static void task_fini(struct bench_task *task)
{
    free(task->name);
    free(task->folder);
    free(task->environment);
    training_command_free(task->argv);
}

void bench_group_fini(struct bench_group *group)
{
    for (int i = 0; i < group->n_tasks; i++)
        task_fini(&group->tasks[i]);
    free(group->tasks);
    free(group->name);
    free(group->mix);
    free(group->key);
    free(group->sharing);
}

struct bench_group *experiment_add(struct experiment *experiment)
{
    if (ARRAY_APPEND(experiment->groups, experiment->n_groups, experiment->capacity,
            (struct bench_group){0}) < 0)
        return NULL;
    return &experiment->groups[experiment->n_groups - 1];
}

struct bench_task *bench_group_add(struct bench_group *group)
{
    if (ARRAY_RESERVE(group->tasks, group->tasks_capacity, group->n_tasks + 1) < 0)
        return NULL;
    struct bench_task *task = &group->tasks[group->n_tasks++];
    *task = (struct bench_task){.sharing = BENCH_STREAMS, .threads = BENCH_THREADS_ALL};
    return task;
}

void experiment_fini(struct experiment *experiment)
{
    for (size_t i = 0; i < experiment->n_groups; i++)
        bench_group_fini(&experiment->groups[i]);
    free(experiment->groups);
    *experiment = (struct experiment){0};
}

/* "3g.20gb", "1c.3g.20gb", "1g.10gb+me" */
static bool is_profile(const char *text)
{
    const char *dot = strchr(text, '.');
    return isdigit((unsigned char)*text) && dot && strstr(text, "g.") && strstr(dot, "gb") &&
           text[strspn(text, "0123456789.cgbme+")] == '\0';
}

int bench_sharing_parse(const char *text, struct bench_task *task)
{
    static const struct {
        const char *name;
        enum bench_sharing sharing;
    } known[] = {{"serial", BENCH_SERIAL}, {"streams", BENCH_STREAMS}, {"mps", BENCH_MPS}};
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strcasecmp(text, known[i].name) == 0) {
            task->sharing = known[i].sharing;
            return 0;
        }
    if (!is_profile(text) || strlen(text) >= sizeof task->profile)
        return -EINVAL;
    task->sharing = BENCH_MIG;
    strcpy(task->profile, text);
    return 0;
}
