/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds GPU memory free for a task that is to be resumed. Memory is taken with cuMemCreate:
 * physical memory that is mapped nowhere, which drivers give without a context. A context would
 * take half a GiB itself, and a process that just fits could not be restored. If the driver
 * requires a context, there is one until the memory is freed.
 */
#include "checkpoint/reservations.h"

/* The granularity of cuMemCreate on today's GPUs; sizes are rounded up to it. */
static const int64_t GRAIN = INT64_C(2) << 20;

static int create_memory(
    const struct cuda_driver *driver, int device, int64_t bytes, uint64_t *ret_handle)
{
    const struct cuda_allocation allocation = {.type = 1, .location_type = 1, .device = device};
    size_t size = (size_t)((bytes + GRAIN - 1) / GRAIN * GRAIN);
    return driver->memory_create(ret_handle, size, &allocation, 0);
}

static int open_context(
    struct reservations *reservations, const struct cuda_driver *driver, int device)
{
    cuda_context context;
    int r = driver->context_retain(&context, device);
    if (r != 0)
        return r;
    reservations->has_context[device] = true;
    return driver->context_set(context);
}

void reservations_end_contexts(struct reservations *reservations, const struct cuda_driver *driver)
{
    for (int device = 0; device < driver->n_gpus; device++) {
        bool used = false;
        for (size_t i = 0; i < reservations->count; i++)
            used |= reservations->list[i].device == device;
        if (!used && reservations->has_context[device]) {
            driver->context_release(device);
            reservations->has_context[device] = false;
        }
    }
}

int reservations_add(struct reservations *reservations, const struct cuda_driver *driver,
    struct process_id process, int device, int64_t bytes)
{
    uint64_t handle;
    if (reservations->count == RESERVATIONS_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    int r = create_memory(driver, device, bytes, &handle);
    bool wants_context = r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_NOT_INITIALIZED;
    if (wants_context && !reservations->has_context[device]) {
        r = open_context(reservations, driver, device);
        if (r == 0)
            r = create_memory(driver, device, bytes, &handle);
    }
    if (r == 0)
        reservations->list[reservations->count++] = (struct reservation){process, device, handle};
    else
        reservations_end_contexts(reservations, driver);
    return r;
}

void reservations_drop(
    struct reservations *reservations, const struct cuda_driver *driver, struct process_id process)
{
    size_t kept = 0;
    for (size_t i = 0; i < reservations->count; i++) {
        if (process_id_is(reservations->list[i].process, process))
            driver->memory_release(reservations->list[i].handle);
        else
            reservations->list[kept++] = reservations->list[i];
    }
    reservations->count = kept;
}
