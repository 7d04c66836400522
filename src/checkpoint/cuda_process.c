/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc of one process, and memory limits.
 *
 * A profiler shows by the library that it injects: Nsight Systems and Compute, NVIDIA's tools
 * interface (CUDA_INJECTION64_PATH). libcupti alone says nothing, since PyTorch always loads it.
 */
#include "checkpoint/cuda_process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/process.h"
#include "base/span_parts.h"
#include "base/units.h"
#include "preload/protocol.h"

/* Bytes. Chosen: a training maps a few thousand areas of 100 bytes each; proc(5)'s status has about
 * 1,500. */
#define MAPS_LIMIT    (16 * MIB)
#define STATUS_LIMIT  (64 * KIB)
#define ENVIRON_LIMIT (4 * MIB)
#define AUXV_LIMIT    (64 * KIB)
#define CGROUP_MOUNT  "/sys/fs/cgroup"

static const char *const profilers[] = {
    "libToolsInjection", "libcuda-injection", "libInjection64", "libcudadebugger"};

/* A process that is ending, or has ended and is not reaped yet, counts as ended. */
static int read_born(pid_t pid, uint64_t *ret_born)
{
    struct process_stat stat;
    int r = process_read_stat(pid, &stat);
    if (r == 0 && (process_has_ended(&stat) || stat.is_exiting))
        r = -ESRCH;
    if (r == 0)
        *ret_born = stat.start_ticks;
    return r;
}

bool cuda_process_parse_is_killed(struct span status)
{
    static const unsigned long long killed = 1ULL << (SIGKILL - 1);
    struct span line;
    bool is_killed = false;
    while (span_next_line(&status, &line)) {
        char digits[24];
        bool is_pending = span_starts(line, "SigPnd:") || span_starts(line, "ShdPnd:");
        struct span value = {line.at + 7, line.size - 7};
        if (is_pending && span_copy(span_trim(value), digits, sizeof digits))
            is_killed |= (strtoull(digits, NULL, 16) & killed) != 0;
    }
    return is_killed;
}

static bool is_killed(pid_t pid)
{
    size_t size;
    char *text = NULL;
    bool found = process_read_entry(pid, "status", STATUS_LIMIT, &text, &size) == 0 &&
                 cuda_process_parse_is_killed((struct span){text, size});
    free(text);
    return found;
}

bool cuda_process_is(pid_t pid, uint64_t born)
{
    uint64_t now;
    return read_born(pid, &now) == 0 && now == born && !is_killed(pid);
}

static bool contains_text(struct span text, const char *word)
{
    return memmem(text.at, text.size, word, strlen(word));
}

bool cuda_process_may_have_driver(pid_t pid)
{
    size_t size;
    char *maps = NULL;
    bool is_read = process_read_entry(pid, "maps", MAPS_LIMIT, &maps, &size) == 0 && size > 0;
    bool may = !is_read || contains_text((struct span){maps, size}, "/libcuda.so");
    free(maps);
    return may;
}

void cuda_process_parse_maps(struct span maps, struct cuda_process *process)
{
    struct span line;
    while (span_next_line(&maps, &line)) {
        const char *slash = line.size ? memrchr(line.at, '/', line.size) : NULL;
        if (!slash)
            continue;
        struct span file = {slash + 1, (size_t)(line.at + line.size - slash - 1)};
        for (size_t i = 0; i < ARRAY_SIZE(profilers); i++)
            process->has_profiler |= span_starts(file, profilers[i]);
        process->has_nccl |= contains_text(file, "libnccl.so");
    }
}

void cuda_process_parse_status(struct span status, struct cuda_process *process)
{
    struct span line;
    while (span_next_line(&status, &line)) {
        if (span_starts(line, "State:"))
            process->is_stopped = contains_text(line, "T (") || contains_text(line, "t (");
        if (span_starts(line, "TracerPid:"))
            process->is_traced = !span_is(
                span_trim((struct span){line.at + 10, line.size - 10}), "0");
    }
}

/* Is it the variable of this name, with a value? */
static bool sets_variable(struct span entry, const char *name)
{
    return span_starts(entry, name) && entry.size > strlen(name) + 1 &&
           entry.at[strlen(name)] == '=';
}

void cuda_process_parse_environ(struct span variables, struct cuda_process *process)
{
    process->is_without_library = true;
    while (variables.size > 0) {
        size_t size = strnlen(variables.at, variables.size);
        const struct span variable = {variables.at, size};
        process->has_profiler |= sets_variable(variable, "KINETO_USE_DAEMON");
        process->is_without_library &= !sets_variable(variable, PRELOAD_SOCKET_VARIABLE);
        size += size < variables.size;
        variables = (struct span){variables.at + size, variables.size - size};
    }
}

