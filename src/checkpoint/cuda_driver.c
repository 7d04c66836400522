/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libcuda and asks it for each function by cuGetProcAddress with the CUDA version that had
 * the function first: names have got suffixes since, and the driver knows which one is meant.
 */
#include "checkpoint/cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

typedef int get_function(
    const char *symbol, void **function, int version, uint64_t flags, int *status);

struct symbol {
    size_t offset; /* of the function pointer in struct cuda_driver */
    const char *name;
    int version;
};

#define SYMBOL(member, name, version)                                                              \
    {                                                                                              \
        offsetof(struct cuda_driver, member), name, version                                        \
    }

static const struct symbol required[] = {
    SYMBOL(init, "cuInit", 2000),
    SYMBOL(driver_version, "cuDriverGetVersion", 2020),
    SYMBOL(error_name, "cuGetErrorName", 6000),
    SYMBOL(device_count, "cuDeviceGetCount", 2000),
    SYMBOL(device_get, "cuDeviceGet", 2000),
    SYMBOL(device_uuid, "cuDeviceGetUuid", 11040),
    SYMBOL(context_retain, "cuDevicePrimaryCtxRetain", 7000),
    SYMBOL(context_release, "cuDevicePrimaryCtxRelease", 11000),
    SYMBOL(context_set, "cuCtxSetCurrent", 4000),
    SYMBOL(memory_alloc, "cuMemAlloc", 3020),
    SYMBOL(memory_free, "cuMemFree", 3020),
    SYMBOL(copy_to_gpu, "cuMemcpyHtoD", 3020),
    SYMBOL(copy_to_host, "cuMemcpyDtoH", 3020),
    SYMBOL(memory_create, "cuMemCreate", 10020),
    SYMBOL(memory_release, "cuMemRelease", 10020),
    SYMBOL(memory_export, "cuMemExportToShareableHandle", 10020),
};

static const struct symbol checkpoint[] = {
    SYMBOL(process_state, "cuCheckpointProcessGetState", CUDA_SUSPENDS),
    SYMBOL(process_lock, "cuCheckpointProcessLock", CUDA_SUSPENDS),
    SYMBOL(process_checkpoint, "cuCheckpointProcessCheckpoint", CUDA_SUSPENDS),
    SYMBOL(process_restore, "cuCheckpointProcessRestore", CUDA_SUSPENDS),
    SYMBOL(process_unlock, "cuCheckpointProcessUnlock", CUDA_SUSPENDS),
};

/* Returns the name of the first function that is missing, or NULL. */
static const char *find_all(
    struct cuda_driver *driver, get_function *get, const struct symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *function = NULL;
        int status;
        if (get(symbols[i].name, &function, symbols[i].version, 0, &status) != 0 || !function)
            return symbols[i].name;
        memcpy((char *)driver + symbols[i].offset, &function, sizeof function);
    }
    return NULL;
}

static void find_checkpoint(struct cuda_driver *driver, get_function *get)
{
    void *nothing = NULL;
    if (!find_all(driver, get, checkpoint, ARRAY_SIZE(checkpoint)))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(checkpoint); i++)
        memcpy((char *)driver + checkpoint[i].offset, &nothing, sizeof nothing);
}

static int load_functions(struct cuda_driver *driver, struct fault *fault)
{
    get_function *get = NULL;
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver->library)
        return fault_set(fault, ENOENT,
            "no CUDA driver library: %s; it comes with the NVIDIA driver", dlerror());
    void *found = dlsym(driver->library, "cuGetProcAddress_v2");
    if (!found)
        return fault_set(fault, ENOSYS,
            "libcuda.so.1 is older than CUDA 12: the NVIDIA driver "
            "is too old");
    memcpy(&get, &found, sizeof found);
    const char *missing = find_all(driver, get, required, ARRAY_SIZE(required));
    if (missing)
        return fault_set(fault, ENOSYS, "libcuda.so.1 has no %s", missing);
    find_checkpoint(driver, get);
    return 0;
}

static void write_uuid(const struct cuda_uuid *uuid, char *text)
{
    const unsigned char *b = uuid->bytes;
    snprintf(text, GPU_UUID_SIZE,
        "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
        b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static int list_gpus(struct cuda_driver *driver)
{
    int device, r = driver->device_count(&driver->n_gpus);
    if (driver->n_gpus > HELPER_MOVES_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < driver->n_gpus && r == 0; i++) {
        r = driver->device_get(&device, i);
        if (r == 0)
            r = driver->device_uuid(&driver->uuid[i], device);
        write_uuid(&driver->uuid[i], driver->gpu[i]);
    }
    return r;
}

int cuda_driver_open(struct cuda_driver *driver, struct fault *fault)
{
    char name[64];
    *driver = (struct cuda_driver){0};
    int r = load_functions(driver, fault);
    if (r < 0)
        return r;
    int result = driver->driver_version(&driver->version);
    if (result == 0)
        result = driver->init(0);
    if (result == 0)
        result = list_gpus(driver);
    if (result == 0)
        return 0;
    return fault_set(fault, ENODEV, "CUDA cannot be used: %s",
        cuda_driver_error(driver, result, name, sizeof name));
}

bool cuda_driver_can_suspend(const struct cuda_driver *driver)
{
    return driver->process_checkpoint != NULL;
}

int cuda_driver_find(const struct cuda_driver *driver, const char *uuid)
{
    for (int i = 0; i < driver->n_gpus; i++)
        if (strcasecmp(driver->gpu[i], uuid) == 0)
            return i;
    return -1;
}

const char *cuda_driver_error(
    const struct cuda_driver *driver, int result, char *buffer, size_t size)
{
    const char *name = NULL;
    if (driver->error_name && driver->error_name(result, &name) == 0 && name)
        return name;
    snprintf(buffer, size, "CUDA error %d", result);
    return buffer;
}
