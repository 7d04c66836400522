/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, errors, versions, and views: a view (nvml_view.h) locks the world for one call
 * and finds the GPU of a handle. A handle is a pointer into the static table `devices`, so any
 * pointer can be checked. The static state below is that of the process: NVML's interface has no
 * other place for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "emulator/nvml_view.h"

static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static struct world *session;
static unsigned session_users;
static struct nvmlDevice_st devices[GPUS_MAX][UNITS_MAX];

static void name_handles(void)
{
    for (int g = 0; g < GPUS_MAX; g++)
        for (int u = 0; u < UNITS_MAX; u++)
            devices[g][u].seat = (struct seat){g, u};
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    const char *path = getenv("COLLOC_EMULATOR");
    nvmlReturn_t r = NVML_SUCCESS;

    pthread_mutex_lock(&session_lock);
    if (session_users == 0) {
        name_handles();
        if (!path || world_open(path, NULL, &session) < 0)
            r = NVML_ERROR_DRIVER_NOT_LOADED;
    }
    if (r == NVML_SUCCESS)
        session_users++;
    pthread_mutex_unlock(&session_lock);
    return r;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t r = NVML_ERROR_UNINITIALIZED;

    pthread_mutex_lock(&session_lock);
    if (session_users > 0) {
        r = NVML_SUCCESS;
        if (--session_users == 0) {
            world_close(session);
            session = NULL;
        }
    }
    pthread_mutex_unlock(&session_lock);
    return r;
}

struct world *session_world(void)
{
    return session;
}

nvmlDevice_t device_handle(struct seat seat)
{
    return &devices[seat.gpu][seat.unit];
}

static bool is_handle(nvmlDevice_t device)
{
    const struct nvmlDevice_st *first = &devices[0][0];
    return device >= first && device < first + GPUS_MAX * UNITS_MAX &&
           device->seat.gpu < session->gpu_count &&
           device->seat.unit < session->gpus[device->seat.gpu].unit_count &&
           session->gpus[device->seat.gpu].units[device->seat.unit].state == UNIT_READY;
}

nvmlReturn_t view_open(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view)
{
    if (!session)
        return NVML_ERROR_UNINITIALIZED;
    if (!out || !is_handle(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    struct gpu *gpu = &session->gpus[device->seat.gpu];
    while (((volatile struct gpu *)gpu)->trouble & TROUBLE_HANG)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    world_enter(session);
    if (gpu->trouble & (unsupported | TROUBLE_LOST)) {
        nvmlReturn_t r = gpu->trouble & TROUBLE_LOST ? NVML_ERROR_GPU_IS_LOST
                                                     : NVML_ERROR_NOT_SUPPORTED;
        world_leave(session);
        return r;
    }
    *ret_view = (struct view){.world = session,
        .seat = device->seat,
        .gpu = gpu,
        .unit = world_unit(session, device->seat),
        .kind = &gpu->kind};
    return NVML_SUCCESS;
}

nvmlReturn_t view_open_gpu(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view)
{
    nvmlReturn_t r = view_open(device, out, unsupported, ret_view);

    if (r == NVML_SUCCESS && ret_view->seat.unit != 0) {
        view_close(ret_view);
        r = NVML_ERROR_NOT_SUPPORTED;
    }
    return r;
}

nvmlReturn_t view_open_instance(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view)
{
    nvmlReturn_t r = view_open(device, out, unsupported, ret_view);

    if (r == NVML_SUCCESS && ret_view->seat.unit == 0) {
        view_close(ret_view);
        r = NVML_ERROR_NOT_SUPPORTED;
    }
    return r;
}

nvmlReturn_t give_number(nvmlReturn_t (*open)(nvmlDevice_t, const void *, unsigned, struct view *),
    nvmlDevice_t device, unsigned index, unsigned *out,
    unsigned (*number)(const struct view *v, unsigned index))
{
    struct view v;

    nvmlReturn_t r = open(device, out, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *out = number(&v, index);
    view_close(&v);
    return NVML_SUCCESS;
}

void view_close(struct view *view)
{
    world_leave(view->world);
}

nvmlReturn_t give_text(const char *text, char *buffer, unsigned length)
{
    if (!buffer)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}

/* The words are NVML's: clients print them, and users search for them. */
const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_IN_USE:
        return "In use by another client";
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
        return "Insufficient Resources";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT:
        return "Timeout";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    case NVML_ERROR_MEMORY:
        return "Insufficient Memory";
    case NVML_ERROR_NO_DATA:
        return "No Data";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument Version Mismatch";
    }
    return "Unknown Error";
}

/* The driver that came with the emulated version of CUDA. */
static const char *driver_version(const struct world *world)
{
    return world->cuda_version >= 13000 ? "580.159.04" : "550.127.05";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    return session ? give_text(driver_version(session), version, length) : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    char text[32];

    if (!session)
        return NVML_ERROR_UNINITIALIZED;
    snprintf(text, sizeof(text), "%d.%s", session->cuda_version / 1000, driver_version(session));
    return give_text(text, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!session)
        return NVML_ERROR_UNINITIALIZED;
    *version = session->cuda_version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* The command line's first word, cut to the buffer as NVML does. */
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    char path[64];

    if (!session)
        return NVML_ERROR_UNINITIALIZED;
    if (!name || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NVML_ERROR_NOT_FOUND;
    size_t n = fread(name, 1, length - 1, file);
    name[n] = '\0';
    fclose(file);
    return NVML_SUCCESS;
}