void cuda_process_parse_auxv(struct span vector, struct cuda_process *process)
{
    unsigned long entry[2]; /* a kind and its value */
    for (; vector.size >= sizeof entry; vector.at += sizeof entry, vector.size -= sizeof entry) {
        memcpy(entry, vector.at, sizeof entry);
        process->is_secure |= entry[0] == AT_SECURE && entry[1];
    }
}

/* The class byte of its program's ELF header. A program that cannot be read counts as 64 bits: the
 * driver decides. */
static bool is_32_bit(pid_t pid)
{
    static const char magic[] = "\177ELF\1";
    char path[32], head[5];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool found = read(fd, head, sizeof head) == (ssize_t)sizeof head &&
                 memcmp(head, magic, sizeof head) == 0;
    close(fd);
    return found;
}

int cuda_process_read(pid_t pid, struct cuda_process *ret_process)
{
    size_t size;
    *ret_process = (struct cuda_process){0};
    int r = read_born(pid, &ret_process->born);
    if (r < 0)
        return r;
    char *text;
    r = process_read_entry(pid, "status", STATUS_LIMIT, &text, &size);
    if (r < 0)
        return r;
    cuda_process_parse_status((struct span){text, size}, ret_process);
    free(text);
    ret_process->is_unread = process_read_entry(pid, "maps", MAPS_LIMIT, &text, &size) < 0 || !size;
    if (!ret_process->is_unread)
        cuda_process_parse_maps((struct span){text, size}, ret_process);
    free(text);
    if (process_read_environ(pid, ENVIRON_LIMIT, &text, &size) == 0)
        cuda_process_parse_environ((struct span){text, size}, ret_process);
    free(text);
    if (process_read_entry(pid, "auxv", AUXV_LIMIT, &text, &size) == 0)
        cuda_process_parse_auxv((struct span){text, size}, ret_process);
    free(text);
    ret_process->is_32_bit = is_32_bit(pid);
    return 0;
}

/* ---- as text ---- */

static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    {"stopped", offsetof(struct cuda_process, is_stopped)},
    {"traced", offsetof(struct cuda_process, is_traced)},
    {"32-bit", offsetof(struct cuda_process, is_32_bit)},
    {"profiler", offsetof(struct cuda_process, has_profiler)},
    {"nccl", offsetof(struct cuda_process, has_nccl)},
    {"unread", offsetof(struct cuda_process, is_unread)},
    {"without-library", offsetof(struct cuda_process, is_without_library)},
    {"secure", offsetof(struct cuda_process, is_secure)},
};

static bool *flag_of(struct cuda_process *process, size_t i)
{
    return (bool *)((char *)process + flags[i].offset);
}

size_t cuda_process_write(const struct cuda_process *process, char *text, size_t size)
{
    struct cuda_process copy = *process;
    int n = snprintf(text, size, "%llu", (unsigned long long)process->born);
    size_t used = n > 0 ? (size_t)n : size;
    for (size_t i = 0; i < ARRAY_SIZE(flags) && used < size; i++)
        if (*flag_of(&copy, i))
            used += (size_t)snprintf(text + used, size - used, " %s", flags[i].name);
    return used < size ? used : 0;
}

static int take_flag(struct span word, struct cuda_process *process)
{
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (span_is(word, flags[i].name)) {
            *flag_of(process, i) = true;
            return 0;
        }
    }
    return -EINVAL;
}

int cuda_process_parse(struct span text, struct cuda_process *ret_process)
{
    char digits[24];
    int64_t born = -1;
    *ret_process = (struct cuda_process){0};
    while (text.size) {
        struct span word = span_take_until(&text, ' ');
        int r = 0;
        if (born >= 0)
            r = take_flag(word, ret_process);
        else if (!span_copy(word, digits, sizeof digits) ||
                 parse_int64(digits, 0, INT64_MAX, &born) < 0)
            r = -EINVAL;
        if (r < 0)
            return r;
    }
    ret_process->born = (uint64_t)born;
    return born < 0 ? -EINVAL : 0;
}

/* ---- memory ---- */

