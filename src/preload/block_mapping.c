/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's calls for mapped memory, in the order in which they must be made and unmade. */
#include "preload/block_mapping.h"

#include "preload/hook_table.h"

typedef CUresult get_attribute(int *value, int attribute, CUdevice device);
typedef CUresult get_granularity(size_t *granularity, const CUmemAllocationProp *prop, int option);
typedef CUresult reserve(
    CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags);
typedef CUresult free_range(CUdeviceptr at, size_t bytes);
typedef CUresult import_memory(CUmemGenericAllocationHandle *handle, void *shareable, int type);
typedef CUresult get_prop(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);
typedef CUresult set_access(
    CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count);

static CUmemAllocationProp prop_of(const struct mapping_traits *traits, CUdevice device)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requested_handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    prop.flags[1] = traits->has_rdma;
    return prop;
}

static bool has_attribute(int attribute, CUdevice device)
{
    DRIVER(get_attribute, "cuDeviceGetAttribute");
    int value = 0;
    return call && call(&value, attribute, device) == CUDA_SUCCESS && value;
}

struct mapping_traits mapping_query(CUdevice device)
{
    DRIVER(get_granularity, "cuMemGetAllocationGranularity");
    struct mapping_traits traits = {
        .has_rdma = has_attribute(
            CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device)};
    CUmemAllocationProp prop = prop_of(&traits, device);
    size_t granularity = 0;
    enum { MINIMUM = 0 };
    if (call && has_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) &&
        has_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device) &&
        call(&granularity, &prop, MINIMUM) == CUDA_SUCCESS)
        traits.granularity = granularity;
    return traits;
}

/* ---- an address range ---- */

static CUresult reserve_range(struct block *block)
{
    DRIVER(reserve, "cuMemAddressReserve");
    CUdeviceptr at = 0;
    CUresult r = call ? call(&at, block->mapped_bytes, 0, 0, 0) : CUDA_ERROR_NOT_FOUND;
    block->at = at;
    return r;
}

static CUresult end_range(const struct block *block)
{
    DRIVER(free_range, "cuMemAddressFree");
    return call ? call(block->at, block->mapped_bytes) : CUDA_ERROR_NOT_FOUND;
}

/* ---- the memory behind it ---- */

CUresult mapping_allow_peers(
    const struct mapping_traits *traits, CUdevice device, const struct block *block)
{
    DRIVER(set_access, "cuMemSetAccess");
    CUmemAccessDesc access[1 + 32];
    size_t n = 0;
    for (int i = 0; i < 32; i++)
        if (i == device || traits->peers >> i & 1)
            access[n++] = (CUmemAccessDesc){
                {CU_MEM_LOCATION_TYPE_DEVICE, i}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return call ? call(block->at, block->mapped_bytes, access, n) : CUDA_ERROR_NOT_FOUND;
}

static CUresult map_memory(
    const struct mapping_traits *traits, const struct block *block, CUdevice device)
{
    CUresult r = HOOK_INSIDE(cuMemMap)(block->at, block->mapped_bytes, 0, block->handle, 0);
    if (r != CUDA_SUCCESS)
        return r;
    r = mapping_allow_peers(traits, device, block);
    if (r != CUDA_SUCCESS)
        HOOK_INSIDE(cuMemUnmap)(block->at, block->mapped_bytes);
    return r;
}

CUresult mapping_fill(const struct mapping_traits *traits, CUdevice device, struct block *block)
{
    CUmemAllocationProp prop = prop_of(traits, device);
    CUmemGenericAllocationHandle handle = 0;
    CUresult r = HOOK_INSIDE(cuMemCreate)(&handle, block->mapped_bytes, &prop, 0);
    if (r != CUDA_SUCCESS)
        return r;
    block->handle = handle;
    r = map_memory(traits, block, device);
    if (r != CUDA_SUCCESS) {
        HOOK_INSIDE(cuMemRelease)(handle);
        block->handle = 0;
    }
    return r;
}

/* A handle that the driver does not release keeps its memory: nothing better can be done. */
CUresult mapping_empty(struct block *block)
{
    CUresult r = HOOK_INSIDE(cuMemUnmap)(block->at, block->mapped_bytes);
    if (r != CUDA_SUCCESS)
        return r;
    r = HOOK_INSIDE(cuMemRelease)(block->handle);
    block->handle = 0;
    return r;
}

/* ---- both ---- */

CUresult mapping_create(
    const struct mapping_traits *traits, CUdevice device, uint64_t bytes, struct block *ret_block)
{
    uint64_t grain = traits->granularity;
    *ret_block = (struct block){
        .bytes = bytes, .mapped_bytes = (bytes + grain - 1) / grain * grain};
    if (ret_block->mapped_bytes < bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = reserve_range(ret_block);
    if (r != CUDA_SUCCESS)
        return r;
    r = mapping_fill(traits, device, ret_block);
    if (r != CUDA_SUCCESS)
        end_range(ret_block);
    return r;
}

CUresult mapping_destroy(struct block *block)
{
    CUresult r = block->handle ? mapping_empty(block) : CUDA_SUCCESS;
    if (r == CUDA_SUCCESS)
        r = end_range(block);
    return r;
}

/* ---- of two processes ---- */

CUresult mapping_export(const struct block *block, int *ret_memory)
{
    return HOOK_INSIDE(cuMemExportToShareableHandle)(
        ret_memory, block->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

/* Returns the device that memory is of, as this process counts; -1: not known. */
static int device_of(CUmemGenericAllocationHandle handle)
{
    DRIVER(get_prop, "cuMemGetAllocationPropertiesFromHandle");
    CUmemAllocationProp prop = {0};
    return call && call(&prop, handle) == CUDA_SUCCESS ? prop.location.id : -1;
}

static CUresult map_foreign(CUdevice device, struct block *block)
{
    int owner = device_of(block->handle);
    const struct mapping_traits traits = {
        .peers = owner >= 0 && owner < 32 ? UINT32_C(1) << owner : 0};
    CUresult r = reserve_range(block);
    if (r != CUDA_SUCCESS)
        return r;
    r = map_memory(&traits, block, device);
    if (r != CUDA_SUCCESS)
        end_range(block);
    return r;
}

CUresult mapping_import(
    CUdevice device, int memory, uint64_t mapped_bytes, uint64_t bytes, struct block *ret_block)
{
    DRIVER(import_memory, "cuMemImportFromShareableHandle");
    CUmemGenericAllocationHandle handle = 0;
    void *shareable = (void *)(intptr_t)memory;
    if (bytes > mapped_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = call ? call(&handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                      : CUDA_ERROR_NOT_FOUND;
    if (r != CUDA_SUCCESS)
        return r;
    *ret_block = (struct block){.handle = handle, .mapped_bytes = mapped_bytes, .bytes = bytes};
    r = map_foreign(device, ret_block);
    if (r != CUDA_SUCCESS)
        HOOK_INSIDE(cuMemRelease)(handle);
    return r;
}
