/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the CUDA driver in each way in which programs find it: linked (compiled with
 * LINKED), by dlsym, or by cuGetProcAddress. It prints what happened, one word a line.
 *
 *     probe WAY alloc MIB...    allocates each, one after another; prints the results
 *     probe WAY forms           which forms of functions cuGetProcAddress returns
 *     probe WAY next            calls getppid, which interposer.c may stand before, and asks
 *                               dlsym for names that are not there
 *     probe WAY launches N      launches N times, reads a line, prints what one more returns
 *     probe WAY train N         N steps of 200 launches and a copy, reads a line, then prints
 *                               what a launch took in the second half, in ns
 *     probe WAY launch          after a line of input: what calls without a hook return
 *     probe WAY cost            nanoseconds for an allocation with its free, a synchronisation and
 *                               a launch
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/hook_table.h"

typedef CUresult launch_function(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, CUstream, void **, void **);

struct driver {
    CUresult (*init)(unsigned);
    __typeof__(&cuMemAlloc_v2) alloc;
    __typeof__(&cuMemFree_v2) free;
    __typeof__(&cuStreamSynchronize) synchronize;
    launch_function *launch;
    CUresult (*copy)(CUdeviceptr to, const void *from, size_t bytes);
    CUresult (*set_bias)(void *, float);
    CUresult (*get_version)(int *);
};

