/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the Slurm job of a process on a GPU. slurmstepd puts each job into a folder job_N of the
 * cgroup tree, in all of Slurm's cgroup plugins:
 *
 *     v1   4:devices:/slurm_n1/uid_1000/job_12/step_0/task_0
 *     v2   0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0
 *
 * Only these two places count: elsewhere users may make folders of any name. Where several slurmds
 * run on one machine, the folder above also names the node: slurm_n1, n1_slurmstepd.scope.
 *
 * Without cgroups the environment names the job. A user can set it to any value, also to another
 * user's job, which would then be charged for the memory of this process. So such an answer is only
 * a claim, and has the user of the process: the caller compares it with the job's user.
 *
 * A process stays in its job, so an answer is valid as long as the process lives. The cache is a
 * small table by pid; the start time distinguishes a process from a later one with the same pid.
 *
 * A process that hangs may keep its environment from its readers. Its job is then not known, and
 * the agent asks for it again later. Many such processes must not take up the sampler's time, so
 * after each wait the next one is asked after a pause:
 *
 *     71 waits 0.2 s | 2 s: 72, 73, 74 are not known | 72 waits 0.2 s | ...
 */
#include "daemon/node/job_of_process.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "base/units.h"
#include "exec/environ_read.h"
#include "exec/limited_visit.h"

enum { CACHE_SIZE = 1024, ENTRY_MAX = 4 << 20 };
#define ASK_AGAIN_US (60 * SECOND_US)             /* chosen: of a process whose job is not known */
#define PAUSE_US     (10 * VISIT_READ_MS * MS_US) /* chosen: a poll still fits between two waits */

struct job_entry {
    pid_t pid; /* 0: none */
    unsigned long long start_ticks;
    struct process_job found;
    int64_t ask_us; /* monotonic: while it is not known, not before */
};

struct job_cache {
    struct job_entry entries[CACHE_SIZE];
    int64_t ask_us; /* monotonic: nor any before this: one did not answer in time */
};

/* A decimal number at the start, ended by `end` or the end of the text. Returns 0: none. */
static uint32_t parse_job(const char *text, char end)
{
    char number[16];
    int64_t job;
    size_t size = strspn(text, "0123456789");
    if (size == 0 || size >= sizeof number || (text[size] && text[size] != end))
        return 0;
    memcpy(number, text, size);
    number[size] = '\0';
    return parse_int64(number, 1, UINT32_MAX, &job) == 0 ? (uint32_t)job : 0;
}

/* A job's folder in the cgroup tree. */
struct job_folder {
    const char *name; /* "job_12/..." */
    struct span node; /* empty: the path does not name it */
};

/* "slurm/" or "slurm_NODE/" */
static void parse_v1(struct span top, struct job_folder *folder)
{
    static const char prefix[] = "slurm_";
    if (span_starts(top, prefix))
        folder->node = (struct span){top.at + strlen(prefix), top.size - strlen(prefix)};
}

/* "slurmstepd.scope" or "NODE_slurmstepd.scope". Returns false: another. */
static bool parse_v2(struct span scope, struct job_folder *folder)
{
    static const char suffix[] = "slurmstepd.scope";
    size_t size = strlen(suffix);
    if (scope.size < size || memcmp(scope.at + scope.size - size, suffix, size) != 0)
        return false;
    size_t rest = scope.size - size;
    if (rest > 0 && scope.at[rest - 1] != '_')
        return false;
    folder->node = (struct span){scope.at, rest > 0 ? rest - 1 : 0};
    return true;
}

/* Finds a job's folder of Slurm's in a line of /proc/PID/cgroup. */
static bool find_job_folder(const char *line, struct job_folder *ret)
{
    static const char slice[] = "/system.slice/";
    const char *path = strstr(line, ":/"), *job = path ? strstr(++path, "/job_") : NULL;
    if (!job)
        return false;
    *ret = (struct job_folder){.name = job + 1};
    if (strncmp(path, "/slurm", strlen("/slurm")) == 0) {
        parse_v1((struct span){path + 1, strcspn(path + 1, "/")}, ret);
        return true;
    }
    if (strncmp(path, slice, strlen(slice)) != 0)
        return false;
    const char *scope = path + strlen(slice);
    return scope < job && !memchr(scope, '/', (size_t)(job - scope)) &&
           parse_v2((struct span){scope, (size_t)(job - scope)}, ret);
}

