/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin that Slurm's programs load (plugstack.conf, spank(7)):
 *
 *     optional /usr/lib/x86_64-linux-gnu/colloc/spank_colloc.so
 *
 * In sbatch, srun and salloc it adds the options --colloc-summary, --colloc-memory,
 * --colloc-sharing and --colloc-preload, and refuses mistakes in them. In slurmstepd it asks the
 * node's agent (src/daemon/node) before a step starts, and sets the variables of MPS and of the
 * preloaded library that the agent answers. Before a task starts in a container that does not have
 * the library, it takes it out of LD_PRELOAD again. When a batch script has failed it waits until
 * the agent knows whether GPU memory ran out, because until then the job still counts as running
 * and can be requeued without failing.
 *
 * Contract: in slurmstepd every function returns 0 after a bounded time. A job never fails and no
 * node drains because of this plugin: without an agent a step runs on the right GPU without MPS. A
 * negative value would drain the node and book the job as completed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "base/units.h"
#include "spank/libslurm_versions.h"

SPANK_PLUGIN(colloc, 1)

#define DEFAULT_SOCKET "/run/colloc/node.sock"

enum {
    START_MAX_S = 8, /* an MPS control daemon starts within 6 s (src/daemon/mps) */
    END_MAX_S = 40,  /* the agent's limit is 30 s (crash_verdict.c), and it may be restarted; less
                      * than Slurm's UnkillableStepTimeout, 60 s, beyond which the node drains */
    TRY_AGAIN_MS = 250,
    ABSENT_MS = 3000,  /* chosen: an agent without a socket was stopped, or never started */
    KILLED_MS = 15000, /* chosen: systemd starts one that was killed again after a second */
    REQUEST_MAX = 512, /* as in src/daemon/node/step_request.h */
    ANSWER_MAX = 1024,
    SOCKET_MAX = 4096,
    PRELOAD_MAX = 4096, /* of the user's LD_PRELOAD; longer ones are left alone */
};

static char preloaded[1024];    /* the library that the step was given; "": none */
static char sharing[16];        /* as --colloc-sharing says; "": it does not */
static bool has_library = true; /* unless --colloc-preload=no */

/* ---- the options ---- */

/* Checked where the user reads the message; what comes to slurmstepd has been checked. */
static int refuse_option(int remote, const char *option, const char *value, const char *expects)
{
    if (remote)
        return 0;
    slurm_error("--%s=%s: give %s", option, value ? value : "", expects);
    return -1;
}

static int take_summary(int number, const char *value, int remote)
{
    if (!value || !*value)
        return refuse_option(remote, "colloc-summary", value, "the file of a model's summary");
    return 0;
}

static int take_memory(int number, const char *value, int remote)
{
    int64_t bytes;
    if (!value || parse_size(value, &bytes) < 0 || bytes == 0)
        return refuse_option(remote, "colloc-memory", value, "a size such as 12GiB");
    return 0;
}

static int take_sharing(int number, const char *value, int remote)
{
    bool is_known = value && (strcmp(value, "auto") == 0 || strcmp(value, "streams") == 0 ||
                                 strcmp(value, "mps") == 0);
    if (!is_known)
        return refuse_option(remote, "colloc-sharing", value, "auto, streams or mps");
    snprintf(sharing, sizeof sharing, "%s", value);
    return 0;
}

static int take_preload(int number, const char *value, int remote)
{
    bool is_known = value && (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0);
    if (!is_known)
        return refuse_option(remote, "colloc-preload", value, "yes or no");
    has_library = strcmp(value, "yes") == 0;
    return 0;
}

#define TEXT(text) ((char *)(uintptr_t)(text)) /* spank.h has no const */

