/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnccl.so.2 of pretend collectives, between processes of one machine: ranks wait for each
 * other as NCCL's do.
 *
 *     ncclCommInitRank      returns when all ranks are in it
 *     the first collective  returns when all ranks have called it: it makes the connections
 *     a later one           returns at once; its work ends when all ranks have launched it
 *     ncclSend, ncclRecv    the same between two ranks; those of a group are one work
 *     ncclAlltoAll, Gather, Scatter    such groups, as in NCCL
 *     one that is captured  is launched by cuGraphLaunch (the libcuda of tests/preload calls back);
 *                           the first one returns when all ranks have captured it
 *     cuCtxSynchronize      waits for the work (both pretend libcudas call back)
 *
 * With PRETEND_NCCL_MIB=N a communicator takes N MiB of physical memory before its first work, in
 * another thread than the caller's, as NCCL does for its buffers.
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
enum { RANKS_MAX = 16, SLOTS = 8, VALUES_MAX = 64, GROUP_MAX = 32, PATH_SIZE = 512 };
enum { CAPTURED_MAX = 256 };
enum { POLL_US = 200 }; /* chosen: a collective takes about as long */

typedef struct {
    char internal[128];
} ncclUniqueId;

/* The file. */
struct meeting {
    _Atomic uint32_t joined; /* a bit for each rank */
    _Atomic uint64_t launched[RANKS_MAX], done[RANKS_MAX], captured[RANKS_MAX];
    int64_t values[SLOTS][RANKS_MAX][VALUES_MAX];
    struct lane { /* from a rank to another one */
        _Atomic uint64_t sent, received, taken;
        int64_t values[SLOTS][VALUES_MAX];
    } lanes[RANKS_MAX][RANKS_MAX];
};

enum kind { REDUCE, SEND, RECEIVE };

/* What the GPU does next: an all-reduce, or the sends and receives of a group. */
struct work {
    int n;
    struct part {
        enum kind kind;
        struct lane *lane;
        uint64_t number; /* of the collectives, or of the lane's messages */
        int64_t *to;
        size_t count;
    } parts[GROUP_MAX];
};

