/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the use of CPU, memory and disk by a process. /proc/PID/stat has a process's CPU time and
 * that of its children that it has waited for, and /proc/PID/io likewise its disk bytes. A child's
 * figures move to its parent when it ends, so the sum over a tree that includes its root never
 * jumps when processes start and end:
 *
 *     shim (root)   children so far: 10 s        shim            10 s
 *       python      own 50 s, children 5 s   ->    python        50 s, children 12 s
 *         worker    own 7 s                        (worker has ended)
 *     sum           72 s                         sum             72 s
 */
#include "exec/process_usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/units.h"
#include "exec/tree.h"

#define TEXT_MAX ((size_t)(64 * KIB)) /* chosen: of files of proc(5), which have a few KiB */

/* A process that ended after it was listed makes no value unknown. */
static void add_stat(struct process_usage *usage, pid_t pid)
{
    struct process_stat stat;
    int r = process_read_stat(pid, &stat);
    if (r == 0) {
        usage->cpu_s.value += (double)stat.cpu_ticks / (double)sysconf(_SC_CLK_TCK);
        usage->resident_bytes.value += (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE);
    } else if (r != -ESRCH) {
        usage->cpu_s.valid = usage->resident_bytes.valid = false;
    }
}

/* The kernel shows it to root and to the process's user, but not of a process that changed its
 * identity. */
static void add_io(struct process_usage *usage, pid_t pid)
{
    size_t size;
    char *text;
    int r = process_read_entry(pid, "io", TEXT_MAX, &text, &size);
    const char *read_at = text ? strstr(text, "\nread_bytes: ") : NULL,
               *written_at = text ? strstr(text, "\nwrite_bytes: ") : NULL;
    if (read_at && written_at) {
        usage->disk_read_bytes.value += strtod(strchr(read_at, ' '), NULL);
        usage->disk_written_bytes.value += strtod(strchr(written_at, ' '), NULL);
    } else if (r != -ESRCH) {
        usage->disk_read_bytes.valid = usage->disk_written_bytes.valid = false;
    }
    free(text);
}

/* ---- network ---- */

/* A namespace as "net:[4026531840]". Returns false when it cannot be read. */
static bool read_namespace(const char *process, char name[64])
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%s/ns/net", process);
    ssize_t n = readlink(path, name, 63);
    name[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* All interfaces of its namespace but the loopback. */
static void add_network(struct process_usage *usage, pid_t pid)
{
    size_t size;
    char *text, *rest;
    if (process_read_entry(pid, "net/dev", TEXT_MAX, &text, &size) < 0)
        return;
    usage->net_received_bytes = usage->net_sent_bytes = reading_of(0);
    rest = text;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        char name[32];
        double received, sent;
        if (sscanf(line, " %31[^:]: %lf %*f %*f %*f %*f %*f %*f %*f %lf", name, &received, &sent) !=
                3 ||
            strcmp(name, "lo") == 0)
            continue;
        usage->net_received_bytes.value += received;
        usage->net_sent_bytes.value += sent;
    }
    free(text);
}

/* ---- all ---- */

struct walk {
    struct process_usage *usage;
    const pid_t *roots;
    char own_namespace[64];
    bool *network_is_read; /* of each tree */
};

/* The first process below the root stands for its tree. */
static void read_network(struct walk *walk, size_t root, pid_t pid)
{
    char process[16], name[64];
    if (walk->network_is_read[root] || pid == walk->roots[root])
        return;
    walk->network_is_read[root] = true;
    snprintf(process, sizeof process, "%d", (int)pid);
    if (read_namespace(process, name) && strcmp(name, walk->own_namespace) != 0)
        add_network(&walk->usage[root], pid);
}

static void on_process(void *context, size_t root, pid_t pid)
{
    struct walk *walk = context;
    add_stat(&walk->usage[root], pid);
    add_io(&walk->usage[root], pid);
    read_network(walk, root, pid);
}

int process_usage_read(const pid_t *roots, size_t n, struct process_usage *ret_usage)
{
    struct walk walk = {ret_usage, roots, "", calloc(n + 1, sizeof(bool))};
    if (!walk.network_is_read)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ret_usage[i] = (struct process_usage){
            .cpu_s = reading_of(0),
            .resident_bytes = reading_of(0),
            .disk_read_bytes = reading_of(0),
            .disk_written_bytes = reading_of(0),
        };
    if (!read_namespace("self", walk.own_namespace))
        memset(walk.network_is_read, true, n); /* not comparable: unknown */
    int r = tree_walk(roots, n, on_process, &walk);
    free(walk.network_is_read);
    return r;
}
