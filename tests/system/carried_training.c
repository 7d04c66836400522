/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training as the preloaded library and its carrier see it: blocks of GPU memory, each filled
 * with another byte, that every step reads back and compares. So a block that was lost, or
 * came back with other contents, ends it. It finds CUDA by dlsym, as Python's frameworks do, and
 * has no sanitizer, since it is run with a preloaded library.
 *
 *     carried-training --end=FILE           prints "step" after each step, and "whole" at its end
 *     carried-training --steps=500 --grows=go --grows-mib=300
 *                                           500 steps; once the file `go` exists it takes 300 MiB
 *                                           more, and prints "grew"
 *     carried-training --pieces=5 --piece-mib=20
 *                                           after each fourth step 20 MiB more, five times
 *     carried-training --execs=FILE         once the file exists, a thread of it loads `sleep 1000`
 *                                           in its place
 *     carried-training --short=FILE         while the file exists no memory can be mapped; a thread
 *                                           prints "short" once that is so
 *
 * Ends with 1 where a call fails, after a line that names the call, and with 2 where a block is
 * lost.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/page.h"

enum { BLOCKS_MAX = 32, MIB = 1 << 20, FAILED = 1, LOST = 2, FDS_MAX = 1024 };
enum { PIECE_STEPS = 4 };
enum { STEP_NS = 10 * 1000 * 1000 }; /* chosen: many steps in a poll of the agent */
enum { NCCL_INT64 = 4, NCCL_SUM = 0, PINNED = 1, ON_DEVICE = 1 };

typedef struct {
    int type, handles, where, id;
    void *meta;
    unsigned char flags[8];
} memory_properties; /* CUmemAllocationProp */

typedef struct {
    char bytes[128];
} nccl_id;

typedef struct {
    unsigned char bytes[64];
} ipc_handle;

/* The functions, by their names there. */
static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuMemAlloc_v2)(uint64_t *at, size_t bytes);
    int (*cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t bytes);
    int (*cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t bytes);
    int (*cuCtxSynchronize)(void);
    int (*cuMemCreate)(uint64_t *handle, size_t bytes, const memory_properties *of, uint64_t flags);
    int (*cuIpcGetMemHandle)(ipc_handle *handle, uint64_t at);
    int (*cuIpcOpenMemHandle_v2)(uint64_t *at, ipc_handle handle, unsigned flags);
    int (*ncclCommInitRank)(void **communicator, int ranks, nccl_id id, int rank);
    int (*ncclAllReduce)(const void *from, void *to, size_t n, int type, int operation,
        void *communicator, void *stream);
    int (*ncclSend)(
        const void *from, size_t n, int type, int peer, void *communicator, void *stream);
    int (*ncclRecv)(void *to, size_t n, int type, int peer, void *communicator, void *stream);
    int (*ncclGroupStart)(void);
    int (*ncclGroupEnd)(void);
} call;

static struct {
    long device, n_blocks, first_mib, pool_mib, grows_mib, n_pieces, piece_mib;
    long keeps; /* its descriptors are open in the program of --execs */
    long steps; /* 0: until `end` exists */
    const char *end, *idle, *grows, *execs, *is_short;
    long has_nccl, rank, communicates; /* rank: of two; -1: none */
    long hangs, is_patient, shares;
    const char *opens; /* a handle of legacy IPC, in hexadecimal */
} options = {.n_blocks = 6, .first_mib = 8, .rank = -1};

static struct block {
    uint64_t at;
    size_t bytes;
    unsigned char byte;
} blocks[BLOCKS_MAX];
static int n_blocks;
static unsigned char *copy; /* as large as the largest block */
static size_t copy_bytes;

static void print(const char *line)
{
    puts(line);
    fflush(stdout);
}

static void check(int result, const char *what)
{
    if (result == 0)
        return;
    printf("%s: %d\n", what, result);
    exit(FAILED);
}

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