typedef struct communicator {
    struct meeting *meeting;
    char path[PATH_SIZE];
    int n_ranks, rank;
    _Atomic bool is_aborted;
    struct work work[SLOTS];
    _Atomic uint64_t queued, finished;
    pthread_t thread;
    bool has_buffers;
    uint64_t buffers; /* a handle; 0: none */
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

/* ---- NCCL's own memory ---- */

typedef struct {
    int type, handles, where, device;
    void *meta;
    unsigned char flags[8];
} memory_properties; /* CUmemAllocationProp */

typedef int get_device(int *device);
typedef int create_memory(
    uint64_t *handle, size_t bytes, const memory_properties *of, unsigned long long flags);
typedef int release_memory(uint64_t handle);

struct making {
    struct communicator *comm;
    int device;
    size_t bytes;
};

static void *make_buffers(void *argument)
{
    enum { PINNED = 1, BY_DESCRIPTOR = 1, ON_DEVICE = 1 };
    const struct making *making = argument;
    const memory_properties of = {PINNED, BY_DESCRIPTOR, ON_DEVICE, making->device, NULL, {0}};
    create_memory *call;
    find_in_driver("cuMemCreate", &call);
    if (!call || call(&making->comm->buffers, making->bytes, &of, 0) != OK)
        making->comm->buffers = 0;
    return NULL;
}

/* Called by the thread that launches, which waits. */
static void take_buffers(struct communicator *comm)
{
    const char *mib = getenv("PRETEND_NCCL_MIB");
    struct making making = {.comm = comm, .bytes = mib ? strtoul(mib, NULL, 10) << 20 : 0};
    get_device *call;
    pthread_t maker;
    bool is_first = !comm->has_buffers;
    comm->has_buffers = true;
    find_in_driver("cuCtxGetDevice", &call);
    if (is_first && making.bytes && call && call(&making.device) == OK &&
        pthread_create(&maker, NULL, make_buffers, &making) == 0)
        pthread_join(maker, NULL);
}

static void drop_buffers(struct communicator *comm)
{
    release_memory *call;
    find_in_driver("cuMemRelease", &call);
    if (comm->buffers && call)
        call(comm->buffers);
    comm->buffers = 0;
}

/* ---- the GPU's part ---- */

static void finish_reduce(struct communicator *comm, const struct part *part)
{
    struct meeting *meeting = comm->meeting;
    wait_for_all(comm, meeting->launched, part->number);
    for (size_t i = 0; i < part->count && !atomic_load(&comm->is_aborted); i++) {
        int64_t sum = 0;
        for (int r = 0; r < comm->n_ranks; r++)
            sum += meeting->values[part->number % SLOTS][r][i];
        part->to[i] = sum;
    }
    atomic_fetch_add(&meeting->done[comm->rank], 1);
}

static void wait_for_count(
    const struct communicator *comm, const _Atomic uint64_t *count, uint64_t n)
{
    while (atomic_load(count) < n && !atomic_load(&comm->is_aborted))
        wait_a_moment();
}

static void finish_message(struct communicator *comm, const struct part *part)
{
    bool is_sent = part->kind == SEND;
    wait_for_count(comm, is_sent ? &part->lane->received : &part->lane->sent, part->number);
    if (is_sent || atomic_load(&comm->is_aborted))
        return;
    memcpy(part->to, part->lane->values[part->number % SLOTS], part->count * sizeof *part->to);
    atomic_fetch_add(&part->lane->taken, 1);
}

static void *run_gpu(void *argument)
{
    struct communicator *comm = argument;
    for (uint64_t next = 0;; next++) {
        wait_for_count(comm, &comm->queued, next + 1);
        if (atomic_load(&comm->queued) <= next)
            return NULL;
        const struct work *work = &comm->work[next % SLOTS];
        for (int i = 0; i < work->n; i++)
            if (work->parts[i].kind == REDUCE)
                finish_reduce(comm, &work->parts[i]);
            else
                finish_message(comm, &work->parts[i]);
        atomic_fetch_add(&comm->finished, 1);
        atomic_fetch_sub(&outstanding, 1);
    }
}

/* ---- launches, also of groups ---- */

static _Thread_local int depth;
struct launch {
    enum kind kind;
    int peer;
    ncclComm_t comm;
    const int64_t *from;
    int64_t *to;
    size_t count;
    uint64_t capture; /* of its stream; 0: none */
};
static _Thread_local struct launch group[GROUP_MAX];
static _Thread_local int n_group;

/* The GPU has finished what was at its place. */
static struct work *begin_work(struct communicator *comm)
{
    uint64_t queued = atomic_load(&comm->queued);
    if (queued >= SLOTS)
        wait_for_count(comm, &comm->finished, queued + 1 - SLOTS);
    struct work *work = &comm->work[queued % SLOTS];
    work->n = 0;
    return work;
}

static void queue_work(struct communicator *comm)
{
    atomic_fetch_add(&outstanding, 1);
    atomic_fetch_add(&comm->queued, 1);
}

static void launch_reduce(const struct launch *launch)
{
    struct communicator *comm = launch->comm;
    struct meeting *meeting = comm->meeting;
    uint64_t number = atomic_load(&meeting->launched[comm->rank]) + 1;
    if (number > SLOTS)
        wait_for_all(comm, meeting->done, number - SLOTS);
    memcpy(meeting->values[number % SLOTS][comm->rank], launch->from,
        launch->count * sizeof *launch->from);
    struct work *work = begin_work(comm);
    work->parts[work->n++] = (struct part){REDUCE, NULL, number, launch->to, launch->count};
    queue_work(comm);
    atomic_fetch_add(&meeting->launched[comm->rank], 1);
    if (number == 1)
        wait_for_all(comm, meeting->launched, 1);
}

static struct part launch_send(const struct launch *launch)
{
    struct communicator *comm = launch->comm;
    struct lane *lane = &comm->meeting->lanes[comm->rank][launch->peer];
    uint64_t number = atomic_load(&lane->sent) + 1;
    if (number > SLOTS)
        wait_for_count(comm, &lane->taken, number - SLOTS);
    memcpy(lane->values[number % SLOTS], launch->from, launch->count * sizeof *launch->from);
    atomic_fetch_add(&lane->sent, 1);
    return (struct part){SEND, lane, number, NULL, launch->count};
}

static struct part launch_receive(const struct launch *launch)
{
    struct communicator *comm = launch->comm;
    struct lane *lane = &comm->meeting->lanes[launch->peer][comm->rank];
    uint64_t number = atomic_fetch_add(&lane->received, 1) + 1;
    return (struct part){RECEIVE, lane, number, launch->to, launch->count};
}

/* The first message between two ranks makes the connection. */
static void launch_messages(ncclComm_t comm, const struct launch *launches, int n)
{
    struct work *work = begin_work(comm);
    for (int i = 0; i < n; i++)
        if (launches[i].comm == comm && launches[i].kind != REDUCE)
            work->parts[work->n++] = launches[i].kind == SEND ? launch_send(&launches[i])
                                                              : launch_receive(&launches[i]);
    const struct work launched = *work;
    queue_work(comm);
    for (int i = 0; i < launched.n; i++) {
        struct lane *lane = launched.parts[i].lane;
        if (launched.parts[i].number == 1)
            wait_for_count(comm, launched.parts[i].kind == SEND ? &lane->received : &lane->sent, 1);
    }
}

static bool is_first_of_its_messages(const struct launch *launches, int i)
{
    for (int k = 0; k < i; k++)
        if (launches[k].kind != REDUCE && launches[k].comm == launches[i].comm)
            return false;
    return launches[i].kind != REDUCE;
}

static void launch_all(const struct launch *launches, int n)
{
    call_driver();
    for (int i = 0; i < n; i++)
        take_buffers(launches[i].comm);
    for (int i = 0; i < n; i++)
        if (launches[i].kind == REDUCE)
            launch_reduce(&launches[i]);
    for (int i = 0; i < n; i++)
        if (is_first_of_its_messages(launches, i))
            launch_messages(launches[i].comm, launches, n);
    call_driver();
}

/* ---- captures ---- */

typedef int get_capture_info(void *stream, int *status, uint64_t *number);
typedef void set_launch(void (*launch)(uint64_t capture));

static struct launch captured[CAPTURED_MAX];
static int n_captured;

static uint64_t capture_of(void *stream)
{
    get_capture_info *call;
    uint64_t number = 0;
    int status = 0;
    find_in_driver("cuStreamGetCaptureInfo", &call);
    return call && call(stream, &status, &number) == 0 && status ? number : 0;
}

/* What a graph's launch by the pretend libcuda does. */
static void launch_graph(uint64_t capture)
{
    struct launch launches[GROUP_MAX];
    int n = 0;
    for (int i = 0; i < n_captured && n < GROUP_MAX; i++)
        if (captured[i].capture == capture)
            launches[n++] = captured[i];
    if (n > 0)
        launch_all(launches, n);
}

static void let_driver_launch(void)
{
    set_launch *call;
    find_in_driver("cuGraphPretendWork", &call);
    if (call)
        call(launch_graph);
}

static void capture_one(const struct launch *launch)
{
    struct communicator *comm = launch->comm;
    if (n_captured < CAPTURED_MAX)
        captured[n_captured++] = *launch;
    if (launch->kind == REDUCE && atomic_fetch_add(&comm->meeting->captured[comm->rank], 1) == 0)
        wait_for_all(comm, comm->meeting->captured, 1);
}

/* ---- calls ---- */

static void do_group(void)
{
    struct launch launches[GROUP_MAX];
    int n = 0;
    for (int i = 0; i < n_group; i++)
        if (group[i].capture)
            capture_one(&group[i]);
        else
            launches[n++] = group[i];
    n_group = 0;
    if (n > 0)
        launch_all(launches, n);
}

static int add_launch(struct launch launch, void *stream)
{
    if (!launch.comm || launch.count > VALUES_MAX || n_group == GROUP_MAX)
        return INVALID_ARGUMENT;
    if (launch.kind != REDUCE && (launch.peer < 0 || launch.peer >= launch.comm->n_ranks))
        return INVALID_ARGUMENT;
    launch.capture = capture_of(stream);
    group[n_group++] = launch;
    if (depth == 0)
        do_group();
    return OK;
}

EXPORT int ncclGroupStart(void);
int ncclGroupStart(void)
{
    depth++;
    return OK;
}

static void end_group(void)
{
    if (--depth == 0)
        do_group();
}

EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    if (depth == 0)
        return INVALID_USAGE;
    end_group();
    return OK;
}