/* Not a table named spank_options, which sbatch and salloc do not read (spank(7)). */
static struct spank_option options[] = {
    {TEXT("colloc-summary"), TEXT("FILE"),
        TEXT("summary of the model to estimate its GPU memory from (torchinfo, torchsummary, "
             "print(model), Keras)"),
        1, 0, take_summary},
    {TEXT("colloc-memory"), TEXT("SIZE"), TEXT("GPU memory that each GPU must have free: 12GiB"), 1,
        0, take_memory},
    {TEXT("colloc-sharing"), TEXT("HOW"),
        TEXT("how GPUs are shared: streams (time-sliced), mps, or auto"), 1, 0, take_sharing},
    {TEXT("colloc-preload"), TEXT("yes|no"),
        TEXT("load the library that lets allocations wait for GPU memory (default: yes)"), 1, 0,
        take_preload},
    SPANK_OPTIONS_TABLE_END};

int slurm_spank_init(spank_t spank, int n_arguments, char **arguments)
{
    for (struct spank_option *option = options; option->name; option++)
        if (spank_option_register(spank, option) != ESPANK_SUCCESS)
            slurm_debug("colloc: --%s cannot be registered", option->name);
    return 0;
}

/* ---- the agent ---- */

/* The name of this node in the job's list of nodes; "": not known. SLURMD_NODENAME comes later. */
static void find_node(spank_t spank, char *name, size_t size)
{
    char list[4096];
    uint32_t number = 0;
    *name = '\0';
    if (spank_getenv(spank, "SLURM_JOB_NODELIST", list, sizeof list) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NODEID, &number) != ESPANK_SUCCESS)
        return;
    libslurm_hostlist nodes = slurm_hostlist_create(list);
    char *node = nodes ? slurm_hostlist_shift(nodes) : NULL;
    for (; node && number > 0; number--) {
        free(node);
        node = slurm_hostlist_shift(nodes);
    }
    if (node && !strchr(node, '/'))
        snprintf(name, size, "%s", node);
    free(node);
    if (nodes)
        slurm_hostlist_destroy(nodes);
}

/* Where several slurmd run on one machine, each node has its agent: "%n" in the path stands for the
 * node's name, as in slurm.conf. */
