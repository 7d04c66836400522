/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcudnn.so.9 of pretend kernels: the backend interface as far as colloc-cudnn calls it
 * (kernels/cudnn_abi.h). A handle is a context on the emulated GPU, which nvidia-smi lists. The
 * first heuristics have one kernel for each convolution. Its workspace is, of the forward pass, as
 * large as the input; of the input's gradient, as the output; of the weight's, as both.
 *
 * The file "$COLLOC_EMULATOR.cudnn" makes it fail, for tests:
 *
 *     refuse    a handle cannot be made
 *     hang      each plan waits until the file says something else
 *     large     the same, and a handle takes 2 GiB
 *     count     as without the file, and each plan adds a line to the file
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulator/cuda_interface.h"
#include "kernels/cudnn_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, BAD_PARAMETER = 2000, REFUSED = 4, VERSION = 91900 };
enum { ATTRIBUTES_MAX = 16, VALUES_MAX = 8, WORD_SIZE = 16, PATH_SIZE = 1024 };

#define LARGE_BYTES ((size_t)2 << 30)

struct attribute {
    int name;
    int64_t count;
    int64_t values[VALUES_MAX];
};

struct descriptor {
    enum cudnn_abi_kind kind;
    int n;
    struct attribute attributes[ATTRIBUTES_MAX];
};

EXPORT size_t cudnnGetVersion(void);
EXPORT int cudnnCreate(void **ret_handle);
EXPORT int cudnnBackendCreateDescriptor(
    enum cudnn_abi_kind kind, cudnn_abi_descriptor *ret_descriptor);
EXPORT int cudnnBackendDestroyDescriptor(cudnn_abi_descriptor descriptor);
EXPORT int cudnnBackendSetAttribute(cudnn_abi_descriptor at, enum cudnn_abi_attribute name,
    enum cudnn_abi_type type, int64_t count, const void *values);
EXPORT int cudnnBackendFinalize(cudnn_abi_descriptor at);
EXPORT int cudnnBackendGetAttribute(cudnn_abi_descriptor at, enum cudnn_abi_attribute name,
    enum cudnn_abi_type type, int64_t most, int64_t *ret_count, void *values);

/* ---- how it fails ---- */

static bool read_word(char word[WORD_SIZE])
{
    char path[PATH_SIZE];
    const char *gpus = getenv("COLLOC_EMULATOR");
    snprintf(path, sizeof path, "%s.cudnn", gpus ? gpus : "");
    FILE *file = fopen(path, "re");
    bool found = file && fscanf(file, "%15s", word) == 1;
    if (file)
        fclose(file);
    return found;
}

static bool word_is(const char *wanted)
{
    char word[WORD_SIZE];
    return read_word(word) && strcmp(word, wanted) == 0;
}

static void count_plan(void)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s.cudnn", getenv("COLLOC_EMULATOR"));
    FILE *file = fopen(path, "ae");
    if (!file)
        return;
    fputs("plan\n", file);
    fclose(file);
}

static void note_plan(void)
{
    while (word_is("hang") || word_is("large"))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (word_is("count"))
        count_plan();
}

/* ---- descriptors ---- */

static struct attribute *find_attribute(struct descriptor *descriptor, int name)
{
    for (int i = 0; i < descriptor->n; i++)
        if (descriptor->attributes[i].name == name)
            return &descriptor->attributes[i];
    return NULL;
}

static struct descriptor *part_of(struct descriptor *descriptor, int name)
{
    struct attribute *attribute = descriptor ? find_attribute(descriptor, name) : NULL;
    return attribute ? (struct descriptor *)(intptr_t)attribute->values[0] : NULL;
}

static size_t size_of(enum cudnn_abi_type type)
{
    switch (type) {
    case CUDNN_ABI_TYPE_INT64:
    case CUDNN_ABI_TYPE_DESCRIPTOR:
    case CUDNN_ABI_TYPE_HANDLE:
        return sizeof(int64_t);
    default:
        return sizeof(int);
    }
}

static int64_t bytes_of(struct descriptor *tensor)
{
    const struct attribute *shape = tensor ? find_attribute(tensor, CUDNN_ABI_TENSOR_DIMENSIONS)
                                           : NULL;
    const struct attribute *type = tensor ? find_attribute(tensor, CUDNN_ABI_TENSOR_TYPE) : NULL;
    int64_t bytes = type && type->values[0] == CUDNN_ABI_FLOAT ? 4 : 2;
    for (int64_t i = 0; shape && i < shape->count; i++)
        bytes *= shape->values[i];
    return shape ? bytes : 0;
}

