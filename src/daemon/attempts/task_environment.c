/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon adds to a task's environment. Two kinds of variables: those that the placement
 * decides (GPUs, MPS), which replace what the user set, and defaults, which never do. Each is in
 * the table of `colloc help submit` and of docs/collocation.md.
 */
#include "daemon/attempts/task_environment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "preload/protocol.h"

int environment_add(struct environment *environment, const char *format, ...)
{
    va_list args;
    if (environment->count == ENVIRONMENT_ADDED_MAX)
        return -ENOMEM;
    va_start(args, format);
    int n = vasprintf(&environment->text[environment->count], format, args);
    va_end(args);
    if (n < 0)
        return -ENOMEM;
    environment->list[environment->count] = environment->text[environment->count];
    environment->count++;
    return 0;
}

void environment_fini(struct environment *environment)
{
    for (int i = 0; i < environment->count; i++)
        free(environment->text[i]);
}

static const char *find_variable(const char *const *submitted, const char *name)
{
    size_t length = strlen(name);
    for (; submitted && *submitted; submitted++)
        if (strncmp(*submitted, name, length) == 0 && (*submitted)[length] == '=')
            return *submitted + length + 1;
    return NULL;
}

/* Sets a variable unless the user did, be it to nothing. */
static int add_default(struct environment *environment, const char *const *submitted,
    const char *name, const char *value)
{
    return find_variable(submitted, name) ? 0 : environment_add(environment, "%s=%s", name, value);
}

/* "A,B,C": a text of each GPU of the task. NULL: no memory. */
static char *join_gpus(const struct cluster_view *view, const struct task *task,
    const char *(*of)(const struct gpu_identity *))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; i < task->n_gpus; i++)
        fprintf(out, "%s%s", i ? "," : "", of(&view->gpus[task->gpus[i]].id));
    fclose(out);
    return text;
}

static const char *uuid_of(const struct gpu_identity *gpu)
{
    return gpu->uuid;
}

static const char *label_of(const struct gpu_identity *gpu)
{
    return gpu->label;
}

int environment_name_gpus(struct environment *environment, const struct cluster_view *view,
    const struct task *task, bool by_index)
{
    CLEANUP_FREE char *devices = join_gpus(view, task, by_index ? label_of : uuid_of);
    CLEANUP_FREE char *labels = join_gpus(view, task, label_of);
    int r = devices && labels ? 0 : -ENOMEM;
    if (r == 0)
        r = environment_add(environment, "COLLOC_TASK_ID=%llu", (unsigned long long)task->id);
    if (r == 0)
        r = environment_add(environment, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    if (r == 0)
        r = environment_add(environment, "CUDA_VISIBLE_DEVICES=%s", devices);
    if (r == 0)
        r = environment_add(environment, "COLLOC_GPUS=%s", labels);
    return r;
}

/* Of all tasks of an array: the end of a variable's name, and the member of the detail. */
static const struct {
    const char *name, *key;
} array_counts[] = {{"COUNT", "array_count"}, {"MIN", "array_min"}, {"MAX", "array_max"}};

/* The same by two names: colloc's and Slurm's. `prefix`: of the variables about the whole array. */
static int name_array(struct environment *environment, const struct task *task,
    const json_t *detail, const char *id, const char *index, const char *prefix)
{
    int r = environment_add(environment, "%s=%llu", id, (unsigned long long)task->array.id);
    if (r == 0)
        r = environment_add(environment, "%s=%d", index, task->array.index);
    for (size_t i = 0; i < ARRAY_SIZE(array_counts) && r == 0; i++)
        r = environment_add(environment, "%s_%s=%lld", prefix, array_counts[i].name,
            (long long)json_integer_value(json_object_get(detail, array_counts[i].key)));
    return r;
}

int environment_name_array(
    struct environment *environment, const struct task *task, const json_t *detail)
{
    if (task->array.id == 0)
        return 0;
    int r = name_array(
        environment, task, detail, "COLLOC_ARRAY_ID", "COLLOC_ARRAY_INDEX", "COLLOC_ARRAY");
    return r < 0 ? r
                 : name_array(environment, task, detail, "SLURM_ARRAY_JOB_ID",
                       "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK");
}

/* The CPUs that it was given; without a number it may use all that this process may. */
static int count_cpus(const struct task *task)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return task->request.host.cpus > 0 ? task->request.host.cpus : online > 0 ? (int)online : 1;
}

