/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last messages of a training whose GPU fails, in the words of its framework: a resource
 * manager has to find them in a log and to tell lack of memory from a fault. Each framework words
 * it differently (src/exec/sentences.def has those that must match). PyTorch also names the
 * other processes on the GPU and the memory that each holds; these are the emulator's figures.
 */
#include "emulator/crash_message.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "emulator/memory.h"

int framework_find(const char *name)
{
    static const char *const names[] = {"pytorch", "tensorflow", "jax", "cuda"};

    for (int i = 0; i < (int)ARRAY_SIZE(names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* Two decimals and a binary unit, as c10's format_size writes. */
static const char *as_torch(int64_t bytes, char *buffer, size_t size)
{
    if (bytes < GIB)
        snprintf(buffer, size, "%.2f MiB", (double)bytes / MIB);
    else
        snprintf(buffer, size, "%.2f GiB", (double)bytes / GIB);
    return buffer;
}

static void print_traceback(FILE *out)
{
    fputs("Traceback (most recent call last):\n"
          "  File \"train.py\", line 118, in <module>\n"
          "    main()\n"
          "  File \"train.py\", line 87, in main\n"
          "    loss = step(model, batch)\n",
        out);
}

/* PyTorch names each process on the GPU, by which a manager can see that the task was not alone. */
static void torch_neighbours(
    FILE *out, const struct world *world, const struct process *p, struct seat seat)
{
    char text[32];

    for (int i = 0; i < world->process_end; i++) {
        const struct process *other = &world->processes[i];
        if (other != p && other->present && memory_of(other, seat) > 0)
            fprintf(out, "Process %d has %s memory in use. ", (int)other->pid,
                as_torch(memory_of(other, seat), text, sizeof(text)));
    }
}

/* The figures fit each other as PyTorch's do: free is the rest of the GPU, or of the process's
 * limit where that is less; all but the context is PyTorch's, 97 % of it allocated. */
static void torch_oom(
    FILE *out, const struct world *world, const struct process *p, int ordinal, int64_t bytes)
{
    struct seat seat = p->seats[ordinal];
    char want[32], all[32], left[32], own[32], allocated[32], idle[32];
    int64_t held = memory_of(p, seat);
    int64_t free_bytes = memory_free(world, seat);
    if (p->limit_bytes && p->limit_bytes - held < free_bytes)
        free_bytes = p->limit_bytes - held;
    int64_t context = p->segment_count && held ? p->segments[0].size : 0;

    print_traceback(out);
    fprintf(out,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of "
        "which %s is free. ",
        as_torch(bytes, want, sizeof(want)), ordinal,
        as_torch(memory_capacity(world, seat), all, sizeof(all)),
        as_torch(free_bytes, left, sizeof(left)));
    torch_neighbours(out, world, p, seat);
    fprintf(out,
        "Including non-PyTorch memory, this process has %s memory in use. Of the allocated memory %s is allocated by "
        "PyTorch, and %s is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
        "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
        "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n",
        as_torch(held, own, sizeof(own)),
        as_torch((held - context) / 100 * 97, allocated, sizeof(allocated)),
        as_torch((held - context) / 100 * 3, idle, sizeof(idle)));
}

static void tensorflow_oom(FILE *out, int ordinal, int64_t bytes)
{
    fprintf(out,
        "W tensorflow/core/common_runtime/bfc_allocator.cc:497] Allocator (GPU_%d_bfc) ran out of memory trying to "
        "allocate %.2fGiB (rounded to %" PRId64
        ")requested by op gradient_tape/model/conv2d/Conv2DBackpropInput\n",
        ordinal, (double)bytes / GIB, bytes);
    print_traceback(out);
    fprintf(out,
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\n"
        "OOM when allocating tensor with shape[%" PRId64 "] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:%d by allocator GPU_%d_bfc\n",
        bytes / 4, ordinal, ordinal);
}

/* Each wording must match a row of src/exec/sentences.def. */
void crash_message_oom(FILE *out, enum framework framework, const struct world *world,
    const struct process *p, int ordinal, int64_t bytes)
{
    switch (framework) {
    case FRAMEWORK_PYTORCH:
        torch_oom(out, world, p, ordinal, bytes);
        break;
    case FRAMEWORK_TENSORFLOW:
        tensorflow_oom(out, ordinal, bytes);
        break;
    case FRAMEWORK_JAX:
        print_traceback(out);
        fprintf(out,
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate %" PRId64
            " bytes.\n",
            bytes);
        break;
    case FRAMEWORK_CUDA:
        fputs(
            "CUDA error at train.cu:57 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&activations, bytes)\": out of "
            "memory\n",
            out);
        break;
    }
}

/* A fault is not out of memory: the task fails and is not run again, unless it was another MPS
 * client's. */
void crash_message_cuda(FILE *out, enum framework framework, const char *error)
{
    switch (framework) {
    case FRAMEWORK_PYTORCH:
        print_traceback(out);
        fprintf(out,
            "RuntimeError: CUDA error: %s\nCUDA kernel errors might be asynchronously reported at some other API "
            "call, so the stacktrace below might be incorrect.\nFor debugging consider passing "
            "CUDA_LAUNCH_BLOCKING=1\n",
            error);
        break;
    case FRAMEWORK_TENSORFLOW:
        print_traceback(out);
        fprintf(out,
            "tensorflow.python.framework.errors_impl.InternalError: Graph execution error:\n\nCUDA error: %s\n",
            error);
        break;
    case FRAMEWORK_JAX:
        print_traceback(out);
        fprintf(out, "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA error: %s\n", error);
        break;
    case FRAMEWORK_CUDA:
        fprintf(out, "CUDA error at train.cu:91 \"cudaDeviceSynchronize()\": %s\n", error);
        break;
    }
}
