/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load of known size: each thread squares items, in a grid of BLOCKS blocks of THREADS threads.
 *
 *     square BLOCKS THREADS SECONDS          launches one after the other; each thread squares one item per launch
 *     square BLOCKS THREADS SECONDS stay     each block has an SM to itself and stays there, squaring, until time is up
 *
 * The first form shows what "utilisation" hides: even one thread keeps the GPU "busy". The second keeps exactly BLOCKS
 * of the SMs active, so that a monitor's SMACT can be held against the truth. Prints one line of JSON at the end, and
 * "running" on a line of its own when the load begins.
 *
 *     nvcc -O2 -o square square.cu
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "square: %s: %s\n", #call, cudaGetErrorString(error_));                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const double STAY_S = 0.1;         /* of one launch: the program ends at most so late */
static const int LAUNCHES_AHEAD = 1000;   /* queued before the clock is looked at */
static const long long FIRST_ITEM = 3;

__global__ void square(const long long *items, long long *squares)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    squares[i] = items[i] * items[i];
}

__device__ long long now_ns()
{
    long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void square_and_stay(const long long *items, long long *squares, long long stay_ns)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    for (long long began = now_ns(); now_ns() - began < stay_ns;)
        squares[i] = *(volatile const long long *)&items[i] * items[i];
}

static double now_s()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static long number(const char *text, const char *what, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > most) {
        fprintf(stderr, "square: %s is a whole number from 1 to %ld, not '%s'\n", what, most, text);
        exit(2);
    }
    return value;
}

/* More shared memory than half an SM has: no two blocks fit on one. */
static int shared_for_one_block_per_sm(long blocks)
{
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    if (blocks > gpu.multiProcessorCount) {
        fprintf(stderr, "square: %ld blocks cannot have an SM each, there are %d\n", blocks, gpu.multiProcessorCount);
        exit(2);
    }
    int bytes = (int)gpu.sharedMemPerBlockOptin;
    CHECK(cudaFuncSetAttribute(square_and_stay, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    return bytes;
}

static void check(const long long *squares, long n)
{
    long long *host = (long long *)malloc(n * sizeof *host);
    CHECK(cudaMemcpy(host, squares, n * sizeof *host, cudaMemcpyDeviceToHost));
    for (long i = 0; i < n; i++) {
        if (host[i] != (FIRST_ITEM + i) * (FIRST_ITEM + i)) {
            fprintf(stderr, "square: item %ld came out wrong\n", i);
            exit(1);
        }
    }
    free(host);
}

static void fill(long long *items, long n)
{
    long long *host = (long long *)malloc(n * sizeof *host);
    for (long i = 0; i < n; i++)
        host[i] = FIRST_ITEM + i;
    CHECK(cudaMemcpy(items, host, n * sizeof *host, cudaMemcpyHostToDevice));
    free(host);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5 || (argc == 5 && strcmp(argv[4], "stay") != 0)) {
        fprintf(stderr, "usage: square BLOCKS THREADS SECONDS [stay]\n");
        return 2;
    }
    long blocks = number(argv[1], "BLOCKS", 1 << 20), threads = number(argv[2], "THREADS", 1024);
    long seconds = number(argv[3], "SECONDS", 86400), n = blocks * threads, launches = 0;
    int shared = argc == 5 ? shared_for_one_block_per_sm(blocks) : 0;

    long long *items, *squares;
    CHECK(cudaMalloc(&items, n * sizeof *items));
    CHECK(cudaMalloc(&squares, n * sizeof *squares));
    fill(items, n);

    printf("running\n");
    fflush(stdout);
    double began = now_s();
    while (now_s() - began < seconds) {
        int ahead = argc == 5 ? 2 : LAUNCHES_AHEAD;
        for (int i = 0; i < ahead; i++) {
            if (argc == 5)
                square_and_stay<<<blocks, threads, shared>>>(items, squares, (long long)(STAY_S * 1e9));
            else
                square<<<blocks, threads>>>(items, squares);
        }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        launches += ahead;
    }
    double took = now_s() - began;
    check(squares, n);
    printf("{\"blocks\": %ld, \"threads\": %ld, \"launches\": %ld, \"seconds\": %.3f}\n", blocks, threads, launches, took);
    return 0;
}
