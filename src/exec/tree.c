/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of /proc is read into a list of processes with their parents, and descent is marked in the
 * list. A signal is for one process: a process id that was used again meanwhile is not signalled.
 */
#include "exec/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/process.h"
#include "base/units.h"
#include "exec/limited_visit.h"
#include "exec/status_mask.h"

#define STATUS_LIMIT (64 * KIB) /* chosen: proc(5)'s status has about 1,500 bytes */
#define NO_PROCESS   ((pid_t)-1)

struct process {
    pid_t pid, parent;
    unsigned long long born; /* clock ticks since boot: with the pid, identifies the process */
    bool below;              /* a searched process, or a descendant of one */
};

struct process_list {
    struct process *at;
    size_t count, capacity;
};

static bool read_process(pid_t pid, struct process *ret)
{
    struct process_stat stat;
    if (process_read_stat(pid, &stat) < 0)
        return false;
    *ret = (struct process){.pid = pid, .parent = stat.parent, .born = stat.start_ticks};
    return true;
}

static int append_process(pid_t pid, void *context)
{
    struct process_list *list = context;
    struct process process;
    return read_process(pid, &process)
               ? ARRAY_APPEND(list->at, list->count, list->capacity, process)
               : 0;
}

static int list_all(struct process_list *list)
{
    return process_walk(append_process, list);
}

static int compare_pids(const void *a, const void *b)
{
    const struct process *left = a, *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

static bool is_below(const struct process_list *list, pid_t pid, pid_t root)
{
    const struct process key = {.pid = pid}, *found;
    if (pid == root)
        return true;
    found = bsearch(&key, list->at, list->count, sizeof key, compare_pids);
    return found && found->below;
}

/* A parent may be listed after its child: repeat until a pass finds no more. */
static void mark_descendants(struct process_list *list, pid_t root)
{
    qsort(list->at, list->count, sizeof *list->at, compare_pids);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < list->count; i++) {
            struct process *process = &list->at[i];
            if (!process->below && is_below(list, process->parent, root))
                process->below = changed = true;
        }
    }
}

static void signal_process(const struct process *process, int signal)
{
    process_signal((struct process_id){process->pid, process->born}, signal);
}

static int signal_marked(const struct process_list *list, int signal)
{
    int count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].below) {
            signal_process(&list->at[i], signal);
            count++;
        }
    }
    return count;
}

/* Is the process one of `tops`, or below one? The list is sorted. */
static bool is_within(
    const struct process_list *list, const struct process *process, const pid_t *tops, size_t n)
{
    for (size_t climbed = 0; process && climbed <= list->count; climbed++) {
        for (size_t i = 0; i < n; i++)
            if (process->pid == tops[i])
                return true;
        const struct process key = {.pid = process->parent};
        process = bsearch(&key, list->at, list->count, sizeof key, compare_pids);
    }
    return false;
}

/* Signals those descendants of `root` that are within `tops`, or those that are not. */
static int signal_part(pid_t root, const pid_t *tops, size_t n, bool within, int signal)
{
    struct process_list list = {0};
    int r = list_all(&list);
    if (r == 0) {
        mark_descendants(&list, root);
        for (size_t i = 0; i < list.count; i++)
            list.at[i].below = list.at[i].below && is_within(&list, &list.at[i], tops, n) == within;
        r = signal_marked(&list, signal);
    }
    free(list.at);
    return r;
}

int tree_signal(pid_t root, int signal)
{
    return signal_part(root, NULL, 0, false, signal);
}

int tree_signal_except(pid_t root, const pid_t *tops, size_t n, int signal)
{
    return signal_part(root, tops, n, false, signal);
}

int tree_signal_only(pid_t root, const pid_t *tops, size_t n, int signal)
{
    return signal_part(root, tops, n, true, signal);
}

bool tree_handles(pid_t pid, int signal)
{
    char *status;
    size_t size;
    if (process_read_entry(pid, "status", STATUS_LIMIT, &status, &size) < 0)
        return false;
    bool handles = status_mask_has(status, "\nSigCgt:", signal);
    free(status);
    return handles;
}

static int signal_handlers(pid_t root, bool children_only, int signal)
{
    struct process_list list = {0};
    int count = 0, r = list_all(&list);
    if (r == 0)
        mark_descendants(&list, root);
    for (size_t i = 0; r == 0 && i < list.count; i++) {
        const struct process *process = &list.at[i];
        bool is_meant = children_only ? process->parent == root : process->below;
        if (!is_meant || !tree_handles(process->pid, signal))
            continue;
        signal_process(process, signal);
        count++;
    }
    free(list.at);
    return r < 0 ? r : count;
}

int tree_signal_handlers(pid_t root, int signal)
{
    return signal_handlers(root, false, signal);
}

int tree_signal_child_handlers(pid_t root, int signal)
{
    return signal_handlers(root, true, signal);
}

