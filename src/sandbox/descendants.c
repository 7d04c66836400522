/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds all processes that descend from one, to sum their memory or to end them. Walks /proc once
 * for the parent of each process, then marks what descends from the ancestor until a pass marks
 * nothing new. Killing repeats this, since a process may fork while others are killed.
 */
#include "sandbox/descendants.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"

struct process {
    pid_t pid, parent;
    int64_t resident_bytes;
    bool descends;
};

struct process_table {
    struct process *rows;
    size_t n, capacity;
};

/* Without memory for it, the walk ends: the table has what was read so far. */
static int add_process(pid_t pid, void *context)
{
    struct process_table *table = context;
    struct process_stat stat;
    if (process_read_stat(pid, &stat) < 0)
        return 0;
    const struct process row = {.pid = pid,
        .parent = stat.parent,
        .resident_bytes = (int64_t)stat.resident_pages * sysconf(_SC_PAGESIZE)};
    return ARRAY_APPEND(table->rows, table->n, table->capacity, row);
}

static struct process_table read_table(void)
{
    struct process_table table = {0};
    process_walk(add_process, &table);
    return table;
}

static bool parent_descends(const struct process_table *table, pid_t parent, pid_t ancestor)
{
    if (parent == ancestor)
        return true;
    for (size_t i = 0; i < table->n; i++)
        if (table->rows[i].pid == parent)
            return table->rows[i].descends;
    return false;
}

static void mark_descendants(struct process_table *table, pid_t ancestor)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < table->n; i++) {
            struct process *row = &table->rows[i];
            if (!row->descends && parent_descends(table, row->parent, ancestor))
                row->descends = found = true;
        }
    }
}

int64_t descendants_memory(pid_t ancestor)
{
    struct process_table table = read_table();
    int64_t bytes = 0;
    mark_descendants(&table, ancestor);
    for (size_t i = 0; i < table.n; i++)
        bytes += table.rows[i].descends ? table.rows[i].resident_bytes : 0;
    free(table.rows);
    return bytes;
}

void descendants_kill(void)
{
    static const struct timespec pause = {.tv_nsec = 10000000}; /* chosen: for the kernel to end
                                                                   what was killed */
    for (;;) {
        struct process_table table = read_table();
        mark_descendants(&table, getpid());
        for (size_t i = 0; i < table.n; i++)
            if (table.rows[i].descends)
                kill(table.rows[i].pid, SIGKILL);
        free(table.rows);
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (reaped < 0 && errno == ECHILD)
            return;
        nanosleep(&pause, NULL);
    }
}