#define CALL(function, ...) check(call.function(__VA_ARGS__), #function)

static void find(void *library, const char *name, void *ret_function)
{
    void *found = library ? dlsym(library, name) : NULL;
    check(!found, name);
    memcpy(ret_function, &found, sizeof found);
}

#define FIND(library, function) find(library, #function, &call.function)

static void find_functions(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    FIND(cuda, cuInit);
    FIND(cuda, cuDevicePrimaryCtxRetain);
    FIND(cuda, cuCtxSetCurrent);
    FIND(cuda, cuMemAlloc_v2);
    FIND(cuda, cuMemcpyHtoD_v2);
    FIND(cuda, cuMemcpyDtoH_v2);
    FIND(cuda, cuCtxSynchronize);
    FIND(cuda, cuMemCreate);
    FIND(cuda, cuIpcGetMemHandle);
    FIND(cuda, cuIpcOpenMemHandle_v2);
    if (!options.has_nccl)
        return;
    /* As PyTorch is linked: found in the program's own scope, where the library stands before. */
    check(!dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL), "libnccl.so.2");
    void *scope = dlopen(NULL, RTLD_NOW);
    FIND(scope, ncclCommInitRank);
    FIND(scope, ncclAllReduce);
    FIND(scope, ncclSend);
    FIND(scope, ncclRecv);
    FIND(scope, ncclGroupStart);
    FIND(scope, ncclGroupEnd);
}

/* A context waits for no memory, as an allocation does with the library. */
static void *make_context(void)
{
    enum { OUT_OF_MEMORY = 2 };
    void *context;
    int result;
    while (
        (result = call.cuDevicePrimaryCtxRetain(&context, (int)options.device)) == OUT_OF_MEMORY &&
        options.is_patient)
        sleep_ns(STEP_NS);
    check(result, "cuDevicePrimaryCtxRetain");
    return context;
}

static void synchronize(void)
{
    check(call.cuCtxSynchronize(), "cuCtxSynchronize");
}

static struct block *take_block(size_t mib, unsigned char byte)
{
    struct block *block = &blocks[n_blocks++];
    block->bytes = mib * MIB;
    block->byte = byte;
    if (block->bytes > copy_bytes) {
        copy_bytes = block->bytes;
        copy = realloc(copy, copy_bytes);
        check(!copy, "realloc");
    }
    CALL(cuMemAlloc_v2, &block->at, block->bytes);
    memset(copy, byte, block->bytes);
    CALL(cuMemcpyHtoD_v2, block->at, copy, block->bytes);
    return block;
}

static void check_block(const struct block *block)
{
    CALL(cuMemcpyDtoH_v2, copy, block->at, block->bytes);
    if (copy[0] != block->byte || memcmp(copy, copy + 1, block->bytes - 1) != 0) {
        print("lost");
        exit(LOST);
    }
}

/* Memory of a kind that is not carried. */
static void take_pool(size_t mib)
{
    const memory_properties of = {.type = PINNED, .where = ON_DEVICE, .id = (int)options.device};
    uint64_t handle;
    CALL(cuMemCreate, &handle, mib * MIB, &of, 0);
}

static void *communicator;

static void join_ranks(void)
{
    enum { RANKS = 2 };
    CALL(ncclCommInitRank, &communicator, RANKS, (nccl_id){"a test"}, (int)options.rank);
}

/* As PyTorch divides weights: the first rank sends, the other receives. */
static void scatter(const struct block *to)
{
    int64_t value = 1;
    if (options.rank == 0)
        CALL(ncclSend, &value, 1, NCCL_INT64, 1, communicator, NULL);
    else
        CALL(ncclRecv, (void *)(uintptr_t)to->at, 1, NCCL_INT64, 0, communicator, NULL);
}

static bool exists(const char *path)
{
    return path && access(path, F_OK) == 0;
}

/* Each rank sends its step and whether it is to be idle to the other, and receives, behind the sum.
 * Returns whether one of them is to be idle: both are then, since a rank that alone goes on would
 * wait for the other in its next sum, which is a call. */