int environment_name_for_slurm(struct environment *environment, const struct cluster_view *view,
    const struct task *task, const char *const *submitted)
{
    unsigned long long id = task->id;
    int restarts = task->attempts - task->run->unstarted - 1, cpus = count_cpus(task);
    if (!find_variable(submitted, "COLLOC_SLURM_SCRIPT"))
        return 0;
    CLEANUP_FREE char *gpus = join_gpus(view, task, label_of);
    int r = gpus ? 0 : -ENOMEM;
    if (r == 0)
        r = environment_add(environment, "SLURM_JOB_ID=%llu", id);
    if (r == 0)
        r = environment_add(environment, "SLURM_JOBID=%llu", id);
    if (r == 0 && task->request.gpus)
        r = environment_add(environment, "SLURM_JOB_GPUS=%s", gpus);
    if (r == 0 && task->request.gpus)
        r = environment_add(environment, "SLURM_GPUS=%d", task->request.gpus);
    if (r == 0 && task->request.gpus)
        r = environment_add(environment, "SLURM_GPUS_ON_NODE=%d", task->request.gpus);
    if (r == 0)
        r = environment_add(environment, "SLURM_CPUS_ON_NODE=%d", cpus);
    if (r == 0)
        r = environment_add(environment, "SLURM_JOB_CPUS_PER_NODE=%d", cpus);
    if (r == 0 && restarts > 0)
        r = environment_add(environment, "SLURM_RESTART_COUNT=%d", restarts);
    return r;
}

int environment_name_port(struct environment *environment, const json_t *detail)
{
    json_int_t port = json_integer_value(json_object_get(detail, "port"));
    return port ? environment_add(environment, "COLLOC_PORT=%lld", (long long)port) : 0;
}