EXPORT int ncclAllReduce(
    const void *from, void *to, size_t count, int type, int op, ncclComm_t comm, void *stream);
int ncclAllReduce(
    const void *from, void *to, size_t count, int type, int op, ncclComm_t comm, void *stream)
{
    return add_launch((struct launch){REDUCE, 0, comm, from, to, count, 0}, stream);
}

EXPORT int ncclSend(
    const void *from, size_t count, int type, int peer, ncclComm_t comm, void *stream);
int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, void *stream)
{
    return add_launch((struct launch){SEND, peer, comm, from, NULL, count, 0}, stream);
}

EXPORT int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, void *stream);
int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, void *stream)
{
    return add_launch((struct launch){RECEIVE, peer, comm, NULL, to, count, 0}, stream);
}

/* ---- collectives of NCCL 2.28: groups of sends and receives ---- */

enum { EACH_RANK = -1 };

struct exchange {
    ncclComm_t comm;
    int source, target; /* a rank or EACH_RANK: each source has a block for each target */
    const int64_t *from;
    int64_t *to;
    size_t count; /* of a block */
};

static bool is_rank(int which, int rank)
{
    return which == EACH_RANK || which == rank;
}

static int exchange_with(const struct exchange *all, int peer, void *stream)
{
    ncclComm_t comm = all->comm;
    size_t place = (size_t)peer * all->count;
    const int64_t *from = all->from + (all->target == EACH_RANK ? place : 0);
    int64_t *to = all->to + (all->source == EACH_RANK ? place : 0);
    bool sends = is_rank(all->source, comm->rank) && is_rank(all->target, peer);
    bool receives = is_rank(all->source, peer) && is_rank(all->target, comm->rank);
    int r = OK;
    if (sends)
        r = add_launch((struct launch){SEND, peer, comm, from, NULL, all->count, 0}, stream);
    if (receives && r == OK)
        r = add_launch((struct launch){RECEIVE, peer, comm, NULL, to, all->count, 0}, stream);
    return r;
}

