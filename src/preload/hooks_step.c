/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the driver that are watched for the steps of a training only: copies to the GPU. The
 * launches of kernels are in hooks_code.c, those of graphs in hooks_graph.c, synchronising calls in
 * hooks_stream.c.
 */
#include "preload/hook_table.h"
#include "preload/step_watch.h"

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    step_watch(STEP_COPY, bytes);
    return HOOK_CALL(cuMemcpyHtoD_v2)(to, from, bytes);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t bytes)
{
    step_watch(STEP_COPY, bytes);
    return HOOK_CALL(cuMemcpyHtoD_v2_ptds)(to, from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    step_watch(STEP_COPY, bytes);
    return HOOK_CALL(cuMemcpyHtoDAsync_v2)(to, from, bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    step_watch(STEP_COPY, bytes);
    return HOOK_CALL(cuMemcpyHtoDAsync_v2_ptsz)(to, from, bytes, stream);
}
