/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's synchronising calls, which the gate holds (gate.h), and the captures of streams,
 * during which no allocation waits. */
#include "preload/gate.h"
#include "preload/hook_table.h"

/* ---- through the gate ---- */

/* Before the library knows the process, nothing was reported: there is nothing to suspend. */
#define THROUGH_GATE(CALL)                                                                         \
    do {                                                                                           \
        struct process_state *state = process_state_peek();                                        \
        if (!state)                                                                                \
            return (CALL);                                                                         \
        struct preload_page *page = gate_enter(state);                                             \
        process_beat(state);                                                                       \
        CUresult r = (CALL);                                                                       \
        gate_leave(page);                                                                          \
        return r;                                                                                  \
    } while (0)

CUresult cuStreamSynchronize(CUstream stream)
{
    THROUGH_GATE(HOOK_CALL(cuStreamSynchronize)(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    THROUGH_GATE(HOOK_CALL(cuStreamSynchronize_ptsz)(stream));
}

CUresult cuCtxSynchronize(void)
{
    THROUGH_GATE(HOOK_CALL(cuCtxSynchronize)());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    THROUGH_GATE(HOOK_CALL(cuCtxSynchronize_v2)(context));
}

/* ---- captures ---- */

/* Of cuStreamEndCapture: the stream was not being captured. */
enum { CUDA_ERROR_ILLEGAL_STATE = 401 };

static CUresult note_begin(CUresult r)
{
    struct process_state *state = r == CUDA_SUCCESS ? process_state_get() : NULL;
    if (state)
        atomic_fetch_add(&state->captures, 1);
    return r;
}

/* A capture that went wrong ends with an error, but it ends. One that the child of a fork inherits
 * was never counted there. */
static CUresult note_end(CUresult r)
{
    struct process_state *state = r != CUDA_ERROR_ILLEGAL_STATE ? process_state_peek() : NULL;
    uint32_t captures = state ? atomic_load(&state->captures) : 0;
    while (captures && !atomic_compare_exchange_weak(&state->captures, &captures, captures - 1))
        ;
    return r;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    return note_begin(HOOK_CALL(cuStreamBeginCapture_v2)(stream, mode));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
    return note_begin(HOOK_CALL(cuStreamBeginCapture_v2_ptsz)(stream, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *dependencies,
    const void *edges, size_t count, int mode)
{
    return note_begin(
        HOOK_CALL(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, edges, count, mode));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const void *dependencies,
    const void *edges, size_t count, int mode)
{
    return note_begin(HOOK_CALL(cuStreamBeginCaptureToGraph_ptsz)(
        stream, graph, dependencies, edges, count, mode));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return note_end(HOOK_CALL(cuStreamEndCapture)(stream, graph));
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return note_end(HOOK_CALL(cuStreamEndCapture_ptsz)(stream, graph));
}
