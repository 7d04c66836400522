/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/pattern.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* clang-format off */
static const struct pattern patterns[] = {
    /* TensorFlow tries again with less, and says so. */
    {CLUE_NOTHING, "tensorflow", false, {"ran out of memory trying to allocate", "this is not a failure"}},
    {CLUE_SHORTAGE, "tensorflow", false, {"failed to allocate", "from device: cuda_error_out_of_memory"}},
    /* Out of memory, but not the GPU's. */
    {CLUE_HOST_OOM, "ray", true, {"ray.exceptions.outofmemoryerror"}},
    {CLUE_HOST_OOM, "tensorflow", false, {"oom when allocating tensor", "device:cpu"}},
    {CLUE_HOST_OOM, "pytorch", false, {"dataloader worker", "out of shared memory"}},
    {CLUE_PROGRAM, "triton", false, {"out of resource: shared memory"}},
    {CLUE_PROGRAM, "jax", false, {"resource_exhausted", "shared memory"}},
    {CLUE_PROGRAM, "jax", false, {"resource_exhausted", "memory space"}},

    {CLUE_GPU_OOM, "pytorch", false, {"cuda out of memory. tried to allocate"}},
    {CLUE_GPU_OOM, "pytorch", false, {"hip out of memory. tried to allocate"}},
    {CLUE_GPU_OOM, "pytorch", true, {"torch.outofmemoryerror"}},
    {CLUE_GPU_OOM, "pytorch", true, {"torch.cuda.outofmemoryerror"}},
    {CLUE_GPU_OOM, "pytorch", true, {"torch.cuda.cudaoutofmemoryerror"}},
    {CLUE_GPU_OOM, "pytorch", false, {"cudacachingallocator", "nvml_success == r", "internal assert failed"}},

    {CLUE_GPU_OOM, "tensorflow", false, {"oom when allocating tensor"}},
    {CLUE_GPU_OOM, "tensorflow", false, {"ran out of memory trying to allocate"}},
    {CLUE_GPU_OOM, "tensorflow", true, {"tensorflow", "resourceexhaustederror"}},
    {CLUE_GPU_OOM, "tensorflow", false, {"dst tensor is not copied"}},

    {CLUE_GPU_OOM, "jax", false, {"resource_exhausted: out of memory"}},
    {CLUE_GPU_OOM, "jax", false, {"resource exhausted: out of memory"}},
    {CLUE_GPU_OOM, "jax", false, {"resource_exhausted", "failed to allocate"}},
    {CLUE_GPU_OOM, "jax", false, {"xlaruntimeerror: resource_exhausted", "memory"}},

    {CLUE_GPU_OOM, "cupy", false, {"cupy.cuda.memory.outofmemoryerror"}},
    {CLUE_GPU_OOM, "rmm", false, {"std::bad_alloc: out_of_memory", "cuda"}},
    {CLUE_GPU_OOM, "mxnet", false, {"cudamalloc retry failed: out of memory"}},
    {CLUE_GPU_OOM, "paddle", false, {"out of memory error on gpu"}},
    {CLUE_GPU_OOM, "nccl", false, {"nccl", "cuda failure", "out of memory"}},

    {CLUE_GPU_OOM, "cuda", false, {"cublas_status_alloc_failed"}},
    {CLUE_GPU_OOM, "cuda", false, {"cudnn_status_alloc_failed"}},
    {CLUE_GPU_OOM, "cuda", false, {"cusolver_status_alloc_failed"}},
    {CLUE_GPU_OOM, "cuda", false, {"cusparse_status_alloc_failed"}},
    {CLUE_GPU_OOM, "cuda", false, {"cufft_alloc_failed"}},
    {CLUE_GPU_OOM, "cuda", false, {"cudaerrormemoryallocation"}},
    {CLUE_GPU_OOM, "cuda", false, {"cuda_error_out_of_memory"}},
    {CLUE_NOTHING, "cuda", false, {"if you", "out of memory"}}, /* advice */
    {CLUE_GPU_OOM, "cuda", false, {"cuda", "error", "out of memory"}},
    {CLUE_GPU_OOM, "pytorch", false, {"thcudacheck", "out of memory"}},
    {CLUE_GPU_OOM, "cuda", false, {"cudasuccess", "out of memory"}},
    {CLUE_GPU_OOM, "cuda", false, {"cudamalloc", "out of memory"}},
    {CLUE_GPU_OOM, "cuda", false, {"gpuassert", "out of memory"}},
    /* What these say about memory is the program's own words: no framework reports a shortage with them. */
    {CLUE_PROGRAM, "python", true, {"valueerror: "}},
    {CLUE_PROGRAM, "python", true, {"typeerror: "}},
    {CLUE_PROGRAM, "python", true, {"keyerror: "}},
    {CLUE_PROGRAM, "python", true, {"indexerror: "}},
    {CLUE_PROGRAM, "python", true, {"attributeerror: "}},
    {CLUE_PROGRAM, "python", true, {"assertionerror: "}},
    {CLUE_PROGRAM, "python", true, {"importerror: "}},
    {CLUE_PROGRAM, "python", true, {"notimplementederror: "}},
    {CLUE_GPU_OOM, "cuda", true, {"cuda", "out of memory"}},
    {CLUE_GPU_OOM, "cuda", true, {"gpu", "out of memory"}},

    {CLUE_HOST_OOM, "pytorch", false, {"defaultcpuallocator", "memory"}},
    {CLUE_HOST_OOM, "numpy", true, {"numpy", "_arraymemoryerror"}},
    {CLUE_HOST_OOM, "python", true, {"memoryerror"}},
    {CLUE_HOST_OOM, "python", true, {"oserror: [errno 12]"}},
    {CLUE_HOST_OOM, "", false, {"terminate called", "std::bad_alloc"}},
    {CLUE_HOST_OOM, "", true, {"std::bad_alloc"}},

    {CLUE_KILLED, "pytorch", false, {"dataloader worker", "is killed by signal: killed"}},
    {CLUE_KILLED, "pytorch", false, {"signal 9 (sigkill) received by pid"}},
    {CLUE_KILLED, "pytorch", true, {"processexitedexception", "sigkill"}},
    {CLUE_KILLED, "", false, {"line ", ": ", " killed  "}},

    {CLUE_CONSEQUENCE, "pytorch", true, {"childfailederror"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"processraisedexception"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"processexitedexception"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"distbackenderror"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"distnetworkerror"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"diststoreerror"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"nccl communicator was aborted"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"nccl error", "remote"}},
    {CLUE_CONSEQUENCE, "pytorch", true, {"dataloader worker", "exited unexpectedly"}},
    {CLUE_CONSEQUENCE, "", true, {"connection closed by peer"}},
    {CLUE_CONSEQUENCE, "", true, {"connection reset by peer"}},
    {CLUE_CONSEQUENCE, "", true, {"connectionreseterror"}},
    {CLUE_CONSEQUENCE, "", true, {"connectionrefusederror"}},
    {CLUE_CONSEQUENCE, "", true, {"brokenpipeerror"}},
    {CLUE_CONSEQUENCE, "", true, {"brokenprocesspool"}},
    {CLUE_CONSEQUENCE, "", true, {"eoferror"}},
    {CLUE_CONSEQUENCE, "", true, {"calledprocesserror"}},
    {CLUE_CONSEQUENCE, "", true, {"keyboardinterrupt"}},
    {CLUE_CONSEQUENCE, "", true, {"systemexit"}},
    {CLUE_CONSEQUENCE, "ray", true, {"raytaskerror"}},

    {CLUE_LIBRARY, "cuda", true, {"cublas_status_not_initialized"}},
    {CLUE_LIBRARY, "cuda", true, {"cudnn_status_not_initialized"}},
    {CLUE_LIBRARY, "cuda", true, {"cudnn_status_internal_error"}},
    {CLUE_LIBRARY, "tensorflow", true, {"blas", "launch failed"}},
    {CLUE_LIBRARY, "tensorflow", true, {"failed to get convolution algorithm"}},
    {CLUE_LIBRARY, "tensorflow", true, {"dnn library is not found"}},
    {CLUE_LIBRARY, "tensorflow", true, {"dnn library initialization failed"}},

    {CLUE_GPU_FAULT, "cuda", false, {"an illegal memory access was encountered"}},
    {CLUE_GPU_FAULT, "cuda", false, {"an illegal instruction was encountered"}},
    {CLUE_PROGRAM, "cuda", false, {"device-side assert triggered"}}, /* stops nobody else, also under MPS */
    {CLUE_GPU_FAULT, "cuda", false, {"unspecified launch failure"}},
    {CLUE_GPU_FAULT, "cuda", false, {"cuda", "misaligned address"}},
    {CLUE_GPU_FAULT, "cuda", false, {"cuda", "invalid program counter"}},
    {CLUE_GPU_FAULT, "cuda", false, {"cuda_error_illegal_address"}},
    {CLUE_GPU_FAULT, "cuda", false, {"cuda_error_launch_failed"}},
    {CLUE_MPS, "cuda", false, {"remote procedural call between the mps server and the mps client failed"}},
    {CLUE_MPS, "cuda", false, {"mps client failed to connect to the mps control daemon"}},
    {CLUE_MPS, "cuda", false, {"mps server is not ready to accept new mps client requests"}},
    {CLUE_MPS, "cuda", false, {"mps client has been terminated by the server"}},
    {CLUE_MPS, "cuda", false, {"cuda_error_mps_"}},
    {CLUE_PROGRAM, "python", false, {"syntaxerror: "}},
    {CLUE_PROGRAM, "python", false, {"indentationerror: "}},
    {CLUE_PROGRAM, "python", true, {""}},
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

static bool matches(const struct pattern *pattern, const char *line)
{
    for (size_t i = 0; i < COUNT(pattern->parts) && pattern->parts[i]; i++)
        if (!has_part(line, pattern->parts[i]))
            return false;
    return true;
}

const struct pattern *pattern_find(const char *line, bool thrown)
{
    for (size_t i = 0; i < COUNT(patterns); i++)
        if ((thrown || !patterns[i].thrown_only) && matches(&patterns[i], line))
            return &patterns[i];
    return NULL;
}
