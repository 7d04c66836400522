/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated libcuda: initialisation, devices, and functions by name. A function that the
 * driver's version does not have yet is not found, and the checkpoint functions are found by name
 * only, so that a client that links them is noticed. The static state is that of the process, as in
 * NVIDIA's library.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/cuda_interface.h"
#include "emulator/mps_channel.h"
#include "emulator/visible.h"

static struct world *session;
static struct seat devices[SEATS_MAX];
static int device_count;
static pid_t mps_server; /* 0: the process is no client of MPS */

struct world *cuda_world(void)
{
    return session;
}

pid_t cuda_mps_server(void)
{
    return mps_server;
}

struct seat cuda_seat(CUdevice device)
{
    return device >= 0 && device < device_count ? devices[device] : (struct seat){-1, 0};
}

CUresult cuInit(unsigned flags)
{
    const char *path = getenv("COLLOC_EMULATOR");
    double share;

    if (flags)
        return CUDA_INVALID_VALUE;
    if (!session && (!path || world_open(path, NULL, &session) < 0))
        return CUDA_NO_DEVICE;
    if (!mps_server && mps_enlist(&mps_server, &share) < 0)
        return CUDA_MPS_SERVER_NOT_READY;
    device_count = visible_seats(session, getenv("CUDA_VISIBLE_DEVICES"), devices);
    return device_count ? CUDA_OK : CUDA_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    struct world *world = session;
    const char *path = getenv("COLLOC_EMULATOR");

    if (!version || (!world && (!path || world_open(path, NULL, &world) < 0)))
        return CUDA_INVALID_VALUE;
    *version = world->cuda_version;
    if (world != session)
        world_close(world);
    return CUDA_OK;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{CUDA_OK, "CUDA_SUCCESS"}, {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
        {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {CUDA_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM"},
        {CUDA_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"}, {CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {CUDA_NOT_READY, "CUDA_ERROR_NOT_READY"}, {CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].number == error) {
            *name = names[i].name;
            return CUDA_OK;
        }
    }
    *name = NULL;
    return CUDA_INVALID_VALUE;
}

typedef void any_function(void);

/* `since`: the first driver version that has it. */
static const struct symbol {
    const char *name;
    int since;
    any_function *function;
} symbols[] = {
    {"cuInit", 2000, (any_function *)cuInit},
    {"cuDriverGetVersion", 2020, (any_function *)cuDriverGetVersion},
    {"cuGetErrorName", 6000, (any_function *)cuGetErrorName},
    {"cuDeviceGetCount", 2000, (any_function *)cuDeviceGetCount},
    {"cuDeviceGet", 2000, (any_function *)cuDeviceGet},
    {"cuDeviceGetUuid", 11040, (any_function *)cuDeviceGetUuid_v2},
    {"cuDevicePrimaryCtxRetain", 7000, (any_function *)cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxRelease", 11000, (any_function *)cuDevicePrimaryCtxRelease_v2},
    {"cuCtxSetCurrent", 4000, (any_function *)cuCtxSetCurrent},
    {"cuCtxSetLimit", 3010, (any_function *)cuCtxSetLimit},
    {"cuCtxGetDevice", 2000, (any_function *)cuCtxGetDevice},
    {"cuCtxSynchronize", 2000, (any_function *)cuCtxSynchronize},
    {"cuMemGetInfo", 3020, (any_function *)cuMemGetInfo_v2},
    {"cuMemAlloc", 3020, (any_function *)cuMemAlloc_v2},
    {"cuMemAllocManaged", 6000, (any_function *)cuMemAllocManaged},
    {"cuIpcGetMemHandle", 4010, (any_function *)cuIpcGetMemHandle},
    {"cuMemFree", 3020, (any_function *)cuMemFree_v2},
    {"cuMemcpyHtoD", 3020, (any_function *)cuMemcpyHtoD_v2},
    {"cuMemcpyDtoH", 3020, (any_function *)cuMemcpyDtoH_v2},
    {"cuMemCreate", 10020, (any_function *)cuMemCreate},
    {"cuMemRelease", 10020, (any_function *)cuMemRelease},
    {"cuMemExportToShareableHandle", 10020, (any_function *)cuMemExportToShareableHandle},
    {"cuCheckpointProcessGetState", 12080, (any_function *)cuCheckpointProcessGetState},
    {"cuCheckpointProcessLock", 12080, (any_function *)cuCheckpointProcessLock},
    {"cuCheckpointProcessCheckpoint", 12080, (any_function *)cuCheckpointProcessCheckpoint},
    {"cuCheckpointProcessRestore", 12080, (any_function *)cuCheckpointProcessRestore},
    {"cuCheckpointProcessUnlock", 12080, (any_function *)cuCheckpointProcessUnlock},
};

CUresult cuGetProcAddress_v2(
    const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    int driver = 0;

    if (!symbol || !function || cuDriverGetVersion(&driver) != CUDA_OK)
        return CUDA_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (strcmp(symbols[i].name, symbol) == 0 && symbols[i].since <= driver &&
            symbols[i].since <= version)
            memcpy(function, &symbols[i].function, sizeof(*function));
    if (status)
        *status = *function ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
    return *function ? CUDA_OK : CUDA_NOT_FOUND;
}

CUresult cuDeviceGetCount(int *count)
{
    if (!session)
        return CUDA_NOT_INITIALIZED;
    *count = device_count;
    return CUDA_OK;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!session)
        return CUDA_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= device_count)
        return CUDA_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_OK;
}

/* "GPU-00010203-0405-..." as bytes. */
static CUuuid read_uuid(const char *text)
{
    CUuuid uuid = {{0}};
    size_t digits = 0;

    for (const char *at = strchr(text, '-'); at && *at && digits < 32; at++) {
        char digit[2] = {*at, '\0'};
        if (*at == '-')
            continue;
        unsigned value = (unsigned)strtoul(digit, NULL, 16);
        uuid.bytes[digits / 2] = (unsigned char)(uuid.bytes[digits / 2] << 4 | value);
        digits++;
    }
    return uuid;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    struct seat seat = cuda_seat(device);

    if (!session)
        return CUDA_NOT_INITIALIZED;
    if (seat.gpu < 0)
        return CUDA_INVALID_DEVICE;
    *uuid = read_uuid(world_unit(session, seat)->uuid);
    return CUDA_OK;
}

int cuda_find_gpu(const struct world *world, const CUuuid *uuid)
{
    for (int i = 0; i < world->gpu_count; i++) {
        CUuuid own = read_uuid(world->gpus[i].units[0].uuid);
        if (memcmp(&own, uuid, sizeof(own)) == 0)
            return i;
    }
    return -1;
}