/* "MemAvailable:   12345 kB". */
struct reading host_memory_parse(struct span meminfo)
{
    static const char key[] = "MemAvailable:";
    struct span line;
    char text[64];
    int64_t kib;
    while (span_next_line(&meminfo, &line)) {
        if (!span_starts(line, key))
            continue;
        struct span rest = span_trim(
            (struct span){line.at + sizeof key - 1, line.size - (sizeof key - 1)});
        if (!span_copy(rest, text, sizeof text))
            break;
        char *blank = strchr(text, ' ');
        if (blank)
            *blank = '\0';
        if (parse_int64(text, 0, INT64_MAX / KIB, &kib) == 0)
            return reading_of((double)(kib * KIB));
        break;
    }
    return READING_NONE;
}

struct reading host_memory_available(void)
{
    char *data;
    size_t size;
    if (file_read("/proc/meminfo", STATUS_LIMIT, NULL, &data, &size) < 0)
        return READING_NONE;
    struct reading available = host_memory_parse((struct span){data, size});
    free(data);
    return available;
}

/* A file of one number or "max". Returns false if it does not exist: the root, or no controller. */
static bool read_limit(const char *folder, const char *name, double *ret_bytes)
{
    char path[4200], *data;
    size_t size;
    int64_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, 64, NULL, &data, &size) < 0)
        return false;
    data[strcspn(data, "\n")] = '\0';
    bool ok = parse_int64(data, 0, INT64_MAX, &bytes) == 0;
    *ret_bytes = ok ? (double)bytes : INFINITY;
    free(data);
    return true;
}

/* What a hierarchy of cgroups has: v2, or the controller "memory" of v1. */
static const struct memory_files {
    const char *mount, *limit, *high, *current; /* high: above it processes are slowed down */
} UNIFIED = {CGROUP_MOUNT, "memory.max", "memory.high", "memory.current"},
  MEMORY_V1 = {CGROUP_MOUNT "/memory", "memory.limit_in_bytes", "", "memory.usage_in_bytes"};

/* folder: below the mount; changed */
static struct reading memory_left(
    char *folder, const struct memory_files *files, const char *except)
{
    double left = INFINITY, limit, high, current;
    for (char *slash = folder; strlen(folder) >= strlen(files->mount); *slash = '\0') {
        bool has_limit = strcmp(folder, except) != 0 && read_limit(folder, files->limit, &limit);
        if (has_limit && *files->high && read_limit(folder, files->high, &high))
            limit = fmin(limit, high);
        if (has_limit && isfinite(limit)) {
            if (!read_limit(folder, files->current, &current))
                return READING_NONE;
            left = fmin(left, fmax(0, limit - current));
        }
        slash = strrchr(folder, '/'); /* a container's limit is at the mount itself */
    }
    return reading_of(left);
}

struct reading cgroup_memory_left(const char *path, const char *except)
{
    char folder[4096];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder ||
        strncmp(folder, CGROUP_MOUNT, strlen(CGROUP_MOUNT)) != 0)
        return READING_NONE;
    return memory_left(folder, &UNIFIED, except);
}

/* "0::/user.slice/..." of v2, "8:memory:/slurm/..." of v1. Returns the hierarchy, or NULL: its
 * cgroups have no limits of memory. */
static const struct memory_files *hierarchy_of(struct span line, struct span *ret_path)
{
    const char *end = line.at + line.size, *names, *path;
    names = memchr(line.at, ':', line.size);
    path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
    if (!path)
        return NULL;
    *ret_path = (struct span){path + 1, (size_t)(end - path - 1)};
    for (const char *name = ++names, *next; name < path; name = next + 1) {
        next = memchr(name, ',', (size_t)(path - name));
        next = next ? next : path;
        if (span_is((struct span){name, (size_t)(next - name)}, "memory"))
            return &MEMORY_V1;
    }
    return span_starts(line, "0::/") ? &UNIFIED : NULL;
}

/* Each line of /proc/PID/cgroup is a hierarchy. */
struct reading cgroup_memory_left_of(pid_t pid, const char *except)
{
    struct span line, path, text;
    char folder[4200], *data;
    size_t size;
    if (process_read_entry(pid, "cgroup", STATUS_LIMIT, &data, &size) < 0)
        return READING_NONE;
    struct reading left = reading_of(INFINITY);
    text = (struct span){data, size};
    while (left.valid && span_next_line(&text, &line)) {
        const struct memory_files *files = hierarchy_of(line, &path);
        if (!files)
            continue;
        snprintf(folder, sizeof folder, "%s%.*s", files->mount, (int)path.size, path.at);
        struct reading of = memory_left(folder, files, except);
        if (!of.valid || of.value < left.value)
            left = of;
    }
    free(data);
    return left;
}
