/* SPDX-License-Identifier: Apache-2.0 */
/* cuCtxSynchronize is of the current context of the thread: another one is made it meanwhile. */
#include "preload/context_work.h"

#include <stdbool.h>

#include "preload/allocation.h"
#include "preload/hook_table.h"

typedef CUresult set_context(CUcontext context);
typedef CUresult push_context(CUcontext context);
typedef CUresult pop_context(CUcontext *context);

CUresult context_enter(CUcontext context)
{
    DRIVER(set_context, "cuCtxSetCurrent");
    return call ? call(context) : CUDA_ERROR_NOT_FOUND;
}

static void leave_context(void)
{
    DRIVER(pop_context, "cuCtxPopCurrent_v2");
    CUcontext popped;
    if (call)
        call(&popped);
}

CUresult context_synchronise(CUcontext context)
{
    DRIVER(push_context, "cuCtxPushCurrent_v2");
    bool is_current = allocation_current_context() == (uint64_t)(uintptr_t)context;
    if (!is_current && (!call || call(context) != CUDA_SUCCESS))
        return CUDA_ERROR_NOT_FOUND;
    CUresult r = HOOK_INSIDE(cuCtxSynchronize)();
    if (!is_current)
        leave_context();
    return r;
}
