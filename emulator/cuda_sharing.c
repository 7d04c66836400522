/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of two processes in the emulated libcuda: descriptors of memory handles, and legacy IPC,
 * which the driver refuses for mapped memory. What one process writes the other one reads. The
 * emulated GPU counts the memory as that of the process that has taken it, until that frees it.
 *
 * A handle of legacy IPC has the pid and the descriptor of the exporter; the importer opens it by
 * /proc. The driver does so through its kernel module, for processes of any user.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulator/cuda_interface.h"

enum { POSIX_FILE_DESCRIPTOR = 1 };

/* ---- descriptors ---- */

CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)
{
    const struct cuda_block *block = cuda_block_at((void *)handle);

    if (!block || !block->is_handle || !block->is_exportable || type != POSIX_FILE_DESCRIPTOR)
        return CUDA_INVALID_VALUE;
    int memory = fcntl(block->memory, F_DUPFD_CLOEXEC, 0);
    if (memory < 0)
        return CUDA_OPERATING_SYSTEM;
    memcpy(shareable, &memory, sizeof(memory));
    return CUDA_OK;
}

/* Is the memory that of a GPU that this process does not see? Its file's name says which one. */
static bool is_lent(int memory, struct seat *ret_seat)
{
    char path[64], name[96] = "";

    snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
    if (readlink(path, name, sizeof(name) - 1) < 0 ||
        sscanf(name, "/memfd:" CUDA_MEMORY_NAME, &ret_seat->gpu, &ret_seat->unit) != 2)
        return false;
    for (int i = 0; cuda_seat(i).gpu >= 0; i++)
        if (cuda_seat(i).gpu == ret_seat->gpu)
            return false;
    return true;
}

CUresult cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
    struct stat status;
    struct seat seat;
    int memory = fcntl((int)(intptr_t)shareable, F_DUPFD_CLOEXEC, 0);

    if (memory < 0 || type != POSIX_FILE_DESCRIPTOR || fstat(memory, &status) < 0) {
        if (memory >= 0)
            close(memory);
        return CUDA_INVALID_VALUE;
    }
    struct cuda_block *block = cuda_block_of_memory(memory, (size_t)status.st_size, 1);
    if (!block) {
        close(memory);
        return CUDA_OUT_OF_MEMORY;
    }
    block->is_handle = true;
    if (is_lent(memory, &seat) && !cuda_block_take_lent(block, seat)) {
        cuMemRelease((CUmemGenericAllocationHandle)block->at);
        return CUDA_OUT_OF_MEMORY;
    }
    *handle = (CUmemGenericAllocationHandle)block->at;
    return CUDA_OK;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    const struct cuda_block *block = cuda_block_at((void *)handle);

    if (!block || !block->is_handle)
        return CUDA_INVALID_VALUE;
    *prop = (CUmemAllocationProp){.type = 1, .location = {1, block->device}};
    return CUDA_OK;
}

/* ---- legacy IPC ---- */

struct legacy_handle {
    char magic[16];
    int32_t pid, memory;
    uint64_t bytes;
    uint64_t inode; /* of the memory: the descriptor may be another file by now */
};

static const char legacy_magic[16] = "colloc-emulator";

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    const struct cuda_block *block = cuda_block_at((void *)at);
    struct legacy_handle legacy = {.pid = (int32_t)getpid()};
    struct stat status;

    if (!cuda_current_context())
        return CUDA_INVALID_CONTEXT;
    if (!block || block->is_handle || block->foreign_bytes || fstat(block->memory, &status) < 0)
        return CUDA_INVALID_VALUE;
    memcpy(legacy.magic, legacy_magic, sizeof(legacy_magic));
    legacy.memory = block->memory;
    legacy.bytes = (uint64_t)block->bytes;
    legacy.inode = status.st_ino;
    *handle = (CUipcMemHandle){{0}};
    memcpy(handle->reserved, &legacy, sizeof(legacy));
    return CUDA_OK;
}

static struct opened {
    struct legacy_handle handle;
    CUdeviceptr at;
    int references; /* 0: unused */
} opened[CUDA_BLOCKS_MAX];

static struct opened *find_opened(const struct legacy_handle *handle)
{
    for (int i = 0; i < CUDA_BLOCKS_MAX; i++)
        if (opened[i].references && memcmp(&opened[i].handle, handle, sizeof(*handle)) == 0)
            return &opened[i];
    return NULL;
}

/* Returns the exporter's memory, or -1: it was freed, or the process has ended. */
static int open_memory(const struct legacy_handle *handle)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle->pid, (int)handle->memory);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    if (memory >= 0 && fstat(memory, &status) == 0 && status.st_ino == handle->inode)
        return memory;
    if (memory >= 0)
        close(memory);
    return -1;
}

static CUresult open_handle(const struct legacy_handle *handle, CUdeviceptr *ret_at)
{
    struct opened *place = opened;

    while (place < opened + CUDA_BLOCKS_MAX && place->references)
        place++;
    int memory = place < opened + CUDA_BLOCKS_MAX ? open_memory(handle) : -1;
    if (memory < 0)
        return CUDA_INVALID_VALUE;
    struct cuda_block *block = cuda_block_of_memory(memory, handle->bytes, handle->bytes);
    if (!block) {
        close(memory);
        return CUDA_OUT_OF_MEMORY;
    }
    *place = (struct opened){*handle, (CUdeviceptr)block->at, 1};
    *ret_at = place->at;
    return CUDA_OK;
}

/* Twice in one process it has one address. */
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    struct legacy_handle legacy;

    memcpy(&legacy, handle.reserved, sizeof(legacy));
    if (!cuda_current_context() || legacy.pid == getpid())
        return CUDA_INVALID_CONTEXT;
    if (memcmp(legacy.magic, legacy_magic, sizeof(legacy_magic)) != 0)
        return CUDA_INVALID_VALUE;
    struct opened *again = find_opened(&legacy);
    if (!again)
        return open_handle(&legacy, at);
    again->references++;
    *at = again->at;
    return CUDA_OK;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    for (int i = 0; i < CUDA_BLOCKS_MAX; i++) {
        if (!opened[i].references || opened[i].at != at)
            continue;
        if (--opened[i].references)
            return CUDA_OK;
        return cuMemRelease((CUmemGenericAllocationHandle)at);
    }
    return CUDA_INVALID_VALUE;
}
