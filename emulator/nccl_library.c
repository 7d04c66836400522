/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnccl.so.2 of pretend collectives, between processes of one machine: ranks wait for each
 * other as NCCL's do.
 *
 *     ncclCommInitRank      returns when all ranks are in it
 *     the first collective  returns when all ranks have called it: it makes the connections
 *     a later one           returns at once; its work ends when all ranks have launched it
 *     cuCtxSynchronize      waits for the work (both pretend libcudas call back)
 *
 * A rank that is killed lets the others wait for ever. An all-reduce sums up to VALUES_MAX numbers
 * of 64 bits and writes them into the buffer on the "GPU", which is a crash where no memory is. The
 * ranks meet in a file beside the emulated GPUs, by the name of the communicator's id.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { RANKS_MAX = 16, SLOTS = 8, VALUES_MAX = 64, GROUP_MAX = 16, PATH_SIZE = 512 };
enum { POLL_US = 200 }; /* chosen: a collective takes about as long */

typedef struct {
    char internal[128];
} ncclUniqueId;

/* The file. */
struct meeting {
    _Atomic uint32_t joined; /* a bit for each rank */
    _Atomic uint64_t launched[RANKS_MAX], done[RANKS_MAX];
    int64_t values[SLOTS][RANKS_MAX][VALUES_MAX];
};

/* An all-reduce on its way. */
struct work {
    int64_t *to;
    size_t count;
};

typedef struct communicator {
    struct meeting *meeting;
    char path[PATH_SIZE];
    int n_ranks, rank;
    _Atomic bool is_aborted;
    struct work work[SLOTS];
    pthread_t thread;
} * ncclComm_t;

static _Atomic uint64_t outstanding; /* of all communicators of the process */

/* ---- waiting ---- */

static void wait_a_moment(void)
{
    usleep(POLL_US);
}

static bool all_have(const struct communicator *comm, const _Atomic uint64_t *counts, uint64_t n)
{
    for (int i = 0; i < comm->n_ranks; i++)
        if (atomic_load(&counts[i]) < n)
            return false;
    return true;
}

static void wait_for_all(
    const struct communicator *comm, const _Atomic uint64_t *counts, uint64_t n)
{
    while (!all_have(comm, counts, n) && !atomic_load(&comm->is_aborted))
        wait_a_moment();
}

/* What a synchronising call of the pretend libcuda does. */
static void wait_for_work(void)
{
    while (atomic_load(&outstanding))
        wait_a_moment();
}

/* ---- the driver, which each launch calls, too ---- */

typedef int get_current(void **context);
typedef void set_wait(void (*wait)(void));

/* Writes a pointer to the function, or NULL. */
static void find_in_driver(const char *name, void *ret_function)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    memcpy(ret_function, &found, sizeof found);
}

static void call_driver(void)
{
    get_current *call;
    void *context;
    find_in_driver("cuCtxGetCurrent", &call);
    if (call)
        call(&context);
}

static void let_driver_wait(void)
{
    set_wait *call;
    find_in_driver("cuStreamPretendWork", &call);
    if (call)
        call(wait_for_work);
}

/* ---- the GPU's part ---- */

static void finish_collective(struct communicator *comm, uint64_t number)
{
    const struct work *work = &comm->work[number % SLOTS];
    for (size_t i = 0; i < work->count; i++) {
        int64_t sum = 0;
        for (int r = 0; r < comm->n_ranks; r++)
            sum += comm->meeting->values[number % SLOTS][r][i];
        work->to[i] = sum;
    }
}

static void *run_gpu(void *argument)
{
    struct communicator *comm = argument;
    for (uint64_t number = 1;; number++) {
        while (atomic_load(&comm->meeting->launched[comm->rank]) < number)
            if (atomic_load(&comm->is_aborted))
                return NULL;
            else
                wait_a_moment();
        wait_for_all(comm, comm->meeting->launched, number);
        if (!atomic_load(&comm->is_aborted))
            finish_collective(comm, number);
        atomic_fetch_add(&comm->meeting->done[comm->rank], 1);
        atomic_fetch_sub(&outstanding, 1);
    }
}

/* ---- launches, also of groups ---- */

static _Thread_local int depth;
static _Thread_local struct launch {
    ncclComm_t comm;
    const int64_t *from;
    int64_t *to;
    size_t count;
} group[GROUP_MAX];
static _Thread_local int n_group;