int environment_set_defaults(
    struct environment *environment, const struct task *task, const char *const *submitted)
{
    int r = add_default(environment, submitted, "PYTHONUNBUFFERED", "1");
    if (r == 0 && !task->exclusive)
        r = add_default(environment, submitted, "TF_FORCE_GPU_ALLOW_GROWTH", "true");
    if (r == 0 && !task->exclusive)
        r = add_default(environment, submitted, "XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    return r;
}

int environment_name_socket(
    struct environment *environment, const char *socket, const char *const *submitted)
{
    for (int i = 0; i < environment->count; i++)
        if (strncmp(environment->list[i], "COLLOC_SOCKET=", strlen("COLLOC_SOCKET=")) == 0)
            return 0;
    return add_default(environment, submitted, "COLLOC_SOCKET", socket);
}

int environment_lead_path(
    struct environment *environment, const char *folder, const char *const *submitted)
{
    const char *path = find_variable(submitted, "PATH");
    return path ? environment_add(environment, "PATH=%s:%s", folder, path) : 0;
}

int environment_mark_tracked(
    struct environment *environment, const char *socket, const char *const *submitted)
{
    int r = environment_add(environment, "COLLOC_TRACKED=1");
    return r == 0 ? environment_name_socket(environment, socket, submitted) : r;
}

int environment_set_rendezvous(struct environment *environment, const struct task *task, int port,
    const char *const *submitted)
{
    char port_text[16], count_text[16];
    snprintf(port_text, sizeof port_text, "%d", port);
    snprintf(count_text, sizeof count_text, "%d", task->n_gpus);
    int r = environment_add(environment, "COLLOC_GPU_COUNT=%s", count_text);
    if (r == 0)
        r = add_default(
            environment, submitted, "PET_NPROC_PER_NODE", task->n_gpus ? count_text : "1");
    if (r == 0)
        r = add_default(environment, submitted, "MASTER_ADDR", "127.0.0.1");
    if (r == 0 && port)
        r = add_default(environment, submitted, "MASTER_PORT", port_text);
    if (r == 0 && port)
        r = add_default(environment, submitted, "PET_MASTER_PORT", port_text);
    return r;
}

int environment_pass_emulator(struct environment *environment)
{
    const char *file = getenv("COLLOC_EMULATOR");
    return file ? environment_add(environment, "COLLOC_EMULATOR=%s", file) : 0;
}

/* "0=2048M,1=2048M": devices as the task counts those that it sees. */
static int limit_memory(struct environment *environment, const struct task *task)
{
    char text[2048];
    size_t used = 0;
    for (int i = 0; i < task->n_gpus && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d=%lldM", i ? "," : "", i,
            (long long)(task->run->share.mem_limit_bytes / MIB));
    return used < sizeof text
               ? environment_add(environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=%s", text)
               : -ENOMEM;
}

/* NVIDIA's words: 0 is the normal priority of a client, 1 the one below it. */
enum { MPS_PRIORITY_NORMAL = 0, MPS_PRIORITY_BELOW_NORMAL = 1 };

/* Kernels of a client below the normal priority start where those of others leave room. Tasks that
 * were promised a speed, and services, have the normal one, and all others the one below. */
static int mps_priority(const struct task *task)
{
    bool is_first = task->request.slowdown_max.valid || task->request.service.is_service;
    return is_first ? MPS_PRIORITY_NORMAL : MPS_PRIORITY_BELOW_NORMAL;
}

int environment_join_mps(
    struct environment *environment, const struct task *task, const char *pipe_dir)
{
    int r = environment_add(environment, "CUDA_MPS_PIPE_DIRECTORY=%s", pipe_dir);
    if (r == 0)
        r = environment_add(environment, "CUDA_MPS_CLIENT_PRIORITY=%d", mps_priority(task));
    if (r == 0 && task->run->share.thread_percent)
        r = environment_add(
            environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%d", task->run->share.thread_percent);
    if (r == 0 && task->run->share.mem_limit_bytes)
        r = limit_memory(environment, task);
    return r;
}

/* The part of the smallest of its GPUs, as one setting serves for all. 1: no limit. */
static double memory_fraction(
    const struct cluster_view *view, const struct task *task, int64_t margin_bytes)
{
    const struct need *need = &task->request.need;
    double wanted = (double)(need->bytes + margin_bytes), fraction = 1;
    if (need->kind < NEED_ESTIMATED || task->oom_count > 0 || task->exclusive)
        return 1;
    for (int i = 0; i < task->n_gpus; i++) {
        double part = wanted / (double)view->gpus[task->gpus[i]].id.mem_total_bytes;
        fraction = part < fraction ? part : fraction;
    }
    return fraction;
}

int environment_limit_frameworks(struct environment *environment, const struct cluster_view *view,
    const struct task *task, int64_t margin_bytes, const char *const *submitted)
{
    double fraction = memory_fraction(view, task, margin_bytes);
    if (fraction >= 1)
        return 0;
    const char *name = find_variable(submitted, "PYTORCH_ALLOC_CONF") ? "PYTORCH_ALLOC_CONF"
                                                                      : "PYTORCH_CUDA_ALLOC_CONF";
    const char *own = find_variable(submitted, name);
    bool has_own = own && *own;
    int r = environment_add(environment, "%s=%s%sper_process_memory_fraction:%.4f", name,
        has_own ? own : "", has_own ? "," : "", fraction);
    if (r < 0 || find_variable(submitted, "XLA_PYTHON_CLIENT_MEM_FRACTION"))
        return r;
    return environment_add(environment, "XLA_PYTHON_CLIENT_MEM_FRACTION=%.4f", fraction);
}

/* gcc's AddressSanitizer ends a program in which a preloaded library comes before it, unless this
 * option is 0. The user's options stay, and so does the user's value of this one. */
static int allow_sanitizer(struct environment *environment, const char *const *submitted)
{
    const char *own = find_variable(submitted, "ASAN_OPTIONS");
    bool has_own = own && *own;
    if (has_own && strstr(own, "verify_asan_link_order"))
        return 0;
    return environment_add(environment, "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
        has_own ? own : "", has_own ? ":" : "");
}

int environment_preload(struct environment *environment, const char *library, const char *socket,
    int attempt, const char *const *submitted)
{
    const char *own = find_variable(submitted, "LD_PRELOAD");
    bool has_own = own && *own;
    int r = environment_add(
        environment, "LD_PRELOAD=%s%s%s", library, has_own ? ":" : "", has_own ? own : "");
    if (r == 0)
        r = environment_add(environment, PRELOAD_SOCKET_VARIABLE "=%s", socket);
    if (r == 0)
        r = environment_add(environment, PRELOAD_ATTEMPT_VARIABLE "=%d", attempt);
    return r == 0 ? allow_sanitizer(environment, submitted) : r;
}
