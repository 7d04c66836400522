/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process in a container finds of the GPUs, and a load on the first one, for
 * container_trial.py: the driver's library is found by dlopen, so the image needs nothing of CUDA.
 *
 *     cc -o container-probe tests/gpu/container_probe.c && ./container-probe MIB SECONDS
 *
 * It prints one line of JSON, takes MIB of the first GPU, and fills them again and again. `opened`
 * are the numbers of the device files that it can open. A call that failed ends the line's `says`.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { GPUS_MAX = 16 };

static void print_opened(void)
{
    const char *comma = "";
    printf("{\"opened\": [");
    for (int i = 0; i < GPUS_MAX; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        int file = open(path, O_RDWR);
        if (file < 0)
            continue;
        close(file);
        printf("%s%d", comma, i);
        comma = ", ";
    }
    printf("]");
}

static int call(void *library, const char *name, int *says)
{
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, name);
    *says = init ? init(0) : -1;
    return *says;
}

/* Returns how many GPUs CUDA has, -1 where it does not say. */
static int print_cuda(void *library)
{
    int says = -1, count = 0;
    if (!library) {
        printf(", \"says\": \"no libcuda\"");
        return -1;
    }
    int (*get_count)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    if (call(library, "cuInit", &says) != 0 || !get_count || (says = get_count(&count)) != 0) {
        printf(", \"says\": %d", says);
        return -1;
    }
    printf(", \"says\": 0, \"cuda\": %d", count);
    return count;
}

/* Returns 0, or what the failed call said. */
static int compute(void *library, size_t bytes, double seconds)
{
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    int (*take)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))dlsym(
        library, "cuMemAlloc_v2");
    int (*fill)(unsigned long long, unsigned char, size_t) = (int (*)(
        unsigned long long, unsigned char, size_t))dlsym(library, "cuMemsetD8_v2");
    int (*wait)(void) = (int (*)(void))dlsym(library, "cuCtxSynchronize");
    void *context;
    unsigned long long block;
    int r = retain && set && take && fill && wait ? 0 : -1;
    if (r || (r = retain(&context, 0)) || (r = set(context)) || (r = take(&block, bytes)))
        return r;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 100 && !r; i++)
            r = fill(block, (unsigned char)i, bytes);
        r = r ? r : wait();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!r && (double)(now.tv_sec - begin.tv_sec) < seconds);
    return r;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: container-probe MIB SECONDS\n");
        return 2;
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    print_opened();
    int count = print_cuda(library);
    printf("}\n");
    fflush(stdout);
    int r = count > 0 ? compute(library, strtoul(argv[1], NULL, 10) << 20, atof(argv[2])) : 0;
    if (r)
        fprintf(stderr, "container-probe: the driver said %d\n", r);
    return r != 0;
}