static void launch_one(const struct launch *launch)
{
    struct communicator *comm = launch->comm;
    struct meeting *meeting = comm->meeting;
    uint64_t number = atomic_load(&meeting->launched[comm->rank]) + 1;
    call_driver();
    if (number > SLOTS)
        wait_for_all(comm, meeting->done, number - SLOTS);
    comm->work[number % SLOTS] = (struct work){launch->to, launch->count};
    memcpy(meeting->values[number % SLOTS][comm->rank], launch->from,
        launch->count * sizeof *launch->from);
    atomic_fetch_add(&outstanding, 1);
    atomic_fetch_add(&meeting->launched[comm->rank], 1);
    if (number == 1)
        wait_for_all(comm, meeting->launched, 1);
    call_driver();
}

EXPORT int ncclGroupStart(void);
int ncclGroupStart(void)
{
    depth++;
    return OK;
}

EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    if (depth == 0)
        return INVALID_USAGE;
    if (--depth > 0)
        return OK;
    for (int i = 0; i < n_group; i++)
        launch_one(&group[i]);
    n_group = 0;
    return OK;
}

EXPORT int ncclAllReduce(
    const void *from, void *to, size_t count, int type, int op, ncclComm_t comm, void *stream);
int ncclAllReduce(
    const void *from, void *to, size_t count, int type, int op, ncclComm_t comm, void *stream)
{
    const struct launch launch = {comm, from, to, count};
    if (!comm || count > VALUES_MAX || n_group == GROUP_MAX)
        return INVALID_ARGUMENT;
    if (depth > 0)
        group[n_group++] = launch;
    else
        launch_one(&launch);
    return OK;
}

EXPORT int ncclSend(
    const void *from, size_t count, int type, int peer, ncclComm_t comm, void *stream);
int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, void *stream)
{
    return OK;
}

/* ---- communicators ---- */

EXPORT int ncclGetUniqueId(ncclUniqueId *id);
int ncclGetUniqueId(ncclUniqueId *id)
{
    return getrandom(id, sizeof *id, 0) == sizeof *id ? OK : SYSTEM_ERROR;
}

static void name_file(const ncclUniqueId *id, char *path)
{
    const char *gpus = getenv("PRETEND_NCCL");
    uint64_t number;
    memcpy(&number, id->internal, sizeof number);
    if (!gpus)
        gpus = getenv("COLLOC_EMULATOR");
    snprintf(path, PATH_SIZE, "%s.nccl-%016llx", gpus ? gpus : "/tmp/pretend",
        (unsigned long long)number);
}

static struct meeting *open_meeting(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(struct meeting)) == 0)
        memory = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

EXPORT int ncclCommInitRank(ncclComm_t *ret_comm, int n_ranks, ncclUniqueId id, int rank);
int ncclCommInitRank(ncclComm_t *ret_comm, int n_ranks, ncclUniqueId id, int rank)
{
    if (n_ranks < 1 || n_ranks > RANKS_MAX || rank < 0 || rank >= n_ranks)
        return INVALID_ARGUMENT;
    struct communicator *comm = calloc(1, sizeof *comm);
    if (!comm)
        return SYSTEM_ERROR;
    comm->n_ranks = n_ranks;
    comm->rank = rank;
    name_file(&id, comm->path);
    comm->meeting = open_meeting(comm->path);
    if (!comm->meeting) {
        free(comm);
        return SYSTEM_ERROR;
    }
    *ret_comm = comm;
    let_driver_wait();
    atomic_fetch_or(&comm->meeting->joined, UINT32_C(1) << rank);
    while (atomic_load(&comm->meeting->joined) != (UINT32_C(1) << n_ranks) - 1)
        wait_a_moment();
    unlink(comm->path);
    return pthread_create(&comm->thread, NULL, run_gpu, comm) == 0 ? OK : SYSTEM_ERROR;
}

EXPORT int ncclCommInitRankConfig(
    ncclComm_t *ret_comm, int n_ranks, ncclUniqueId id, int rank, void *config);
int ncclCommInitRankConfig(
    ncclComm_t *ret_comm, int n_ranks, ncclUniqueId id, int rank, void *config)
{
    return ncclCommInitRank(ret_comm, n_ranks, id, rank);
}

EXPORT int ncclCommCount(ncclComm_t comm, int *ret_count);
int ncclCommCount(ncclComm_t comm, int *ret_count)
{
    *ret_count = comm->n_ranks;
    return OK;
}

/* Its memory stays: a thread of the program may still be in a call. */
EXPORT int ncclCommAbort(ncclComm_t comm);
int ncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return INVALID_ARGUMENT;
    atomic_store(&comm->is_aborted, true);
    return pthread_join(comm->thread, NULL) == 0 ? OK : SYSTEM_ERROR;
}

EXPORT int ncclCommDestroy(ncclComm_t comm);
int ncclCommDestroy(ncclComm_t comm)
{
    wait_for_work();
    return ncclCommAbort(comm);
}
