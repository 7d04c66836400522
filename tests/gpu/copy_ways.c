/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a GPU's memory can be copied to host memory that exists already, and what it costs to
 * make that memory. Prints a JSON line for each measurement; docs/measured has the results.
 *
 *     cc -O2 -pthread copy_ways.c -ldl -o copy_ways && ./copy_ways GIB [SECONDS]
 *
 *     memory      memfd with huge pages, memfd with pages of 4 KiB
 *     make        the daemon touches it (MADV_POPULATE_WRITE)
 *     map         another mapping of it is touched, as in the process that gets it
 *     staged      lanes, each a thread with two pinned buffers
 *     registered  threads, each registers a piece and copies to it; afterwards without registering
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long ptr;
static int (*cuInit)(unsigned), (*ctxRetain)(void **, int), (*ctxSet)(void *);
static int (*memAlloc)(ptr *, size_t), (*hostAlloc)(void **, size_t, unsigned), (*hostFree)(void *);
static int (*reg)(void *, size_t, unsigned), (*unreg)(void *);
static int (*streamNew)(void **, unsigned), (*streamSync)(void *), (*streamEnd)(void *);
static int (*down)(void *, ptr, size_t, void *), (*up)(ptr, const void *, size_t, void *);
static void *context;
static ptr gpu;
static size_t total;
static double end_s;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib)
        exit((fprintf(stderr, "no libcuda\n"), 1));
    struct {
        void *to;
        const char *name;
    } all[] = {{&cuInit, "cuInit"}, {&ctxRetain, "cuDevicePrimaryCtxRetain"},
        {&ctxSet, "cuCtxSetCurrent"}, {&memAlloc, "cuMemAlloc_v2"}, {&hostAlloc, "cuMemHostAlloc"},
        {&hostFree, "cuMemFreeHost"}, {&reg, "cuMemHostRegister_v2"},
        {&unreg, "cuMemHostUnregister"}, {&streamNew, "cuStreamCreate"},
        {&streamSync, "cuStreamSynchronize"}, {&streamEnd, "cuStreamDestroy_v2"},
        {&down, "cuMemcpyDtoHAsync_v2"}, {&up, "cuMemcpyHtoDAsync_v2"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *(void **)all[i].to = dlsym(lib, all[i].name);
}

static char *map_fd(int fd, int huge)
{
    char *at = mmap(NULL, total + (2 << 20), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at += -(uintptr_t)at % (2 << 20);
    at = mmap(at, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (huge)
        madvise(at, total, MADV_HUGEPAGE);
    return at;
}

struct job {
    char *host;
    size_t piece;
    int to_gpu, registers, staged, threads;
    _Atomic size_t next;
    _Atomic int error;
};

static void past_cache(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i + 16 <= n; i += 16)
        _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
    _mm_sfence();
}

static void *work(void *argument)
{
    struct job *job = argument;
    void *streams[2] = {0}, *buffer = NULL;
    ctxSet(context);
    for (int i = 0; i < 2; i++)
        streamNew(&streams[i], 1);
    if (job->staged && hostAlloc(&buffer, 2 * job->piece, 1))
        job->error = 1;
    size_t at[2] = {0}, n[2] = {0};
    for (int k = 0, left = 1; !job->error && (left || n[0] || n[1]); k ^= 1) {
        char *pinned = (char *)buffer + k * job->piece;
        if (n[k]) {
            int r = streamSync(streams[k]);
            if (r)
                job->error = r;
            if (job->staged && !job->to_gpu)
                past_cache(job->host + at[k], pinned, n[k]);
            n[k] = 0;
        }
        if (!left)
            continue;
        at[k] = atomic_fetch_add(&job->next, job->piece);
        left = at[k] < total;
        if (!left)
            continue;
        n[k] = total - at[k] < job->piece ? total - at[k] : job->piece;
        char *host = job->host + at[k];
        int r = job->registers ? reg(host, n[k], 1) : 0;
        if (job->staged && job->to_gpu)
            memcpy(pinned, host, n[k]);
        if (job->staged)
            host = pinned;
        if (!r)
            r = job->to_gpu ? up(gpu + at[k], host, n[k], streams[k])
                            : down(host, gpu + at[k], n[k], streams[k]);
        if (r)
            job->error = r;
    }
    if (buffer)
        hostFree(buffer);
    for (int i = 0; i < 2; i++)
        streamEnd(streams[i]);
    return NULL;
}

static double copy(struct job job)
{
    pthread_t threads[32];
    double begin = now();
    for (int i = 0; i < job.threads; i++)
        pthread_create(&threads[i], NULL, work, &job);
    for (int i = 0; i < job.threads; i++)
        pthread_join(threads[i], NULL);
    return job.error ? -job.error : now() - begin;
}

static void say(const char *memory, const char *what, size_t piece, int threads, double s)
{
    printf("{\"memory\": \"%s\", \"what\": \"%s\", \"piece_mib\": %zu, \"threads\": %d, "
           "\"gib\": %.1f, \"s\": %.4f, \"gib_s\": %.2f}\n",
        memory, what, piece >> 20, threads, total / 1073741824.0, s, total / 1073741824.0 / s);
    fflush(stdout);
}

static void unregister(char *host, size_t piece, const char *memory, int threads)
{
    double begin = now();
    for (size_t at = 0; at < total; at += piece)
        unreg(host + at);
    say(memory, "unregister", piece, threads, now() - begin);
}

static void try_staged(const char *memory, char *host, size_t piece, int threads)
{
    struct job job = {.host = host, .piece = piece, .staged = 1, .threads = threads};
    say(memory, "staged out", piece, threads, copy(job));
    job.to_gpu = 1;
    say(memory, "staged back", piece, threads, copy(job));
}

static void try_registered(const char *memory, char *host, size_t piece, int threads)
{
    struct job job = {.host = host, .piece = piece, .registers = 1, .threads = threads};
    say(memory, "register and copy out", piece, threads, copy(job));
    job.registers = 0;
    job.to_gpu = 1;
    say(memory, "registered back", piece, threads, copy(job));
    job.to_gpu = 0;
    say(memory, "registered out", piece, threads, copy(job));
    unregister(host, piece, memory, threads);
}

static int is_late(void)
{
    return now() > end_s;
}

static void try_memory(const char *memory, int huge)
{
    int fd = memfd_create("trial", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, total))
        return;
    char *daemons = map_fd(fd, huge);
    double begin = now();
    int r = madvise(daemons, total, 23 /* MADV_POPULATE_WRITE */);
    say(memory, r ? "make failed" : "make", 0, 1, now() - begin);
    begin = now();
    munmap(daemons, total);
    say(memory, "daemon unmaps", 0, 1, now() - begin);
    char *host = map_fd(fd, huge);
    begin = now();
    madvise(host, total, 23);
    say(memory, "map", 0, 1, now() - begin);
    static const struct {
        size_t mib;
        int threads;
    } staged[] = {{4, 8}, {16, 8}, {32, 8}, {8, 12}, {4, 16}},
      registered[] = {{64, 1}, {64, 2}, {64, 4}, {256, 2}, {1024, 2}, {1024, 1}, {16, 4}};
    for (size_t i = 0; i < sizeof registered / sizeof *registered && !is_late(); i++)
        try_registered(memory, host, registered[i].mib << 20, registered[i].threads);
    for (size_t i = 0; i < sizeof staged / sizeof *staged && !is_late(); i++)
        try_staged(memory, host, staged[i].mib << 20, staged[i].threads);
    begin = now();
    munmap(host, total);
    say(memory, "unmap", 0, 1, now() - begin);
    begin = now();
    if (fallocate(fd, 3 /* punch a hole, keep the size */, 0, total) == 0)
        say(memory, "punch", 0, 1, now() - begin);
    close(fd);
}

int main(int argc, char **argv)
{
    total = (size_t)(argc > 1 ? atoi(argv[1]) : 8) << 30;
    end_s = now() + (argc > 2 ? atoi(argv[2]) : 60);
    load();
    int r = cuInit(0);
    if (!r)
        r = ctxRetain(&context, 0);
    if (!r)
        r = ctxSet(context);
    if (!r)
        r = memAlloc(&gpu, total);
    if (r)
        return fprintf(stderr, "the driver: %d\n", r), 1;
    try_memory("huge", 1);
    if (!is_late())
        try_memory("4k", 0);
    return 0;
}
