/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's synchronising calls, which the gate holds (gate.h), and the captures of streams,
 * during which no allocation waits. */
#include "preload/collectives.h"
#include "preload/futex.h"
#include "preload/gate.h"
#include "preload/hook_table.h"
#include "preload/step_watch.h"
#include "preload/stream_capture.h"

/* ---- through the gate ---- */

/* Before the library knows the process, nothing was reported: there is nothing to suspend. */
#define THROUGH_GATE(CALL)                                                                         \
    do {                                                                                           \
        struct process_state *state = process_state_peek();                                        \
        if (!state)                                                                                \
            return (CALL);                                                                         \
        struct preload_page *page = gate_enter(state);                                             \
        process_beat(state);                                                                       \
        step_watch(STEP_SYNC, 0);                                                                  \
        CUresult r = (CALL);                                                                       \
        gate_leave(page);                                                                          \
        return r;                                                                                  \
    } while (0)

CUresult cuStreamSynchronize(CUstream stream)
{
    THROUGH_GATE(HOOK_INSIDE(cuStreamSynchronize)(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    THROUGH_GATE(HOOK_INSIDE(cuStreamSynchronize_ptsz)(stream));
}

CUresult cuCtxSynchronize(void)
{
    THROUGH_GATE(HOOK_INSIDE(cuCtxSynchronize)());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    THROUGH_GATE(HOOK_INSIDE(cuCtxSynchronize_v2)(context));
}

/* ---- captures ---- */

typedef CUresult get_capture_status(CUstream stream, int *status);

/* The default stream of a thread: what the functions for such streams mean by NULL. */
#define PER_THREAD_STREAM ((CUstream)2)

static CUstream stream_or_threads(CUstream stream)
{
    return stream ? stream : PER_THREAD_STREAM;
}

/* Default streams of several threads have one handle, so that it can be there several times. A
 * capture without a place is never forgotten: nothing waits any more. */
static void note_capture(struct process_state *state, CUstream stream)
{
    futex_lock(&state->lock);
    for (int i = 0; i < CAPTURES_MAX; i++) {
        if (state->captured[i])
            continue;
        state->captured[i] = stream;
        break;
    }
    atomic_fetch_add(&state->captures, 1);
    futex_unlock(&state->lock);
}

/* Returns whether the stream was being captured. One that the child of a fork inherits was never
 * counted there. */
static bool forget_capture(struct process_state *state, CUstream stream)
{
    bool found = false;
    futex_lock(&state->lock);
    for (int i = 0; i < CAPTURES_MAX && !found; i++) {
        found = stream && state->captured[i] == stream;
        if (found)
            state->captured[i] = NULL;
    }
    if (found)
        atomic_fetch_sub(&state->captures, 1);
    futex_unlock(&state->lock);
    return found;
}

static CUresult note_begin(CUresult r, CUstream stream)
{
    struct process_state *state = r == CUDA_SUCCESS ? process_state_get() : NULL;
    if (state)
        note_capture(state, stream);
    return r;
}

/* Of a driver that does not answer, nothing is known. */
static bool is_known_to_be_idle(CUstream stream)
{
    DRIVER(get_capture_status, "cuStreamIsCapturing");
    int status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return call && call(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A capture that went wrong ends with an error. One that another thread has to end goes on. */
static void note_end(CUresult r, CUstream stream)
{
    struct process_state *state = process_state_peek();
    if (state && atomic_load(&state->captures) &&
        (r == CUDA_SUCCESS || is_known_to_be_idle(stream)))
        forget_capture(state, stream);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    return note_begin(HOOK_CALL(cuStreamBeginCapture_v2)(stream, mode), stream);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
    return note_begin(
        HOOK_CALL(cuStreamBeginCapture_v2_ptsz)(stream, mode), stream_or_threads(stream));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *dependencies,
    const void *edges, size_t count, int mode)
{
    return note_begin(
        HOOK_CALL(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, edges, count, mode),
        stream);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const void *dependencies,
    const void *edges, size_t count, int mode)
{
    return note_begin(HOOK_CALL(cuStreamBeginCaptureToGraph_ptsz)(
                          stream, graph, dependencies, edges, count, mode),
        stream_or_threads(stream));
}

/* What of NCCL's was captured belongs to the graph (graph_collectives.h). */
static uint64_t capture_with_collectives(CUstream stream)
{
    return collectives_are_in_graphs() ? stream_capture(stream) : 0;
}

static CUresult end_capture(CUresult r, CUstream stream, uint64_t capture, CUgraph *graph)
{
    note_end(r, stream);
    if (capture)
        collectives_end_capture(capture, r == CUDA_SUCCESS && graph ? *graph : NULL);
    return r;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    uint64_t capture = capture_with_collectives(stream);
    return end_capture(HOOK_CALL(cuStreamEndCapture)(stream, graph), stream, capture, graph);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    uint64_t capture = capture_with_collectives(stream_or_threads(stream));
    return end_capture(HOOK_CALL(cuStreamEndCapture_ptsz)(stream, graph), stream_or_threads(stream),
        capture, graph);
}

/* Forgotten first: its handle may be used again at once. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct process_state *state = process_state_peek();
    bool was_captured = state && atomic_load(&state->captures) && forget_capture(state, stream);
    CUresult r = HOOK_CALL(cuStreamDestroy_v2)(stream);
    if (r != CUDA_SUCCESS && was_captured)
        note_capture(state, stream);
    return r;
}