/* Of a plan: its configuration's graph has one operation. */
static int64_t workspace_of(struct descriptor *plan)
{
    struct descriptor *graph = part_of(
                          part_of(plan, CUDNN_ABI_PLAN_CONFIG), CUDNN_ABI_CONFIG_ENGINE),
                      *operation = part_of(graph, CUDNN_ABI_GRAPH_OPERATIONS);
    if (!operation)
        return -1;
    int from = operation->kind == CUDNN_ABI_FORWARD         ? CUDNN_ABI_FORWARD_ALPHA
               : operation->kind == CUDNN_ABI_BACKWARD_DATA ? CUDNN_ABI_DATA_ALPHA
                                                            : CUDNN_ABI_FILTER_ALPHA;
    int64_t input = bytes_of(part_of(operation, from + 4)),
            output = bytes_of(part_of(operation, from + 5));
    return operation->kind == CUDNN_ABI_FORWARD         ? input
           : operation->kind == CUDNN_ABI_BACKWARD_DATA ? output
                                                        : input + output;
}

/* ---- the interface ---- */

size_t cudnnGetVersion(void)
{
    return VERSION;
}

/* A context, and the memory that it takes, by the emulated driver. */
int cudnnCreate(void **ret_handle)
{
    static int handle;
    void *driver = word_is("refuse") ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*init)(unsigned) = NULL, (*retain)(CUcontext *, CUdevice) = NULL,
             (*set_current)(CUcontext) = NULL, (*take)(CUdeviceptr *, size_t) = NULL;
    const struct {
        const char *name;
        void *place;
    } wanted[] = {{"cuInit", &init}, {"cuDevicePrimaryCtxRetain", &retain},
        {"cuCtxSetCurrent", &set_current}, {"cuMemAlloc_v2", &take}};
    for (size_t i = 0; driver && i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(driver, wanted[i].name);
        if (!found)
            return REFUSED;
        memcpy(wanted[i].place, &found, sizeof found);
    }
    CUcontext context;
    CUdeviceptr memory;
    if (!driver || init(0) != CUDA_OK || retain(&context, 0) != CUDA_OK ||
        set_current(context) != CUDA_OK ||
        (word_is("large") && take(&memory, LARGE_BYTES) != CUDA_OK))
        return REFUSED;
    *ret_handle = &handle;
    return OK;
}

int cudnnBackendCreateDescriptor(enum cudnn_abi_kind kind, cudnn_abi_descriptor *ret_descriptor)
{
    struct descriptor *descriptor = calloc(1, sizeof *descriptor);
    if (!descriptor)
        return BAD_PARAMETER;
    descriptor->kind = kind;
    *ret_descriptor = descriptor;
    return OK;
}

int cudnnBackendDestroyDescriptor(cudnn_abi_descriptor descriptor)
{
    free(descriptor);
    return OK;
}

int cudnnBackendSetAttribute(cudnn_abi_descriptor at, enum cudnn_abi_attribute name,
    enum cudnn_abi_type type, int64_t count, const void *values)
{
    struct descriptor *descriptor = at;
    struct attribute *attribute = find_attribute(descriptor, (int)name);
    if (!attribute && descriptor->n < ATTRIBUTES_MAX)
        attribute = &descriptor->attributes[descriptor->n++];
    if (!attribute || count > VALUES_MAX)
        return BAD_PARAMETER;
    *attribute = (struct attribute){.name = (int)name, .count = count};
    for (int64_t i = 0; i < count; i++)
        memcpy(&attribute->values[i], (const char *)values + i * (int64_t)size_of(type),
            size_of(type));
    return OK;
}

int cudnnBackendFinalize(cudnn_abi_descriptor at)
{
    const struct descriptor *descriptor = at;
    if (descriptor->kind == CUDNN_ABI_PLAN)
        note_plan();
    return OK;
}

/* The results of heuristics are one configuration, which has the graph in place of its engine. */
static int64_t get_results(struct descriptor *heuristics, int64_t most, void *values)
{
    const struct attribute *mode = find_attribute(heuristics, CUDNN_ABI_HEURISTICS_MODE);
    struct descriptor *graph = part_of(heuristics, CUDNN_ABI_HEURISTICS_GRAPH);
    if (!mode || mode->values[0] != CUDNN_ABI_MODE_INSTANT)
        return 0;
    if (most > 0)
        cudnnBackendSetAttribute(*(cudnn_abi_descriptor *)values, CUDNN_ABI_CONFIG_ENGINE,
            CUDNN_ABI_TYPE_DESCRIPTOR, 1, &graph);
    return 1;
}

int cudnnBackendGetAttribute(cudnn_abi_descriptor at, enum cudnn_abi_attribute name,
    enum cudnn_abi_type type, int64_t most, int64_t *ret_count, void *values)
{
    *ret_count = 0;
    if (name == CUDNN_ABI_HEURISTICS_RESULTS)
        *ret_count = get_results(at, most, values);
    if (name == CUDNN_ABI_PLAN_WORKSPACE) {
        int64_t bytes = workspace_of(at);
        memcpy(values, &bytes, sizeof bytes);
        *ret_count = 1;
    }
    return OK;
}
