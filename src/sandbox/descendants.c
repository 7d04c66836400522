/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds all processes that descend from one, to sum their memory or to end them. Walks /proc once
 * for the parent of each process, then marks what descends from the ancestor until a pass marks
 * nothing new. Killing repeats this, since a process may fork while others are killed.
 */
#include "sandbox/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

struct process {
    pid_t pid, parent;
    int64_t resident_bytes;
    bool descends;
};

struct process_table {
    struct process *rows;
    size_t n, capacity;
};

/* Reads /proc/PID/stat: the name in parentheses may hold any byte. Returns false when the process
 * is gone. */
static bool read_process(const char *pid, struct process *ret)
{
    char path[64], stat[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(stat, 1, sizeof stat - 1, file) : 0;
    if (file)
        fclose(file);
    stat[n] = '\0';
    const char *rest = strrchr(stat, ')');
    long long parent, pages;
    /* fields 4 (parent) and 24 (resident pages) of proc(5) */
    if (!rest || sscanf(rest + 1,
                     " %*c %lld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                     "%*s %*s %*s %lld",
                     &parent, &pages) != 2)
        return false;
    *ret = (struct process){
        (pid_t)strtol(pid, NULL, 10), (pid_t)parent, pages * sysconf(_SC_PAGESIZE), false};
    return true;
}

static struct process_table read_table(void)
{
    struct process_table table = {0};
    struct process row;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_process(entry->d_name, &row) &&
            ARRAY_APPEND(table.rows, table.n, table.capacity, row) < 0)
            break; /* no memory: what was read so far */
    if (folder)
        closedir(folder);
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
