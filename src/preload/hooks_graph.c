/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA graphs: which collectives of NCCL each launches (graph_collectives.h). The launch of one
 * that has any is held with the other calls of NCCL; all launches are watched for the steps of a
 * training. A program whose graphs have no collectives pays a read of one word.
 */
#include "preload/collectives.h"
#include "preload/hook_table.h"
#include "preload/step_watch.h"
#include "preload/stream_capture.h"

/* ---- launches ---- */

/* Within a capture the graph becomes a part of another one, which nothing follows. */
#define LAUNCH(FUNCTION, GRAPH, STREAM)                                                            \
    do {                                                                                           \
        step_watch(STEP_GRAPH, (uint64_t)(uintptr_t)(GRAPH));                                      \
        if (!collectives_are_in_graphs() || !collectives_has_graph(GRAPH))                         \
            return HOOK_CALL(FUNCTION)(GRAPH, STREAM);                                             \
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

/* ---- executables ---- */

static CUresult note_executable(CUresult r, CUgraph graph, const CUgraphExec *executable)
{
    if (r == CUDA_SUCCESS && collectives_are_in_graphs())
        collectives_instantiate(graph, *executable);
    return r;
}

CUresult cuGraphInstantiate_v2(
    CUgraphExec *executable, CUgraph graph, void **node, char *text, size_t size)
{
    return note_executable(
        HOOK_CALL(cuGraphInstantiate_v2)(executable, graph, node, text, size), graph, executable);
}

CUresult cuGraphInstantiate_v12000(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    return note_executable(
        HOOK_CALL(cuGraphInstantiate_v12000)(executable, graph, flags), graph, executable);
}

CUresult cuGraphInstantiateWithFlags(
    CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    return note_executable(
        HOOK_CALL(cuGraphInstantiateWithFlags)(executable, graph, flags), graph, executable);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph, void *params)
{
    return note_executable(
        HOOK_CALL(cuGraphInstantiateWithParams)(executable, graph, params), graph, executable);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *executable, CUgraph graph, void *params)
{
    return note_executable(
        HOOK_CALL(cuGraphInstantiateWithParams_ptsz)(executable, graph, params), graph, executable);
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