bool job_in_cgroup(const char *text, const char *node, uint32_t *ret_job)
{
    struct span rest = span_of(text), line;
    struct job_folder folder;
    while (span_next_line(&rest, &line)) {
        char path[4096];
        if (!span_copy(line, path, sizeof path) || !find_job_folder(path, &folder))
            continue;
        uint32_t job = parse_job(folder.name + strlen("job_"), '/');
        if (job == 0)
            continue;
        *ret_job = folder.node.size == 0 || span_is(folder.node, node) ? job : 0;
        return true;
    }
    return false;
}

uint32_t job_in_environment(const char *environment, size_t size, const char *node)
{
    const char *name = process_find_variable(environment, size, "SLURMD_NODENAME");
    const char *id = process_find_variable(environment, size, "SLURM_JOB_ID");
    if (node && name && strcmp(name, node) != 0)
        return 0;
    return id ? parse_job(id, '\0') : 0;
}

bool environment_is_of_node(
    const char *environment, size_t size, const struct slurm_identity *identity)
{
    const char *node = process_find_variable(environment, size, "SLURMD_NODENAME");
    const char *cluster = process_find_variable(environment, size, "SLURM_CLUSTER_NAME");
    return node && strcmp(node, identity->node) == 0 &&
           (!*identity->cluster || !cluster || strcasecmp(cluster, identity->cluster) == 0) &&
           job_in_environment(environment, size, identity->node) != 0;
}

bool job_by_cgroup(pid_t pid, const char *node, uint32_t *ret_job)
{
    char *text;
    size_t size;
    bool is_found = process_read_entry(pid, "cgroup", ENTRY_MAX, &text, &size) == 0 &&
                    job_in_cgroup(text, node, ret_job);
    free(text);
    return is_found;
}

struct process_job job_of_process(pid_t pid, const char *node)
{
    struct process_job found = {.is_known = true};
    struct process_facts facts;
    char *text;
    size_t size;
    if (job_by_cgroup(pid, node, &found.job))
        return found;
    if (environ_read(pid, &text, &size) < 0)
        return (struct process_job){0};
    found.job = job_in_environment(text, size, node);
    free(text);
    if (found.job == 0)
        return found;
    if (process_read(pid, &facts) < 0)
        return (struct process_job){0};
    found.is_claimed = true;
    found.uid = facts.uid;
    return found;
}

/* ---- the cache ---- */

struct job_cache *job_cache_create(void)
{
    return calloc(1, sizeof(struct job_cache));
}

void job_cache_destroy(struct job_cache *cache)
{
    free(cache);
}

/* Fills in a job that is not known yet, where it may be asked for now. */
static void find_job(struct job_cache *cache, struct job_entry *entry, const char *node)
{
    int64_t begun_us = clock_monotonic_us();
    if (entry->found.is_known || begun_us < entry->ask_us || begun_us < cache->ask_us)
        return;
    entry->found = job_of_process(entry->pid, node);
    entry->found.born = entry->start_ticks;
    int64_t now_us = clock_monotonic_us();
    entry->ask_us = now_us + ASK_AGAIN_US;
    if (now_us - begun_us >= VISIT_READ_MS * MS_US)
        cache->ask_us = now_us + PAUSE_US;
}

struct process_job job_cache_find(struct job_cache *cache, pid_t pid, const char *node)
{
    struct job_entry *entry = &cache->entries[(size_t)pid % CACHE_SIZE];
    struct process_stat stat;
    if (process_read_stat(pid, &stat) < 0)
        return (struct process_job){0};
    if (entry->pid != pid || entry->start_ticks != stat.start_ticks)
        *entry = (struct job_entry){
            .pid = pid, .start_ticks = stat.start_ticks, .found.born = stat.start_ticks};
    find_job(cache, entry, node);
    return entry->found;
}