static bool exchange(const struct block *sums, int64_t step)
{
    int peer = 1 - (int)options.rank;
    int64_t value = 2 * step + exists(options.idle);
    int64_t found = 0, *to = (int64_t *)(uintptr_t)sums->at + 1;
    check(call.ncclGroupStart(), "ncclGroupStart");
    CALL(ncclSend, &value, 1, NCCL_INT64, peer, communicator, NULL);
    CALL(ncclRecv, to, 1, NCCL_INT64, peer, communicator, NULL);
    check(call.ncclGroupEnd(), "ncclGroupEnd");
    sleep_ns(random() % (2 * STEP_NS));
    synchronize();
    CALL(cuMemcpyDtoH_v2, &found, sums->at + sizeof *to, sizeof found);
    check(found / 2 != step, "the other rank's step");
    return (found | value) & 1;
}

/* Two ranks add the same number: twice that is the sum. */
static void reduce(const struct block *sums, int64_t value)
{
    int64_t sum = 0;
    CALL(ncclAllReduce, &value, (void *)(uintptr_t)sums->at, 1, NCCL_INT64, NCCL_SUM, communicator,
        NULL);
    sleep_ns(random() % (2 * STEP_NS));
    synchronize();
    CALL(cuMemcpyDtoH_v2, &sum, sums->at, sizeof sum);
    check(sum != 2 * value, "the sum of the ranks");
}

/* As a call that does not return: the library counts it in its page, which is the file of that
 * name. Never returns. */
