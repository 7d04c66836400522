/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc is read once for each process. The name of the home is looked up in the background; the
 * answer finds its process again by pid and start, as that may have ended meanwhile.
 */
#include "daemon/outside/container_owners.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/process.h"
#include "daemon/outside/mounted_home.h"

enum {
    CGROUP_MAX = 1 << 14, /* bytes; chosen: a line for each of v1's dozen hierarchies */
    MOUNTS_MAX = 1 << 18, /* bytes; chosen: a thousand mounts */
};

struct container_owners {
    struct names *names;
    struct container_owner *list;
    size_t n, capacity;
};

/* A name that is looked up. */
struct question {
    struct container_owners *owners;
    pid_t pid;
    unsigned long long start_ticks;
};

struct container_owners *container_owners_create(struct names *names)
{
    struct container_owners *owners = calloc(1, sizeof *owners);
    if (owners)
        owners->names = names;
    return owners;
}

static struct container_owner *find_process(
    const struct container_owners *owners, pid_t pid, unsigned long long start_ticks)
{
    for (size_t i = 0; i < owners->n; i++)
        if (owners->list[i].pid == pid && owners->list[i].start_ticks == start_ticks)
            return &owners->list[i];
    return NULL;
}

static void on_name(void *context, const struct name *name)
{
    struct question *question = context;
    struct container_owner *owner = find_process(
        question->owners, question->pid, question->start_ticks);
    if (owner && name->state == NAME_KNOWN) {
        owner->is_known = true;
        owner->uid = name->uid;
    }
    free(question);
}

static void ask_user(struct container_owners *owners, const struct container_owner *of, char *user)
{
    struct question *question = malloc(sizeof *question);
    if (!question)
        return;
    *question = (struct question){owners, of->pid, of->start_ticks};
    names_ask_name(owners->names, user, on_name, question);
}

static bool find_home(const struct container_owner *owner, char user[HOME_USER_SIZE])
{
    char *container = NULL, *host = NULL;
    size_t size;
    bool found = process_read_entry(owner->pid, "mountinfo", MOUNTS_MAX, &container, &size) == 0 &&
                 process_read_entry(1, "mountinfo", MOUNTS_MAX, &host, &size) == 0 &&
                 mounted_home_find(container, host, owner->id, user);
    free(container);
    free(host);
    return found;
}

static void read_container(struct container_owner *owner)
{
    char *cgroup;
    size_t size;
    if (process_read_entry(owner->pid, "cgroup", CGROUP_MAX, &cgroup, &size) < 0)
        return;
    owner->program = container_find(cgroup, owner->id);
    free(cgroup);
}

/* Returns NULL without memory. */
static struct container_owner *add_process(
    struct container_owners *owners, pid_t pid, unsigned long long start_ticks)
{
    const struct container_owner added = {.pid = pid, .start_ticks = start_ticks};
    char user[HOME_USER_SIZE];
    if (ARRAY_APPEND(owners->list, owners->n, owners->capacity, added) < 0)
        return NULL;
    struct container_owner *owner = &owners->list[owners->n - 1];
    read_container(owner);
    if (owner->program && find_home(owner, user))
        ask_user(owners, owner, user); /* which may answer at once */
    return owner;
}

const struct container_owner *container_owners_find(struct container_owners *owners, pid_t pid)
{
    struct process_stat stat;
    if (process_read_stat(pid, &stat) < 0)
        return NULL;
    struct container_owner *owner = find_process(owners, pid, stat.start_ticks);
    if (!owner)
        owner = add_process(owners, pid, stat.start_ticks);
    if (!owner)
        return NULL;
    owner->is_seen = true;
    return owner->is_known ? owner : NULL;
}

void container_owners_end_review(struct container_owners *owners)
{
    size_t kept = 0;
    for (size_t i = 0; i < owners->n; i++) {
        if (!owners->list[i].is_seen)
            continue;
        owners->list[kept] = owners->list[i];
        owners->list[kept++].is_seen = false;
    }
    owners->n = kept;
}

void container_owners_destroy(struct container_owners *owners)
{
    if (!owners)
        return;
    free(owners->list);
    free(owners);
}