/* Is the variable among the entries that are read from here? */
static bool find_entry(int fd, const char *variable, bool *ret_is_empty)
{
    const size_t differs = SIZE_MAX;
    char data[4096];
    size_t matched = 0; /* bytes of the present entry that are the variable's */
    *ret_is_empty = true;
    for (ssize_t n; (n = read(fd, data, sizeof data)) > 0;) {
        *ret_is_empty = false;
        for (ssize_t i = 0; i < n; i++) {
            bool is_same = matched != differs && data[i] == variable[matched];
            if (is_same && data[i] == '\0')
                return true;
            matched = data[i] == '\0' ? 0 : is_same ? matched + 1 : differs;
        }
    }
    return false;
}

/* May wait for ever, also for the end of an execve, and allocates nothing. A zombie has no
 * environment any more. */
static bool has_variable(pid_t pid, const char *variable)
{
    char path[32];
    bool found, is_empty;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    do {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return false;
        found = find_entry(fd, variable, &is_empty);
        close(fd);
    } while (is_empty && process_await_environ(pid));
    return found;
}

static bool belongs_to(pid_t pid, uid_t uid)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &status) == 0 && status.st_uid == uid;
}

static int compare_process(const void *pid, const void *process)
{
    pid_t left = *(const pid_t *)pid, right = ((const struct process *)process)->pid;
    return (left > right) - (left < right);
}

static bool visit_environment(pid_t pid, void *variable)
{
    return has_variable(pid, variable);
}

/* Chosen: a user can make processes that do not answer, but the reader waits for 5 s at most. */
static bool is_bearable(void *variable, size_t n_unknown)
{
    return n_unknown * VISIT_READ_MS < 5000;
}

static int look_for_variable(
    const pid_t *pids, size_t n, const char *variable, enum visit_answer *ret_answers)
{
    const struct limited_visit visit = {.pids = pids,
        .n = n,
        .limit_ms = VISIT_READ_MS,
        .visit = visit_environment,
        .goes_on = is_bearable,
        .context = (void *)(uintptr_t)variable};
    return limited_visit_run(&visit, ret_answers);
}

/* Marks the user's processes that have the variable. The list is sorted. */
static int mark_by_variable(
    struct process_list *list, const char *variable, uid_t uid, size_t *ret_unknown)
{
    CLEANUP_FREE pid_t *pids = calloc(list->count, sizeof *pids);
    CLEANUP_FREE enum visit_answer *answers = calloc(list->count, sizeof *answers);
    size_t n = 0;
    if (!pids || !answers)
        return -ENOMEM;
    for (size_t i = 0; i < list->count; i++)
        if (belongs_to(list->at[i].pid, uid))
            pids[n++] = list->at[i].pid;
    int r = look_for_variable(pids, n, variable, answers);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        struct process *process = bsearch(
            &pids[i], list->at, list->count, sizeof *list->at, compare_process);
        process->below = answers[i] == VISIT_YES;
        *ret_unknown += answers[i] == VISIT_UNKNOWN;
    }
    return r < 0 ? r : 0;
}

int tree_signal_marked(const char *variable, uid_t uid, int signal, size_t *ret_unknown)
{
    struct process_list list = {0};
    int r = list_all(&list);
    *ret_unknown = 0;
    if (r == 0) {
        qsort(list.at, list.count, sizeof *list.at, compare_pids);
        r = mark_by_variable(&list, variable, uid, ret_unknown);
    }
    if (r == 0) {
        mark_descendants(&list, NO_PROCESS);
        r = signal_marked(&list, signal);
    }
    free(list.at);
    return r;
}

int tree_find_root(pid_t pid, const pid_t *roots, size_t count)
{
    for (struct process process; count > 0 && pid > 1; pid = process.parent) {
        for (size_t i = 0; i < count; i++)
            if (roots[i] == pid)
                return (int)i;
        if (!read_process(pid, &process))
            break;
    }
    return -1;
}

size_t tree_list_ancestors(pid_t pid, pid_t root, pid_t *ret_chain, size_t room)
{
    struct process process;
    size_t n = 0;
    for (; pid > 1 && pid != root && n < room; pid = process.parent) {
        if (!read_process(pid, &process))
            return 0;
        ret_chain[n++] = pid;
    }
    return pid == root ? n : 0;
}

/* The position of the root that the process is or descends from; n: none. The list is sorted. */
static size_t root_of(
    const struct process_list *list, const struct process *process, const pid_t *roots, size_t n)
{
    for (size_t climbed = 0; process && climbed <= list->count; climbed++) {
        for (size_t i = 0; i < n; i++)
            if (process->pid == roots[i])
                return i;
        const struct process key = {.pid = process->parent};
        process = bsearch(&key, list->at, list->count, sizeof key, compare_pids);
    }
    return n;
}

int tree_walk(const pid_t *roots, size_t n, tree_on_process *on_process, void *context)
{
    struct process_list list = {0};
    int r = list_all(&list);
    if (r == 0) {
        qsort(list.at, list.count, sizeof *list.at, compare_pids);
        for (size_t i = 0; i < list.count; i++) {
            size_t root = root_of(&list, &list.at[i], roots, n);
            if (root < n)
                on_process(context, root, list.at[i].pid);
        }
    }
    free(list.at);
    return r;
}