static int exchange_blocks(const struct exchange *all, void *stream)
{
    int r = all->comm && all->count <= VALUES_MAX ? OK : INVALID_ARGUMENT;
    depth++;
    for (int peer = 0; r == OK && peer < all->comm->n_ranks; peer++)
        r = exchange_with(all, peer, stream);
    end_group();
    return r;
}

EXPORT int ncclAlltoAll(
    const void *from, void *to, size_t count, int type, ncclComm_t comm, void *stream);
int ncclAlltoAll(const void *from, void *to, size_t count, int type, ncclComm_t comm, void *stream)
{
    return exchange_blocks(&(struct exchange){comm, EACH_RANK, EACH_RANK, from, to, count}, stream);
}

EXPORT int ncclGather(
    const void *from, void *to, size_t count, int type, int root, ncclComm_t comm, void *stream);
int ncclGather(
    const void *from, void *to, size_t count, int type, int root, ncclComm_t comm, void *stream)
{
    return exchange_blocks(&(struct exchange){comm, EACH_RANK, root, from, to, count}, stream);
}

EXPORT int ncclScatter(
    const void *from, void *to, size_t count, int type, int root, ncclComm_t comm, void *stream);
int ncclScatter(
    const void *from, void *to, size_t count, int type, int root, ncclComm_t comm, void *stream)
{
    return exchange_blocks(&(struct exchange){comm, root, EACH_RANK, from, to, count}, stream);
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
    let_driver_launch();
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

EXPORT int ncclCommUserRank(ncclComm_t comm, int *ret_rank);
int ncclCommUserRank(ncclComm_t comm, int *ret_rank)
{
    *ret_rank = comm->rank;
    return OK;
}

/* Its memory stays: a thread of the program may still be in a call. */
EXPORT int ncclCommAbort(ncclComm_t comm);
int ncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return INVALID_ARGUMENT;
    atomic_store(&comm->is_aborted, true);
    int r = pthread_join(comm->thread, NULL);
    drop_buffers(comm);
    return r == 0 ? OK : SYSTEM_ERROR;
}

EXPORT int ncclCommDestroy(ncclComm_t comm);
int ncclCommDestroy(ncclComm_t comm)
{
    wait_for_work();
    return ncclCommAbort(comm);
}