static any_function *by_dlsym(const char *name)
{
    return (any_function *)(uintptr_t)dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

/* As the CUDA runtime does it. */
static any_function *by_table(const char *name, int version)
{
    __typeof__(&cuGetProcAddress_v2) find = (__typeof__(&cuGetProcAddress_v2))by_dlsym(
        "cuGetProcAddress_v2");
    any_function *function = NULL;
    int status;
    find(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
    return function;
}

static any_function *by_name(const char *way, const char *name)
{
    return strcmp(way, "table") == 0 ? by_table(name, 12000) : by_dlsym(name);
}

static struct driver open_driver(const char *way)
{
    struct driver driver = {0};
#ifdef LINKED
    extern CUresult cuInit(unsigned flags);
    driver = (struct driver){
        .init = cuInit, cuMemAlloc_v2, cuMemFree_v2, .synchronize = cuStreamSynchronize};
#else
    bool table = strcmp(way, "table") == 0;
    driver.init = (__typeof__(driver.init))by_dlsym("cuInit");
    driver.alloc = (__typeof__(driver.alloc))(table ? by_table("cuMemAlloc", 12000)
                                                    : by_dlsym("cuMemAlloc_v2"));
    driver.free = (__typeof__(driver.free))(table ? by_table("cuMemFree", 12000)
                                                  : by_dlsym("cuMemFree_v2"));
    driver.synchronize = (__typeof__(driver.synchronize))by_name(way, "cuStreamSynchronize");
#endif
    driver.launch = (launch_function *)by_name(way, "cuLaunchKernel");
    driver.copy = (__typeof__(driver.copy))(strcmp(way, "table") == 0
                                                ? by_table("cuMemcpyHtoD", 12000)
                                                : by_dlsym("cuMemcpyHtoD_v2"));
    driver.set_bias = (__typeof__(driver.set_bias))by_name(way, "cuTexRefSetMipmapLevelBias");
    driver.get_version = (__typeof__(driver.get_version))by_name(way, "cuDriverGetVersion");
    return driver;
}

static int allocate(const struct driver *driver, char **sizes)
{
    for (; *sizes; sizes++) {
        CUdeviceptr at;
        printf("%d\n", driver->alloc(&at, strtoull(*sizes, NULL, 10) << 20));
        fflush(stdout);
    }
    return 0;
}

static int print_forms(void)
{
    CUdeviceptr at = 0;
    uint32_t at32 = 0;
    ((CUresult(*)(uint32_t *, unsigned))by_table("cuMemAlloc", 2000))(&at32, 1);
    ((CUresult(*)(int, CUdeviceptr *, size_t))by_table("cuMemAlloc", 99000))(0, &at, 1);
    printf("%u\n%llu\n", at32, (unsigned long long)at);
    printf("%d\n", ((CUresult(*)(CUcontext))by_table("cuCtxSynchronize", 13000))((CUcontext)&at));
    printf("%d\n", ((CUresult(*)(void))by_table("cuCtxSynchronize", 12000))());
    return 0;
}

static int launch(const struct driver *driver)
{
    CUdeviceptr at;
    int version = 0;
    driver->alloc(&at, 1 << 20);
    puts("ready");
    fflush(stdout);
    getchar();
    driver->get_version(&version);
    printf("%d\n", version);
    fflush(stdout);
    printf("%d\n",
        driver->launch((void *)1, 2, 3, 4, 5, 6, 7, 8, (CUstream)9, (void **)10, (void **)11));
    printf("%d\n", driver->set_bias(NULL, 2.5F));
    return 0;
}

static int launch_often(const struct driver *driver, const char *count)
{
    CUdeviceptr at;
    driver->alloc(&at, 1 << 20);
    for (long i = atol(count); i > 0; i--)
        driver->launch(NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL);
    puts("ready");
    fflush(stdout);
    getchar();
    printf("%d\n", driver->launch(NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL));
    return 0;
}

/* What the thread has waited for a processor until now: no call has cost that. The kernel's file
 * has the nanoseconds that it ran, then these. 0 where it is not known. */
static double queued_ns(void)
{
    char text[128] = "";
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    if (file && !fgets(text, sizeof text, file))
        text[0] = '\0';
    if (file)
        fclose(file);
    const char *second = strchr(text, ' ');
    return second ? strtod(second, NULL) : 0;
}

static double nanoseconds(void)
{
    struct timespec now;
    double queued = queued_ns();
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec - queued;
}

/* The same 40 kernels in each of five layers, and an optimizer. */
static void train_one_step(const struct driver *driver)
{
    static const char batch[4096];
    driver->copy(1, batch, sizeof batch);
    for (uintptr_t i = 0; i < 200; i++)
        driver->launch(
            (void *)(64 * (1 + (i < 180 ? i % 40 : i))), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static int train(const struct driver *driver, const char *count)
{
    CUdeviceptr at;
    long steps = atol(count);
    double half = 0;
    driver->alloc(&at, 1 << 20);
    for (long i = 0; i < steps; i++) {
        if (i == steps / 2)
            half = nanoseconds();
        train_one_step(driver);
    }
    double took = nanoseconds() - half;
    puts("ready");
    fflush(stdout);
    getchar();
    printf("%.1f\n", took / ((double)(steps - steps / 2) * 200));
    return 0;
}

static int print_next(void)
{
    printf("%d\n", getppid() > 0);
    puts(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") ? "driver" : "none");
    puts(dlsym(RTLD_DEFAULT, "no_such_function") || !dlerror() ? "something" : "error");
    return 0;
}

static int print_cost(const struct driver *driver)
{
    enum { CALLS = 200000 };
    CUdeviceptr at;
    double begin = nanoseconds();
    for (int i = 0; i < CALLS; i++) {
        driver->alloc(&at, 1 << 20);
        driver->free(at);
    }
    double between = nanoseconds();
    for (int i = 0; i < CALLS; i++)
        driver->synchronize(NULL);
    double after = nanoseconds();
    for (int i = 0; i < CALLS; i++)
        driver->launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    printf("%.1f\n%.1f\n%.1f\n", (between - begin) / CALLS, (after - between) / CALLS,
        (nanoseconds() - after) / CALLS);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (strcmp(argv[2], "next") == 0)
        return print_next();
    struct driver driver = open_driver(argv[1]);
    if (!driver.alloc || driver.init(0) != CUDA_SUCCESS)
        return 3;
    if (strcmp(argv[2], "alloc") == 0)
        return allocate(&driver, argv + 3);
    if (strcmp(argv[2], "launch") == 0)
        return launch(&driver);
    if (strcmp(argv[2], "train") == 0 && argc > 3)
        return train(&driver, argv[3]);
    if (strcmp(argv[2], "launches") == 0 && argc > 3)
        return launch_often(&driver, argv[3]);
    if (strcmp(argv[2], "forms") == 0)
        return print_forms();
    return strcmp(argv[2], "cost") == 0 ? print_cost(&driver) : 2;
}
