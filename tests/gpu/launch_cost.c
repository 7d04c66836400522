/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a launch of an empty kernel takes its caller, for step_rate_trial.py: steps of a copy to
 * the GPU, 72 launches of 24 kernels, and a synchronisation, which is not in the time. The driver
 * is found as PyTorch finds it, by dlopen and dlsym, so a preloaded library sees all calls.
 *
 *     cc -O2 -o launch-cost tests/gpu/launch_cost.c && ./launch-cost SECONDS
 *
 * It prints the median nanoseconds of a launch, and of a step with its synchronisation.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KERNELS = 24, ROUNDS = 3, STEPS_MAX = 1 << 20, WARM_STEPS = 2000 };

static int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int);
static int (*set_current)(void *), (*load)(void **, const char *), (*wait_all)(void);
static int (*get_function)(void **, void *, const char *);
static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    void *, void **, void **);
static int (*allocate)(unsigned long long *, size_t);
static int (*copy)(unsigned long long, const void *, size_t, void *);

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

static void check(const char *what, int result)
{
    if (result) {
        fprintf(stderr, "%s: error %d\n", what, result);
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&init = find(library, "cuInit");
    *(void **)&device_get = find(library, "cuDeviceGet");
    *(void **)&retain = find(library, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = find(library, "cuCtxSetCurrent");
    *(void **)&load = find(library, "cuModuleLoadData");
    *(void **)&get_function = find(library, "cuModuleGetFunction");
    *(void **)&launch = find(library, "cuLaunchKernel");
    *(void **)&wait_all = find(library, "cuCtxSynchronize");
    *(void **)&allocate = find(library, "cuMemAlloc_v2");
    *(void **)&copy = find(library, "cuMemcpyHtoDAsync_v2");
}

static void load_kernels(void *functions[KERNELS])
{
    static char code[KERNELS * 64 + 128];
    int at = sprintf(code, ".version 6.5\n.target sm_75\n.address_size 64\n");
    void *module = NULL;
    for (int i = 0; i < KERNELS; i++)
        at += sprintf(code + at, ".visible .entry k%d() { ret; }\n", i);
    check("cuModuleLoadData", load(&module, code));
    for (int i = 0; i < KERNELS; i++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", i);
        check(name, get_function(&functions[i], module, name));
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    void *context = NULL, *functions[KERNELS];
    unsigned long long at = 0;
    int device = 0, number = 7;
    find_driver();
    check("cuInit", init(0));
    check("cuDeviceGet", device_get(&device, 0));
    check("cuDevicePrimaryCtxRetain", retain(&context, device));
    check("cuCtxSetCurrent", set_current(context));
    load_kernels(functions);
    check("cuMemAlloc", allocate(&at, 4096));
    float *launches = malloc(STEPS_MAX * sizeof *launches);
    float *steps = malloc(STEPS_MAX * sizeof *steps);
    if (!launches || !steps)
        return 1;
    int n = 0;
    double end_ns = 0;
    for (int i = 0; n < STEPS_MAX; i++) {
        check("cuMemcpyHtoDAsync", copy(at, &number, sizeof number, NULL));
        double begin_ns = now_ns();
        for (int k = 0; k < KERNELS * ROUNDS; k++)
            launch(functions[k % KERNELS], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        double launched_ns = now_ns();
        check("cuCtxSynchronize", wait_all());
        double done_ns = now_ns();
        if (i == WARM_STEPS)
            end_ns = done_ns + 1e9 * seconds;
        if (i < WARM_STEPS)
            continue;
        launches[n] = (float)((launched_ns - begin_ns) / (KERNELS * ROUNDS));
        steps[n++] = (float)(done_ns - begin_ns);
        if (done_ns > end_ns)
            break;
    }
    qsort(launches, (size_t)n, sizeof *launches, compare);
    qsort(steps, (size_t)n, sizeof *steps, compare);
    printf("{\"steps\": %d, \"launch_ns\": %.1f, \"launch_p10_ns\": %.1f, \"step_ns\": %.1f}\n", n,
        launches[n / 2], launches[n / 10], steps[n / 2]);
    return 0;
}
