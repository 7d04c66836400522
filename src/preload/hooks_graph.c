/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA graphs: which collectives of NCCL each launches (graph_collectives.h). The launch of one
 * that has any is held with the other calls of NCCL; all launches are watched for the steps of a
 * training. A program whose graphs have no collectives pays a read of one word.
 */
#include "preload/collectives.h"
#include "preload/driver_memory.h"
#include "preload/hook_table.h"
#include "preload/step_watch.h"
#include "preload/stream_capture.h"

/* ---- launches ---- */

/* Within a capture the graph becomes a part of another one, which nothing follows. */
#define LAUNCH(FUNCTION, GRAPH, STREAM)                                                            \
    do {                                                                                           \
        step_watch(STEP_GRAPH, (uint64_t)(uintptr_t)(GRAPH));                                      \
        if (!collectives_are_in_graphs() || !collectives_has_graph(GRAPH))                         \
            DRIVER_MEMORY_CALL(HOOK_CALL(FUNCTION)(GRAPH, STREAM));                                \
        if (stream_capture(STREAM))                                                                \
            collectives_note_other();                                                              \
        collectives_enter();                                                                       \
        collectives_add_graph(GRAPH);                                                              \
        CUresult r = HOOK_CALL(FUNCTION)(GRAPH, STREAM);                                           \
        collectives_leave();                                                                       \
        return r;                                                                                  \
    } while (0)

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    LAUNCH(cuGraphLaunch, graph, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream)
{
    LAUNCH(cuGraphLaunch_ptsz, graph, stream);
}

CUresult cuGraphUpload(CUgraphExec graph, CUstream stream)
{
    DRIVER_MEMORY_CALL(HOOK_CALL(cuGraphUpload)(graph, stream));
}

CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream)
{
    DRIVER_MEMORY_CALL(HOOK_CALL(cuGraphUpload_ptsz)(graph, stream));
}

/* ---- executables ---- */

#define INSTANTIATE(GRAPH, EXECUTABLE, CALL)                                                       \
    do {                                                                                           \
        CUresult r;                                                                                \
        DRIVER_MEMORY_TRY(r, CALL);                                                                \
        if (r == CUDA_SUCCESS && collectives_are_in_graphs())                                      \
            collectives_instantiate(GRAPH, *(EXECUTABLE));                                         \
        return r;                                                                                  \
    } while (0)

CUresult cuGraphInstantiate_v2(
    CUgraphExec *executable, CUgraph graph, void **node, char *text, size_t size)
{
    INSTANTIATE(
        graph, executable, HOOK_CALL(cuGraphInstantiate_v2)(executable, graph, node, text, size));
}

CUresult cuGraphInstantiate_v12000(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    INSTANTIATE(graph, executable, HOOK_CALL(cuGraphInstantiate_v12000)(executable, graph, flags));
}

CUresult cuGraphInstantiateWithFlags(
    CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    INSTANTIATE(
        graph, executable, HOOK_CALL(cuGraphInstantiateWithFlags)(executable, graph, flags));
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph, void *params)
{
    INSTANTIATE(
        graph, executable, HOOK_CALL(cuGraphInstantiateWithParams)(executable, graph, params));
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *executable, CUgraph graph, void *params)
{
    INSTANTIATE(
        graph, executable, HOOK_CALL(cuGraphInstantiateWithParams_ptsz)(executable, graph, params));
}

/* ---- ends ---- */

/* Forgotten first: the handle may be used again at once. */
CUresult cuGraphDestroy(CUgraph graph)
{
    if (collectives_are_in_graphs())
        collectives_forget_graph(GRAPH_MADE, graph);
    return HOOK_CALL(cuGraphDestroy)(graph);
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    if (collectives_are_in_graphs())
        collectives_forget_graph(GRAPH_EXECUTABLE, executable);
    return HOOK_CALL(cuGraphExecDestroy)(executable);
}
