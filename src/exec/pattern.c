/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table, ordered: the first row that matches a line decides, so exceptions to a rule stand
 * above it.
 */
#include "exec/pattern.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"

/* clang-format off */
static const struct pattern patterns[] = {
    /* TensorFlow tries again with less, and says so. */
    {LOG_CAUSE_NONE, "tensorflow", false, {"ran out of memory trying to allocate", "this is not a failure"}},
    {LOG_CAUSE_SHORTAGE, "tensorflow", false, {"failed to allocate", "from device: cuda_error_out_of_memory"}},
    /* Out of memory, but not the GPU's. */
    {LOG_CAUSE_HOST_OOM, "ray", true, {"ray.exceptions.outofmemoryerror"}},
    {LOG_CAUSE_HOST_OOM, "tensorflow", false, {"oom when allocating tensor", "device:cpu"}},
    {LOG_CAUSE_HOST_OOM, "pytorch", false, {"dataloader worker", "out of shared memory"}},
    {LOG_CAUSE_PROGRAM, "triton", false, {"out of resource: shared memory"}},
    {LOG_CAUSE_PROGRAM, "jax", false, {"resource_exhausted", "shared memory"}},
    {LOG_CAUSE_PROGRAM, "jax", false, {"resource_exhausted", "memory space"}},

    {LOG_CAUSE_GPU_OOM, "pytorch", false, {"cuda out of memory. tried to allocate"}},
    {LOG_CAUSE_GPU_OOM, "pytorch", false, {"hip out of memory. tried to allocate"}},
    {LOG_CAUSE_GPU_OOM, "pytorch", true, {"torch.outofmemoryerror"}},
    {LOG_CAUSE_GPU_OOM, "pytorch", true, {"torch.cuda.outofmemoryerror"}},
    {LOG_CAUSE_GPU_OOM, "pytorch", true, {"torch.cuda.cudaoutofmemoryerror"}},
    {LOG_CAUSE_GPU_OOM, "pytorch", false, {"cudacachingallocator", "nvml_success == r", "internal assert failed"}},

    {LOG_CAUSE_GPU_OOM, "tensorflow", false, {"oom when allocating tensor"}},
    {LOG_CAUSE_GPU_OOM, "tensorflow", false, {"ran out of memory trying to allocate"}},
    {LOG_CAUSE_GPU_OOM, "tensorflow", true, {"tensorflow", "resourceexhaustederror"}},
    {LOG_CAUSE_GPU_OOM, "tensorflow", false, {"dst tensor is not copied"}},

    {LOG_CAUSE_GPU_OOM, "jax", false, {"resource_exhausted: out of memory"}},
    {LOG_CAUSE_GPU_OOM, "jax", false, {"resource exhausted: out of memory"}},
    {LOG_CAUSE_GPU_OOM, "jax", false, {"resource_exhausted", "failed to allocate"}},
    {LOG_CAUSE_GPU_OOM, "jax", false, {"xlaruntimeerror: resource_exhausted", "memory"}},

    {LOG_CAUSE_GPU_OOM, "cupy", false, {"cupy.cuda.memory.outofmemoryerror"}},
    {LOG_CAUSE_GPU_OOM, "rmm", false, {"std::bad_alloc: out_of_memory", "cuda"}},
    {LOG_CAUSE_GPU_OOM, "mxnet", false, {"cudamalloc retry failed: out of memory"}},
    {LOG_CAUSE_GPU_OOM, "paddle", false, {"out of memory error on gpu"}},
    {LOG_CAUSE_GPU_OOM, "nccl", false, {"nccl", "cuda failure", "out of memory"}},

    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cublas_status_alloc_failed"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cudnn_status_alloc_failed"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cusolver_status_alloc_failed"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cusparse_status_alloc_failed"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cufft_alloc_failed"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cudaerrormemoryallocation"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cuda_error_out_of_memory"}},
    {LOG_CAUSE_NONE, "cuda", false, {"if you", "out of memory"}}, /* advice */
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cuda", "error", "out of memory"}},
    {LOG_CAUSE_GPU_OOM, "pytorch", false, {"thcudacheck", "out of memory"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cudasuccess", "out of memory"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"cudamalloc", "out of memory"}},
    {LOG_CAUSE_GPU_OOM, "cuda", false, {"gpuassert", "out of memory"}},
    /* No framework reports a shortage with these: what they say about memory is the program's
     * text. */
    {LOG_CAUSE_PROGRAM, "python", true, {"valueerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"typeerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"keyerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"indexerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"attributeerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"assertionerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"importerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {"notimplementederror: "}},
    {LOG_CAUSE_GPU_OOM, "cuda", true, {"cuda", "out of memory"}},
    {LOG_CAUSE_GPU_OOM, "cuda", true, {"gpu", "out of memory"}},

    {LOG_CAUSE_HOST_OOM, "pytorch", false, {"defaultcpuallocator", "memory"}},
    {LOG_CAUSE_HOST_OOM, "numpy", true, {"numpy", "_arraymemoryerror"}},
    {LOG_CAUSE_HOST_OOM, "python", true, {"memoryerror"}},
    {LOG_CAUSE_HOST_OOM, "python", true, {"oserror: [errno 12]"}},
    {LOG_CAUSE_HOST_OOM, "", false, {"terminate called", "std::bad_alloc"}},
    {LOG_CAUSE_HOST_OOM, "", true, {"std::bad_alloc"}},

    {LOG_CAUSE_KILLED, "pytorch", false, {"dataloader worker", "is killed by signal: killed"}},
    {LOG_CAUSE_KILLED, "pytorch", false, {"signal 9 (sigkill) received by pid"}},
    {LOG_CAUSE_KILLED, "pytorch", true, {"processexitedexception", "sigkill"}},
    {LOG_CAUSE_KILLED, "", false, {"line ", ": ", " killed  "}},

    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"childfailederror"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"processraisedexception"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"processexitedexception"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"distbackenderror"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"distnetworkerror"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"diststoreerror"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"nccl communicator was aborted"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"nccl error", "remote"}},
    {LOG_CAUSE_CONSEQUENCE, "pytorch", true, {"dataloader worker", "exited unexpectedly"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"connection closed by peer"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"connection reset by peer"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"connectionreseterror"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"connectionrefusederror"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"brokenpipeerror"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"brokenprocesspool"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"eoferror"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"calledprocesserror"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"keyboardinterrupt"}},
    {LOG_CAUSE_CONSEQUENCE, "", true, {"systemexit"}},
    {LOG_CAUSE_CONSEQUENCE, "ray", true, {"raytaskerror"}},

    {LOG_CAUSE_LIBRARY, "cuda", true, {"cublas_status_not_initialized"}},
    {LOG_CAUSE_LIBRARY, "cuda", true, {"cudnn_status_not_initialized"}},
    {LOG_CAUSE_LIBRARY, "cuda", true, {"cudnn_status_internal_error"}},
    {LOG_CAUSE_LIBRARY, "tensorflow", true, {"blas", "launch failed"}},
    {LOG_CAUSE_LIBRARY, "tensorflow", true, {"failed to get convolution algorithm"}},
    {LOG_CAUSE_LIBRARY, "tensorflow", true, {"dnn library is not found"}},
    {LOG_CAUSE_LIBRARY, "tensorflow", true, {"dnn library initialization failed"}},

    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"an illegal memory access was encountered"}},
    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"an illegal instruction was encountered"}},
    {LOG_CAUSE_PROGRAM, "cuda", false, {"device-side assert triggered"}}, /* ends no other client of MPS */
    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"unspecified launch failure"}},
    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"cuda", "misaligned address"}},
    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"cuda", "invalid program counter"}},
    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"cuda_error_illegal_address"}},
    {LOG_CAUSE_GPU_FAULT, "cuda", false, {"cuda_error_launch_failed"}},
    {LOG_CAUSE_MPS, "cuda", false, {"remote procedural call between the mps server and the mps client failed"}},
    {LOG_CAUSE_MPS, "cuda", false, {"mps client failed to connect to the mps control daemon"}},
    {LOG_CAUSE_MPS, "cuda", false, {"mps server is not ready to accept new mps client requests"}},
    {LOG_CAUSE_MPS, "cuda", false, {"mps client has been terminated by the server"}},
    {LOG_CAUSE_MPS, "cuda", false, {"cuda_error_mps_"}},
    /* A client that starts while its server drops another that was killed. */
    {LOG_CAUSE_MPS, "cuda", false, {"cuda-capable device(s) is/are busy or unavailable"}},
    {LOG_CAUSE_PROGRAM, "python", false, {"syntaxerror: "}},
    {LOG_CAUSE_PROGRAM, "python", false, {"indentationerror: "}},
    {LOG_CAUSE_PROGRAM, "python", true, {""}},
};
/* clang-format on */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "memoryerror" is in "MemoryError" and not in "OutOfMemoryError". */
static bool has_part(const char *line, const char *part)
{
    for (const char *at = line; (at = strstr(at, part)); at++)
        if (at == line || !is_word(at[-1]) || !is_word(part[0]))
            return true;
    return false;
}

static bool matches_line(const struct pattern *pattern, const char *line)
{
    for (size_t i = 0; i < ARRAY_SIZE(pattern->parts) && pattern->parts[i]; i++)
        if (!has_part(line, pattern->parts[i]))
            return false;
    return true;
}

void pattern_lower(const char *text, char *lower)
{
    do
        *lower++ = (char)tolower((unsigned char)*text);
    while (*text++);
}

const struct pattern *pattern_find(const char *line, bool thrown)
{
    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
        if ((thrown || !patterns[i].thrown_only) && matches_line(&patterns[i], line))
            return &patterns[i];
    return NULL;
}