static void hang(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct preload_page *page = NULL;
    char line[512];
    while (maps && !page && fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:colloc-preload"))
            page = (struct preload_page *)strtoull(line, NULL, 16);
    check(!page, "the page");
    page->in_flight = 1;
    print("step");
    for (;;)
        pause();
}

/* ---- memory of two processes ---- */

/* Another program opens the first block, and leaves the next byte there. */
static void share_block(struct block *block)
{
    char text[16 + 2 * sizeof(ipc_handle)];
    int status = -1, n = snprintf(text, sizeof text, "--opens=");
    ipc_handle handle;
    CALL(cuIpcGetMemHandle, &handle, block->at);
    for (size_t i = 0; i < sizeof handle.bytes; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%02x", handle.bytes[i]);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "carried-training", text, "--blocks=0", NULL);
        _exit(FAILED);
    }
    check(child < 0 || waitpid(child, &status, 0) != child || status != 0, "the other program");
    block->byte++;
}

static void open_block(const char *text)
{
    struct block block = {.bytes = (size_t)options.first_mib * MIB, .byte = 10};
    ipc_handle handle;
    for (size_t i = 0; i < sizeof handle.bytes; i++)
        check(sscanf(text + 2 * i, "%2hhx", &handle.bytes[i]) != 1, "--opens");
    CALL(cuIpcOpenMemHandle_v2, &block.at, handle, 1);
    copy = malloc(block.bytes);
    check(!copy, "malloc");
    check_block(&block);
    memset(copy, block.byte + 1, block.bytes);
    CALL(cuMemcpyHtoD_v2, block.at, copy, block.bytes);
    print("opened");
}

static void grow(long step)
{
    if (step % PIECE_STEPS == 0 && options.n_pieces-- > 0)
        take_block((size_t)options.piece_mib, (unsigned char)(100 + step));
    if (!exists(options.grows))
        return;
    options.grows = NULL;
    take_block((size_t)options.grows_mib, 99);
    print("grew");
}

static void train(const struct block *sums)
{
    for (long step = 1; !exists(options.end) && (!options.steps || step <= options.steps); step++) {
        for (int i = 0; i < n_blocks; i++)
            if (&blocks[i] != sums)
                check_block(&blocks[i]);
        if (sums)
            reduce(sums, step);
        bool is_idle = sums ? exchange(sums, step) : exists(options.idle);
        synchronize();
        print("step");
        sleep_ns(STEP_NS);
        while (is_idle) {
            sleep_ns(STEP_NS);
            is_idle = exists(options.idle);
        }
        grow(step);
    }
}

/* For the next program, whatever they are. */
static void keep_descriptors(void)
{
    for (int fd = 3; fd < FDS_MAX; fd++)
        fcntl(fd, F_SETFD, 0);
}

/* The program's main thread may be at the gate. */
static void *load_another_program(void *unused)
{
    while (!exists(options.execs))
        sleep_ns(STEP_NS);
    if (options.keeps)
        keep_descriptors();
    execlp("sleep", "sleep", "1000", NULL);
    return unused;
}

static void *run_short(void *unused)
{
    for (bool was_short = false;; sleep_ns(STEP_NS)) {
        bool is_short = exists(options.is_short);
        if (is_short && !was_short) {
            setenv("COLLOC_EMULATOR_FAILS", "cuMemMap", 1);
            print("short");
        } else if (!is_short && was_short) {
            unsetenv("COLLOC_EMULATOR_FAILS");
        }
        was_short = is_short;
    }
    return unused;
}

static const struct {
    const char *name;
    long *number;
    const char **text;
} OPTIONS[] = {
    {"--device=", &options.device, NULL},
    {"--blocks=", &options.n_blocks, NULL},
    {"--first-mib=", &options.first_mib, NULL},
    {"--pool-mib=", &options.pool_mib, NULL},
    {"--grows=", NULL, &options.grows},
    {"--execs=", NULL, &options.execs},
    {"--keeps=", &options.keeps, NULL},
    {"--short=", NULL, &options.is_short},
    {"--grows-mib=", &options.grows_mib, NULL},
    {"--pieces=", &options.n_pieces, NULL},
    {"--piece-mib=", &options.piece_mib, NULL},
    {"--steps=", &options.steps, NULL},
    {"--end=", NULL, &options.end},
    {"--idle=", NULL, &options.idle},
    {"--nccl=", &options.has_nccl, NULL},
    {"--rank=", &options.rank, NULL},
    {"--all-reduce=", &options.communicates, NULL},
    {"--hangs=", &options.hangs, NULL},
    {"--shares=", &options.shares, NULL},
    {"--opens=", NULL, &options.opens},
    {"--patient=", &options.is_patient, NULL},
};

static void read_option(const char *word)
{
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        size_t length = strlen(OPTIONS[i].name);
        if (strncmp(word, OPTIONS[i].name, length) != 0)
            continue;
        if (OPTIONS[i].number)
            *OPTIONS[i].number = atol(word + length);
        else
            *OPTIONS[i].text = word + length;
        return;
    }
    check(-1, word);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        read_option(argv[i]);
    check(options.n_blocks + options.n_pieces > BLOCKS_MAX - 2, "--blocks");
    options.has_nccl |= options.rank >= 0;
    find_functions();
    srandom((unsigned)getpid());
    CALL(cuInit, 0);
    void *context = make_context();
    CALL(cuCtxSetCurrent, context);
    for (int i = 0; i < options.n_blocks; i++)
        take_block((size_t)(options.first_mib + i), (unsigned char)(10 + i));
    if (options.opens) {
        open_block(options.opens);
        return 0;
    }
    if (options.shares)
        share_block(&blocks[0]);
    if (options.pool_mib)
        take_pool((size_t)options.pool_mib);
    if (options.rank >= 0)
        join_ranks();
    if (options.hangs)
        hang();
    pthread_t thread;
    check(options.execs && pthread_create(&thread, NULL, load_another_program, NULL), "--execs");
    check(options.is_short && pthread_create(&thread, NULL, run_short, NULL), "--short");
    const struct block *sums = options.communicates ? take_block(1, 0) : NULL;
    if (sums)
        scatter(sums);
    train(sums);
    print("whole");
    return 0;
}
