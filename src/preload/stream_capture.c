/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's first form of the function, which each version has: it asks for no more than the
 * number. */
#include "preload/stream_capture.h"

#include "preload/hook_table.h"
#include "preload/process_state.h"

typedef CUresult get_capture_info(CUstream stream, int *status, uint64_t *number);

uint64_t stream_capture(CUstream stream)
{
    const struct process_state *state = process_state_peek();
    if (!state || !atomic_load(&state->captures))
        return 0;
    DRIVER(get_capture_info, "cuStreamGetCaptureInfo");
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t number = 0;
    if (!call || call(stream, &status, &number) != CUDA_SUCCESS)
        return 0;
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? number : 0;
}
