/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes take pieces from one cursor until there are none, or one has failed. */
#include "preload/staging.h"

#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "preload/context_work.h"
#include "preload/futex.h"
#include "preload/hook_table.h"
#include "preload/threads.h"

typedef CUresult alloc_host(void **memory, size_t bytes, unsigned flags);
typedef CUresult free_host(void *memory);
typedef CUresult create_stream(CUstream *stream, unsigned flags);
typedef CUresult copy_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
typedef CUresult copy_to_gpu(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
typedef CUresult exchange_mode(int *mode);

void staging_leave_captures_alone(void)
{
    DRIVER(exchange_mode, "cuThreadExchangeStreamCaptureMode");
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (call)
        call(&mode);
}

/* ---- the lanes ---- */

static CUresult allocate_buffers(char **ret_buffers)
{
    DRIVER(alloc_host, "cuMemHostAlloc");
    void *memory = NULL;
    CUresult r = call ? call(&memory, 2 * (size_t)STAGING_PIECE_BYTES, CU_MEMHOSTALLOC_PORTABLE)
                      : CUDA_ERROR_NOT_FOUND;
    *ret_buffers = r == CUDA_SUCCESS ? memory : NULL;
    return r;
}

static void free_buffers(char *buffers)
{
    DRIVER(free_host, "cuMemFreeHost");
    if (call && buffers)
        call(buffers);
}

static CUresult create_one_stream(CUstream *ret_stream)
{
    DRIVER(create_stream, "cuStreamCreate");
    return call ? call(ret_stream, CU_STREAM_NON_BLOCKING) : CUDA_ERROR_NOT_FOUND;
}

static void end_lane(struct staging_lane *lane)
{
    for (int i = 0; i < 2; i++)
        if (lane->streams[i])
            HOOK_INSIDE(cuStreamDestroy_v2)(lane->streams[i]);
    free_buffers(lane->buffers);
    *lane = (struct staging_lane){0};
}

CUresult staging_prepare(struct staging *staging, CUcontext context)
{
    CUresult r = CUDA_SUCCESS;
    staging->context = context;
    for (int i = 0; i < STAGING_LANES && r == CUDA_SUCCESS; i++) {
        struct staging_lane *lane = &staging->lanes[i];
        r = allocate_buffers(&lane->buffers);
        for (int k = 0; k < 2 && r == CUDA_SUCCESS; k++)
            r = create_one_stream(&lane->streams[k]);
    }
    for (int i = 0; i < STAGING_LANES && r != CUDA_SUCCESS; i++)
        end_lane(&staging->lanes[i]);
    return r;
}

/* ---- pieces ---- */

struct piece {
    CUdeviceptr at;
    char *copy;
    size_t bytes; /* 0: none */
};

struct transfer {
    struct staging *staging;
    const struct blocks *blocks;
    char *copy;
    enum staging_way way;
    _Atomic int error;

    _Atomic uint32_t lock; /* of the cursor */
    size_t block;
    uint64_t offset;
};

static void take_piece(struct transfer *transfer, struct piece *ret_piece)
{
    *ret_piece = (struct piece){0};
    futex_lock(&transfer->lock);
    while (!transfer->error && transfer->block < transfer->blocks->count && !ret_piece->bytes) {
        const struct block *block = &transfer->blocks->item[transfer->block];
        uint64_t left = block->mapped_bytes - transfer->offset;
        if (block->is_dead || block->is_kept || left == 0) {
            transfer->block++;
            transfer->offset = 0;
            continue;
        }
        size_t bytes = left < STAGING_PIECE_BYTES ? left : STAGING_PIECE_BYTES;
        *ret_piece = (struct piece){block->at + transfer->offset,
            transfer->copy + block->copy_at + transfer->offset, bytes};
        transfer->offset += bytes;
    }
    futex_unlock(&transfer->lock);
}

/* To memory that is not read soon: past the cache, and without reading it first. */
static void copy_past_cache(char *to, const char *from, size_t bytes)
{
#if defined(__x86_64__)
    for (size_t i = 0; i + 16 <= bytes; i += 16)
        _mm_stream_si128(
            (__m128i *)(void *)(to + i), _mm_load_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence();
#else
    memcpy(to, from, bytes);
#endif
}

static CUresult begin_to_host(char *buffer, const struct piece *piece, CUstream stream)
{
    DRIVER(copy_to_host, "cuMemcpyDtoHAsync_v2");
    return call ? call(buffer, piece->at, piece->bytes, stream) : CUDA_ERROR_NOT_FOUND;
}

static CUresult begin_to_gpu(char *buffer, const struct piece *piece, CUstream stream)
{
    DRIVER(copy_to_gpu, "cuMemcpyHtoDAsync_v2");
    memcpy(buffer, piece->copy, piece->bytes);
    return call ? call(piece->at, buffer, piece->bytes, stream) : CUDA_ERROR_NOT_FOUND;
}

static void note_result(struct transfer *transfer, CUresult r)
{
    int none = CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
        atomic_compare_exchange_strong(&transfer->error, &none, r);
}

static void begin_piece(
    struct transfer *transfer, char *buffer, const struct piece *piece, CUstream stream)
{
    if (piece->bytes)
        note_result(transfer, transfer->way == STAGING_TO_HOST
                                  ? begin_to_host(buffer, piece, stream)
                                  : begin_to_gpu(buffer, piece, stream));
}

static void finish_piece(
    struct transfer *transfer, const char *buffer, struct piece *piece, CUstream stream)
{
    if (!piece->bytes)
        return;
    note_result(transfer, HOOK_INSIDE(cuStreamSynchronize)(stream));
    if (transfer->way == STAGING_TO_HOST && !transfer->error)
        copy_past_cache(piece->copy, buffer, piece->bytes);
    piece->bytes = 0;
}

/* ---- a copy ---- */

struct lane_run {
    struct transfer *transfer;
    struct staging_lane *lane;
    pthread_t thread;
    bool has_thread;
};

static void *run_lane(void *argument)
{
    struct lane_run *run = argument;
    struct piece pieces[2] = {{0}};
    staging_leave_captures_alone();
    note_result(run->transfer, context_enter(run->transfer->staging->context));
    bool is_left = true;
    for (int k = 0; is_left || pieces[0].bytes || pieces[1].bytes; k ^= 1) {
        char *buffer = run->lane->buffers + (size_t)k * STAGING_PIECE_BYTES;
        finish_piece(run->transfer, buffer, &pieces[k], run->lane->streams[k]);
        if (is_left)
            take_piece(run->transfer, &pieces[k]);
        is_left = is_left && pieces[k].bytes;
        begin_piece(run->transfer, buffer, &pieces[k], run->lane->streams[k]);
    }
    return NULL;
}

CUresult staging_copy(
    struct staging *staging, const struct blocks *blocks, char *copy, enum staging_way way)
{
    struct transfer transfer = {.staging = staging, .blocks = blocks, .copy = copy, .way = way};
    struct lane_run runs[STAGING_LANES];
    for (int i = 0; i < STAGING_LANES; i++) {
        runs[i] = (struct lane_run){.transfer = &transfer, .lane = &staging->lanes[i]};
        if (i > 0)
            runs[i].has_thread = thread_begin(&runs[i].thread, run_lane, &runs[i]);
    }
    run_lane(&runs[0]);
    for (int i = 1; i < STAGING_LANES; i++)
        if (runs[i].has_thread)
            thread_join(runs[i].thread);
    return transfer.error;
}
