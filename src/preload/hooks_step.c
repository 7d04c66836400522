/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the driver that are watched for the steps of a training only: copies to the GPU and
 * launches of graphs. Those of kernels are in hooks_code.c, synchronising ones in hooks_stream.c.
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

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    step_watch(STEP_GRAPH, (uint64_t)(uintptr_t)graph);
    return HOOK_CALL(cuGraphLaunch)(graph, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream)
{
    step_watch(STEP_GRAPH, (uint64_t)(uintptr_t)graph);
    return HOOK_CALL(cuGraphLaunch_ptsz)(graph, stream);
}