static void find_socket(spank_t spank, int n_arguments, char **arguments, char path[SOCKET_MAX])
{
    const char *given = DEFAULT_SOCKET;
    for (int i = 0; i < n_arguments; i++)
        if (strncmp(arguments[i], "socket=", strlen("socket=")) == 0)
            given = arguments[i] + strlen("socket=");
    const char *place = strstr(given, "%n");
    char node[256] = "";
    if (place)
        find_node(spank, node, sizeof node);
    if (place)
        snprintf(path, SOCKET_MAX, "%.*s%s%s", (int)(place - given), given, node, place + 2);
    else
        snprintf(path, SOCKET_MAX, "%s", given);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Gives the next call the rest of the time. Returns false when none is left. */
static bool limit_call(int fd, int64_t deadline_ms)
{
    const int64_t left_ms = deadline_ms - now_ms();
    const struct timeval limit = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    return left_ms > 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0;
}

/* Returns a connection, or -errno. */
static int connect_agent(const char *path, int64_t deadline_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int r = -ETIMEDOUT;
    if (limit_call(fd, deadline_ms))
        r = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* Returns the size of the answer; 0: it is empty, as agents of version 0.2 answer; or -errno,
 * -ECONNRESET: the agent ended without an answer. Only a packet has a sender. */
static ssize_t receive_answer(int fd, char answer[ANSWER_MAX])
{
    struct sockaddr_un sender;
    socklen_t size = sizeof sender;
    ssize_t n = recvfrom(fd, answer, ANSWER_MAX - 1, 0, (struct sockaddr *)&sender, &size);
    if (n == 0 && size == 0)
        return -ECONNRESET;
    return n == -1 ? -errno : n;
}

/* One request and its answer. Returns as receive_answer does. */
static ssize_t exchange_packets(
    const char *path, const char *request, int64_t deadline_ms, char answer[ANSWER_MAX])
{
    int fd = connect_agent(path, deadline_ms);
    if (fd < 0)
        return fd;
    ssize_t n = -ETIMEDOUT;
    if (limit_call(fd, deadline_ms))
        n = send(fd, request, strlen(request), MSG_NOSIGNAL) > 0 ? 0 : -errno;
    if (n == 0)
        n = limit_call(fd, deadline_ms) ? receive_answer(fd, answer) : -ETIMEDOUT;
    close(fd);
    return n;
}

/* How long to wait for an agent that is being restarted, or that ended before it answered. */
static int64_t find_patience_ms(ssize_t result)
{
    switch (result) {
    case -ENOENT:
        return ABSENT_MS;
    case -ECONNREFUSED:
    case -ECONNRESET:
    case -EPIPE:
        return KILLED_MS;
    default:
        return 0;
    }
}

/*
 * Asks the agent.
 *   limit_s      for all of it
 *   is_patient   ask again where the agent is being restarted
 * Returns the size of the answer, which is NUL-terminated; 0: none, or the agent is not there.
 */
static size_t ask_agent(
    const char *path, const char *request, int limit_s, bool is_patient, char answer[ANSWER_MAX])
{
    const struct timespec pause = {.tv_nsec = TRY_AGAIN_MS * 1000000L};
    const int64_t deadline_ms = now_ms() + limit_s * INT64_C(1000);
    ssize_t n = exchange_packets(path, request, deadline_ms, answer);
    const int64_t missed_ms = now_ms();
    while (is_patient && now_ms() - missed_ms < find_patience_ms(n)) {
        nanosleep(&pause, NULL);
        n = exchange_packets(path, request, deadline_ms, answer);
    }
    if (n < 0)
        slurm_debug("colloc: the agent of the node does not answer on %s", path);
    answer[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* ---- in slurmstepd ---- */

/*
 * The indices of the step's GPUs on this node; "": none, or they are not indices.
 *
 * No item of spank_get_item has them. slurmstepd sets SLURM_JOB_GPUS for the batch script and
 * SLURM_STEP_GPUS for other steps, and removes that variable where there are no GPUs; the other of
 * the two may come from the environment in which the user submitted (measured with Slurm 22.05).
 * CUDA_VISIBLE_DEVICES counts from 0 within the job where Slurm constrains devices.
 */
static void find_gpus(spank_t spank, uint32_t step, char *gpus, int size)
{
    const char *name = step == SLURM_BATCH_SCRIPT ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS";
    if (spank_getenv(spank, name, gpus, size) != ESPANK_SUCCESS ||
        strspn(gpus, "0123456789,") != strlen(gpus))
        *gpus = '\0';
}

/* ---- a list of libraries to preload: ld.so(8) ---- */

static const char separators[] = ": ";

/* Returns the first entry of this name, or NULL. */
static char *find_entry(char *list, const char *name)
{
    size_t size = strlen(name), length;
    for (char *at = list; *at; at += length + (at[length] != '\0')) {
        length = strcspn(at, separators);
        if (length == size && strncmp(at, name, size) == 0)
            return at;
    }
    return NULL;
}

static void remove_entries(char *list, const char *name)
{
    char *at, *rest;
    while ((at = find_entry(list, name))) {
        rest = at + strlen(name);
        rest += *rest != '\0';
        memmove(at, rest, strlen(rest) + 1);
    }
    size_t length = strlen(list);
    if (length > 0 && strchr(separators, list[length - 1]))
        list[length - 1] = '\0';
}

/* The library comes before those that the user preloads. One that was inherited stays. */
static void set_library(spank_t spank, const char *library)
{
    char own[PRELOAD_MAX] = "", both[2 * PRELOAD_MAX];
    spank_err_t r = spank_getenv(spank, "LD_PRELOAD", own, sizeof own);
    if (r == ESPANK_NOSPACE)
        return;
    snprintf(preloaded, sizeof preloaded, "%s", library);
    if (find_entry(own, library))
        return;
    bool has_own = r == ESPANK_SUCCESS && *own;
    snprintf(both, sizeof both, "%s%s%s", library, has_own ? ":" : "", has_own ? own : "");
    spank_setenv(spank, "LD_PRELOAD", both, 1);
}

static void unset_library(spank_t spank)
{
    char list[2 * PRELOAD_MAX] = "";
    if (spank_getenv(spank, "LD_PRELOAD", list, sizeof list) != ESPANK_SUCCESS)
        return;
    remove_entries(list, preloaded);
    if (*list)
        spank_setenv(spank, "LD_PRELOAD", list, 1);
    else
        spank_unsetenv(spank, "LD_PRELOAD");
}

/* Variables of the preloaded library, which a job can refuse. */
static bool is_of_library(const char *name)
{
    return strncmp(name, "COLLOC_PRELOAD_", strlen("COLLOC_PRELOAD_")) == 0;
}

static void set_variables(spank_t spank, char *answer)
{
    char *rest = NULL;
    for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = '\0';
        if (is_of_library(line) && !has_library)
            continue;
        if (strcmp(line, "COLLOC_PRELOAD_LIBRARY") == 0)
            set_library(spank, value);
        else
            spank_setenv(spank, line, value, 1);
    }
}

static bool is_step(spank_t spank, uint32_t *ret_job, uint32_t *ret_step)
{
    return spank_context() == S_CTX_REMOTE &&
           spank_get_item(spank, S_JOB_ID, ret_job) == ESPANK_SUCCESS &&
           spank_get_item(spank, S_JOB_STEPID, ret_step) == ESPANK_SUCCESS &&
           *ret_step != SLURM_EXTERN_CONT;
}

/* " array=12 task=3", or "" where the job is no task of an array. */
static void describe_task(spank_t spank, char *text, size_t size)
{
    uint32_t array = 0, task = NO_VAL;
    *text = '\0';
    if (spank_get_item(spank, S_JOB_ARRAY_ID, &array) == ESPANK_SUCCESS && array != 0 &&
        spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &task) == ESPANK_SUCCESS && task != NO_VAL)
        snprintf(text, size, " array=%" PRIu32 " task=%" PRIu32, array, task);
}

/* What both requests say of the step. Returns false when it is no step with GPUs. */
static bool describe_step(spank_t spank, uint32_t *ret_step, char *text, size_t size)
{
    uint32_t job;
    uid_t uid;
    gid_t gid;
    char gpus[256], task[64];
    if (!is_step(spank, &job, ret_step) ||
        spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS)
        return false;
    find_gpus(spank, *ret_step, gpus, sizeof gpus);
    describe_task(spank, task, sizeof task);
    snprintf(text, size, "job=%" PRIu32 " step=%" PRId32 " uid=%u gid=%u gpus=%s%s", job,
        (int32_t)*ret_step, (unsigned)uid, (unsigned)gid, gpus, task);
    return *gpus;
}

int slurm_spank_init_post_opt(spank_t spank, int n_arguments, char **arguments)
{
    uint32_t step;
    char text[REQUEST_MAX - 64], request[REQUEST_MAX], answer[ANSWER_MAX], path[SOCKET_MAX];
    if (!describe_step(spank, &step, text, sizeof text))
        return 0;
    snprintf(request, sizeof request, "start %s sharing=%s", text, *sharing ? sharing : "auto");
    find_socket(spank, n_arguments, arguments, path);
    if (ask_agent(path, request, START_MAX_S, false, answer) > 0)
        set_variables(spank, answer);
    return 0;
}

/* A task that another plugin starts in a container is in the container's file system by now, if
 * that plugin comes before this one in plugstack.conf: pyxis joins it in this call, too. Where the
 * library is not there, each process would print an error of the dynamic linker. */
int slurm_spank_task_init(spank_t spank, int n_arguments, char **arguments)
{
    if (*preloaded && access(preloaded, R_OK) != 0)
        unset_library(spank);
    return 0;
}

int slurm_spank_task_exit(spank_t spank, int n_arguments, char **arguments)
{
    uint32_t step;
    int status = 0;
    char text[REQUEST_MAX - 64], request[REQUEST_MAX], answer[ANSWER_MAX], path[SOCKET_MAX];
    if (!describe_step(spank, &step, text, sizeof text) || step != SLURM_BATCH_SCRIPT ||
        spank_get_item(spank, S_TASK_EXIT_STATUS, &status) != ESPANK_SUCCESS || status == 0)
        return 0;
    snprintf(request, sizeof request, "end %s status=%d", text, status);
    find_socket(spank, n_arguments, arguments, path);
    ask_agent(path, request, END_MAX_S, true, answer);
    return 0;
}
