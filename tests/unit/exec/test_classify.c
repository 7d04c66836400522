/* SPDX-License-Identifier: Apache-2.0 */
/* Logs as frameworks and programs write them, and what has to be read from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "exec/failure_classify.h"
#include "exec/log_line.h"

#define FRAMES                                                                                     \
    "Traceback (most recent call last):\n  File \"train.py\", line 80, in <module>\n    main()\n"
#define ALSO   "\nDuring handling of the above exception, another exception occurred:\n\n"
#define DUE_TO "\nThe above exception was the direct cause of the following exception:\n\n"
#define TORCH_OOM                                                                                  \
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a "    \
    "total capacity of 39.39 GiB of which 1.13 GiB is free."
#define BFC                                                                                        \
    "W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying "

#define SHORTAGE                                                                                   \
    "E tensorflow/stream_executor/cuda/cuda_driver.cc:828] failed to allocate 32.00M (33554432 "   \
    "bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"

struct sample {
    const char *name;
    struct attempt_end ending;
    const char *log; /* of stderr */
    const char *class;
    const char *framework; /* NULL: any */
    const char *evidence;  /* is in the evidence */
};

#define EXIT(code)                                                                                 \
    {                                                                                              \
        .exit_code = (code)                                                                        \
    }
#define SIGNALED(no)                                                                               \
    {                                                                                              \
        .exit_code = -1, .signal = (no)                                                            \
    }

static const struct sample samples[] = {
    {"success with an old OOM", EXIT(0), FRAMES TORCH_OOM "\nretrying\ndone\n", "none", "", ""},

    {"PyTorch", EXIT(1), "epoch 1\n" FRAMES TORCH_OOM "\n", "gpu-oom", "pytorch",
        "OutOfMemoryError: CUDA out of memory"},
    {"PyTorch, new name", EXIT(1),
        FRAMES "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n",
        "gpu-oom", "pytorch", "torch.OutOfMemoryError"},
    {"PyTorch 1.x", EXIT(1),
        FRAMES
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 39.59 GiB total)",
        "gpu-oom", "pytorch", "RuntimeError: CUDA out of memory"},
    {"PyTorch, CUDA call", EXIT(1),
        FRAMES
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronous\n",
        "gpu-oom", "cuda", "CUDA error: out of memory"},
    {"cuBLAS handle", EXIT(1),
        FRAMES
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n",
        "gpu-oom", "cuda", "CUBLAS_STATUS_ALLOC_FAILED"},
    {"cuDNN", EXIT(1), FRAMES "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED\n", "gpu-oom",
        "cuda", "CUDNN_STATUS_ALLOC"},
    {"ROCm", EXIT(1), FRAMES "RuntimeError: HIP out of memory. Tried to allocate 1.00 GiB\n",
        "gpu-oom", "pytorch", "HIP out"},
    {"C++ PyTorch", SIGNALED(SIGABRT),
        "terminate called after throwing an instance of 'c10::OutOfMemoryError'\n  what():  CUDA out of memory. Tried to "
        "allocate 512.00 MiB.\n",
        "gpu-oom", "pytorch", "what(): "},

    {"TensorFlow", EXIT(1),
        BFC
        "to allocate 2.20GiB (rounded to 2362232064)requested by op Conv2D\n" FRAMES
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\nDetected at node "
        "'conv'\n"
        "OOM when allocating tensor with shape[128,256,56,56] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n",
        "gpu-oom", "tensorflow", "OOM when allocating tensor"},
    {"TensorFlow eager copy", EXIT(1),
        FRAMES
        "tensorflow.python.framework.errors_impl.InternalError: Failed copying input tensor from /job:localhost/"
        "replica:0/task:0/device:CPU:0 to /job:localhost/replica:0/task:0/device:GPU:0 in order to run _EagerConst: Dst "
        "tensor is not initialized.\n",
        "gpu-oom", "tensorflow", "Dst tensor is not initialized"},
    {"TensorFlow warning that is none", EXIT(1),
        BFC
        "to allocate 2.57GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean "
        "that there could be performance gains if more memory were available.\n" FRAMES
        "KeyError: 'label'\n",
        "program", "python", "KeyError: 'label'"},
    {"TensorFlow warning, silent end", EXIT(2),
        BFC
        "to allocate 2.57GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean "
        "that there could be performance gains if more memory were available.\nstopped\n",
        "program", "", "stopped"},
    {"TensorFlow on the CPU", EXIT(1),
        FRAMES
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
        "shape[9,9] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu [Op:Mul]\n",
        "host-oom", "tensorflow", "allocator cpu"},

    {"JAX", EXIT(1),
        FRAMES
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 "
        "bytes." DUE_TO FRAMES
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 4294967296 bytes.\n",
        "gpu-oom", "jax", "RESOURCE_EXHAUSTED: Out of memory"},
    {"JAX, short", EXIT(1),
        FRAMES
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB\n",
        "gpu-oom", "jax", "Failed to allocate request"},
    {"gRPC is not memory", EXIT(1),
        FRAMES
        "grpc._channel._InactiveRpcError: RESOURCE_EXHAUSTED: Received message larger than max\n",
        "program", "python", "larger than max"},

    {"bare CUDA", EXIT(1),
        "CUDA error at main.cu:42 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&d, n)\"\n",
        "gpu-oom", "cuda", "cudaErrorMemoryAllocation"},
    {"bare CUDA, macro", EXIT(2), "GPUassert: out of memory kernel.cu 17\n", "gpu-oom", "cuda",
        "GPUassert"},
    {"bare CUDA, driver", EXIT(1), "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY\n", "gpu-oom",
        "cuda", "CUDA_ERROR_OUT_OF"},
    {"bare CUDA, lower case", EXIT(1), "Cuda error in file 'x.cu' in line 12 : out of memory.\n",
        "gpu-oom", "cuda", "x.cu"},
    {"CuPy", EXIT(1),
        FRAMES "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes\n",
        "gpu-oom", "cupy", "cupy.cuda.memory"},
    {"RMM", EXIT(1),
        FRAMES
        "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: cuda_memory_resource.hpp:70\n",
        "gpu-oom", "rmm", "MemoryError"},
    {"MXNet", EXIT(1),
        FRAMES
        "mxnet.base.MXNetError: [10:00:00] pooled_storage_manager.h:161: cudaMalloc retry failed: out of memory\n",
        "gpu-oom", "mxnet", "cudaMalloc retry failed"},
    {"NCCL", EXIT(1), "n1:70:90 [0] init.cc:1 NCCL WARN Cuda failure 'out of memory'\n", "gpu-oom",
        "nccl", "Cuda failure"},

    {"caught, then another error", EXIT(1),
        FRAMES TORCH_OOM "\nhalving the batch to 32\nepoch 1 loss 2.3\n" FRAMES
                         "ValueError: Expected input batch_size (32)\n",
        "program", "python", "ValueError: Expected"},
    {"warned, then another error", EXIT(1),
        "WARNING: CUDA out of memory. Tried to allocate 1 GiB; skipping batch\n" FRAMES
        "ZeroDivisionError: division by zero\n",
        "program", "python", "ZeroDivisionError"},
    {"an error that talks of OOM", EXIT(1),
        FRAMES "ValueError: CUDA out of memory is not what happened\n", "program", "python",
        "ValueError: CUDA out of memory"},
    {"another error, then OOM", EXIT(1),
        FRAMES "ValueError: ignored\ngoing on\n" FRAMES TORCH_OOM "\n", "gpu-oom", "pytorch",
        "OutOf"},
    {"raised again under another name", EXIT(1),
        FRAMES TORCH_OOM "\n" DUE_TO FRAMES "RuntimeError: training step failed\n", "gpu-oom",
        "pytorch", "CUDA out of memory"},
    {"failed while cleaning up", EXIT(1),
        FRAMES TORCH_OOM "\n" ALSO FRAMES "AttributeError: 'NoneType'\n", "gpu-oom", "pytorch",
        "CUDA out of memory"},
    {"named in the source a traceback shows", EXIT(1),
        "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    except torch.cuda.OutOfMemoryError: raise "
        "RuntimeError('CUDA out of memory. Tried to allocate')\nTypeError: exceptions must derive from BaseException\n",
        "program", "python", "TypeError"},
    {"torchrun", EXIT(1),
        "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 9, in <module>\n[rank1]:     "
        "loss.backward()\n"
        "[rank1]: " TORCH_OOM
        "\nW0101 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 71 closing signal "
        "SIGTERM\n" FRAMES
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n===\ntrain.py FAILED\n"
        "Root Cause (first observed failure):\n  exitcode  : 1 (pid: 72)\n",
        "gpu-oom", "pytorch", "torch.cuda.OutOfMemoryError"},
    {"a peer notices later", EXIT(1),
        "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t.py\", line 9\n[rank0]: " TORCH_OOM
        "\n"
        "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 9\n[rank1]: "
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, remote process exited\n",
        "gpu-oom", "pytorch", "CUDA out of memory"},
    {"spawned", EXIT(1),
        FRAMES
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following "
        "error:\n" FRAMES TORCH_OOM "\n",
        "gpu-oom", "pytorch", "CUDA out of memory"},
    {"accelerate", EXIT(1),
        FRAMES TORCH_OOM
        "\n" FRAMES
        "subprocess.CalledProcessError: Command '['python', 't.py']' returned non-zero exit status 1.\n",
        "gpu-oom", "pytorch", "CUDA out of memory"},
    {"launcher alone", EXIT(1),
        FRAMES "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.\nbye\n",
        "program", "", "CalledProcessError"},
    {"ray's own memory monitor", EXIT(1),
        FRAMES
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
        "host-oom", "ray", "node running low"},

    {"innocent words", EXIT(1), "BOOM! the ROOM is full of bloom filters, memory: 3 GiB\n",
        "program", "", "BOOM!"},
    {"advice", EXIT(1),
        "Note: if you see a CUDA error: out of memory, lower --batch\nusage: train.py [-h]\n",
        "program", "", "usage: train.py"},
    {"Triton's shared memory", EXIT(1),
        FRAMES
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 1\n",
        "program", "triton", "shared memory"},
    {"illegal access", EXIT(1),
        FRAMES "RuntimeError: CUDA error: an illegal memory access was encountered\n", "gpu-fault",
        "cuda", "illegal memory access"},
    {"device assert", SIGNALED(SIGABRT),
        "CUDA error: device-side assert triggered\nterminate called\n", "program", "cuda",
        "device-side"},
    {"MPS server killed", EXIT(1),
        FRAMES
        "torch.AcceleratorError: CUDA error: the remote procedural call between the MPS server and the MPS client "
        "failed\nSearch for `cudaErrorMpsRpcFailure' in https://docs.nvidia.com/cuda/ for more information.\n",
        "mps", "cuda", "remote procedural call"},
    {"MPS client terminated", EXIT(1),
        FRAMES
        "torch.AcceleratorError: CUDA error: the MPS client has been terminated by the server\n",
        "mps", "cuda", "terminated by the server"},
    {"MPS recovers from a fault", EXIT(1),
        FRAMES
        "RuntimeError: CUDA error: the MPS server is not ready to accept new MPS client requests\n",
        "mps", "cuda", "not ready"},
    {"MPS drops a client that was killed", EXIT(1),
        FRAMES
        "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\n"
        "Search for `cudaErrorDevicesUnavailable' in https://docs.nvidia.com/cuda/ for more information.\n",
        "mps", "cuda", "busy or unavailable"},
    {"syntax error", EXIT(1),
        "  File \"t.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n",
        "program", "python", "SyntaxError: invalid syntax"},
    {"own exception", EXIT(1), FRAMES "mylab.data.BadShard: shard 7 is empty\nAborting.\n",
        "program", "python", "BadShard"},

    {"numpy", EXIT(1),
        FRAMES
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array\n",
        "host-oom", "numpy", "74.5 GiB"},
    {"Python", EXIT(1), FRAMES "MemoryError\n", "host-oom", "python", "MemoryError"},
    {"PyTorch on the CPU", EXIT(1),
        FRAMES
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to\n",
        "host-oom", "pytorch", "DefaultCPUAllocator"},
    {"C++", SIGNALED(SIGABRT),
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
        "host-oom", "", "bad_alloc"},
    {"killed, proven", {.exit_code = 137, .host_oom = HOST_OOM_CERTAIN},
        "run.sh: line 3:  4242 Killed                  python t.py\n", "host-oom", "",
        "4242 Killed"},
    {"killed, perhaps", {.exit_code = 137, .host_oom = HOST_OOM_PERHAPS},
        "run.sh: line 3:  4242 Killed                  python t.py\n", "host-oom", "",
        "perhaps for lack of host memory: the kernel killed a process of this machine for that "
        "reason meanwhile (oom_kill): run.sh: line 3:  4242 Killed"},
    {"killed itself, perhaps", {.exit_code = -1, .signal = SIGKILL, .host_oom = HOST_OOM_PERHAPS},
        "step 1\n", "host-oom", "", "perhaps for lack of host memory"},
    {"killed, not proven", EXIT(137), "run.sh: line 3:  4242 Killed                  python t.py\n",
        "signal", "", "signal 9"},
    {"killed itself, proven", {.exit_code = -1, .signal = SIGKILL, .host_oom = HOST_OOM_CERTAIN},
        "step 1\n", "host-oom", "", "oom_kill"},
    {"killed itself, not proven", SIGNALED(SIGKILL), "step 1\n", "signal", "", "signal 9"},
    {"data loader killed, proven", {.exit_code = 1, .host_oom = HOST_OOM_CERTAIN},
        FRAMES "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. \n",
        "host-oom", "pytorch", "DataLoader worker"},
    {"data loader killed", EXIT(1),
        FRAMES "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. \n", "signal",
        "pytorch", "DataLoader worker"},
    {"data loader killed, its parent saw only the end of a pipe",
        {.exit_code = 1, .host_oom = HOST_OOM_CERTAIN}, FRAMES "EOFError\n", "host-oom", "",
        "oom_kill"},
    {"data loader killed, its parent saw only a reset connection",
        {.exit_code = 1, .host_oom = HOST_OOM_CERTAIN},
        FRAMES "ConnectionResetError: [Errno 104] Connection reset by peer\n", "host-oom", "",
        "oom_kill"},
    {"the end of a pipe, another process of the machine was killed",
        {.exit_code = 1, .host_oom = HOST_OOM_PERHAPS}, FRAMES "EOFError\n", "program", "",
        "EOFError"},
    {"the kernel killed another process", {.exit_code = 1, .host_oom = HOST_OOM_CERTAIN},
        FRAMES "KeyError: 3\n", "program", "python", "KeyError"},
    {"segmentation fault below a shell", EXIT(139),
        "run.sh: line 2: 12 Segmentation fault (core dumped) ./a.out\n", "signal", "", "signal 11"},

    {"cancelled", {.exit_code = -1, .signal = SIGTERM, .cancelled = true}, FRAMES TORCH_OOM "\n",
        "cancelled", "", ""},
    {"time over", {.exit_code = 0, .time_over = true}, "", "time-limit", "", ""},

    {"colours and a progress bar", EXIT(1),
        " 10%|#  | 1/10\r 20%|## | 2/10\r" FRAMES
        "\033[1;31mRuntimeError\033[0m: CUDA out of \033[1mmemory\033[0m. Tried to allocate 1 GiB\n",
        "gpu-oom", "pytorch", "RuntimeError: CUDA out of memory. Tried to allocate 1 GiB"},
    {"TensorFlow takes what is left", EXIT(1), SHORTAGE "step 1\n" FRAMES "KeyError: 'label'\n",
        "program", "python", "KeyError"},
    {"TensorFlow takes what is left, silent end", EXIT(1), SHORTAGE "step 1\nstopped\n", "program",
        "", "stopped"},
    {"too little left for cuBLAS", EXIT(1),
        SHORTAGE FRAMES
        "tensorflow.python.framework.errors_impl.InternalError: Blas GEMM launch failed : a.shape=(1, 2)\n",
        "gpu-oom", "tensorflow", "CUDA_ERROR_OUT_OF_MEMORY"},
    {"cuBLAS for another reason", EXIT(1),
        FRAMES
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n",
        "program", "cuda", "CUBLAS_STATUS_NOT_INITIALIZED"},
    {"old PyTorch", EXIT(1),
        "THCudaCheck FAIL file=THCStorage.cu line=66 error=2 : out of memory\n" FRAMES
        "RuntimeError: cuda runtime error (2) : out of memory at THCStorage.cu:66\n",
        "gpu-oom", "cuda", "cuda runtime error (2)"},
    {"new PyTorch", EXIT(1), FRAMES "torch.AcceleratorError: CUDA error: out of memory\n",
        "gpu-oom", "cuda", "AcceleratorError"},
    {"old JAX", EXIT(1),
        FRAMES
        "RuntimeError: Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.\n",
        "gpu-oom", "jax", "5520758552"},
    {"JAX, a kernel's shared memory", EXIT(1),
        FRAMES
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 180224\n",
        "program", "jax", "Shared memory size"},
    {"a bar before the traceback", EXIT(1),
        FRAMES TORCH_OOM
        "\nsmaller batch\n  3%|###                                                 | 31/1000 "
        "[00:07<03:39,  4.41it/s, loss=2.31]" FRAMES "ValueError: bad shape\n",
        "program", "python", "ValueError: bad shape"},
    {"exception group", EXIT(1),
        "  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 1\n  | ExceptionGroup: two "
        "(2)\n  +-+---\n"
        "    | Traceback (most recent call last):\n    |   File \"t.py\", line 2\n    | " TORCH_OOM
        "\n    +---\n",
        "gpu-oom", "pytorch", "CUDA out of memory"},
    {"logged at length", EXIT(1),
        "2024-01-01 ERROR: step failed\n" FRAMES TORCH_OOM "\n2024-01-01 INFO: exiting\n",
        "gpu-oom", "pytorch", "CUDA out"},
    {"nothing at all", EXIT(1), "", "program", "", ""},
};

static struct failure classify_text(const struct attempt_end *ending, struct span text)
{
    struct logscan out = {0}, err = {0};
    struct failure failure;
    logscan_feed(&err, text);
    logscan_finish(&err);
    failure_classify(ending, &out, &err, &failure);
    return failure;
}

static void test_samples(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        const struct sample *sample = &samples[i];
        struct failure failure = classify_text(&sample->ending, span_of(sample->log));
        bool right = strcmp(failure_name(failure.class), sample->class) == 0 &&
                     (!sample->framework || strcmp(failure.framework, sample->framework) == 0) &&
                     strstr(failure.evidence, sample->evidence);
        if (!right)
            fail_msg("%s: %s (%s) \"%s\"", sample->name, failure_name(failure.class),
                failure.framework, failure.evidence);
    }
}

/* In whatever portions a log arrives, the answer is the same. */
static void test_portions(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        struct logscan scan = {0}, out = {0};
        for (const char *at = samples[i].log; *at; at++)
            logscan_feed(&scan, (struct span){at, 1});
        logscan_finish(&scan);
        struct failure failure;
        failure_classify(&samples[i].ending, &out, &scan, &failure);
        assert_string_equal(failure_name(failure.class), samples[i].class);
    }
}

static void test_stdout_counts_too(void **state)
{
    struct logscan out = {0}, err = {0};
    struct failure failure;
    struct attempt_end ending = EXIT(1);
    logscan_feed(&out, span_of("CUDA error: out of memory\n"));
    logscan_feed(&err, span_of("make: *** [run] Error 1\n"));
    failure_classify(&ending, &out, &err, &failure);
    assert_string_equal(failure_name(failure.class), "gpu-oom");
    logscan_feed(&err, span_of(FRAMES "ValueError: no\n"));
    failure_classify(&ending, &out, &err, &failure);
    assert_string_equal(failure.evidence, "ValueError: no");
}

static void test_huge_line(void **state)
{
    struct logscan scan = {0}, out = {0};
    struct attempt_end ending = EXIT(1);
    struct failure failure;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 5000 + i * 777; k++)
            logscan_feed(&scan, (struct span){"x\0", 2});
        logscan_feed(&scan, span_of(" RuntimeError: CUDA out of memory. Tried to allocate 1 GiB "));
    }
    failure_classify(&ending, &out, &scan, &failure);
    assert_string_equal(failure_name(failure.class), "gpu-oom");
    assert_non_null(strstr(failure.evidence, "CUDA out of memory. Tried"));
}

static void test_evidence_is_harmless(void **state)
{
    static const char line[] =
        "a\033]0;title\a\033[31mb\033[0m\tc\x01\x7f\xff\xc2\x9b\xe2\x80\xae \xc3\xa9 \xed\xa0\x80\0z";
    char evidence[EVIDENCE_MAX], longer[1000];
    log_line_clean((struct span){line, sizeof line - 1}, evidence);
    assert_string_equal(evidence, "ab c???????? \xc3\xa9 ???z");
    memset(longer, 'x', sizeof longer);
    for (size_t i = 1; i + 1 < sizeof longer; i += 2)
        memcpy(longer + i, "\xc3\xa9", 2);
    log_line_clean((struct span){longer, sizeof longer}, evidence);
    assert_int_equal(strlen(evidence), EVIDENCE_MAX - 1);
    assert_null(strchr(evidence, '?'));
}

static void test_evidence_is_cut_behind_a_word(void **state)
{
    char evidence[EVIDENCE_MAX], longer[1000];
    for (size_t i = 0; i < sizeof longer; i++)
        longer[i] = "memory "[i % 7];
    log_line_clean((struct span){longer, sizeof longer}, evidence);
    assert_true(strlen(evidence) < EVIDENCE_MAX);
    assert_string_equal(evidence + strlen(evidence) - 10, "memory ...");
    log_line_clean((struct span){longer, 300}, evidence);
    assert_null(strstr(evidence, "..."));
}

static FILE *new_log(void)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    setbuf(file, NULL);
    return file;
}

static void test_reads_only_what_is_new(void **state)
{
    FILE *log = new_log();
    struct logscan scan = {0};
    fputs("one\nRuntimeError: CUDA out of mem", log);
    assert_int_equal(logscan_update(&scan, fileno(log)), 0);
    assert_int_equal(scan.offset, 33);
    assert_int_equal(scan.cause.kind, LOG_CAUSE_NONE);
    fputs("ory. Tried to allocate 1 GiB\n", log);
    assert_int_equal(logscan_update(&scan, fileno(log)), 0);
    assert_int_equal(scan.cause.kind, LOG_CAUSE_GPU_OOM);

    struct logscan before = scan; /* not read again: a changed byte that was seen goes unnoticed */
    assert_int_equal(pwrite(fileno(log), "X", 1, 0), 1);
    logscan_update(&scan, fileno(log));
    assert_memory_equal(&before, &scan, sizeof scan);

    assert_int_equal(ftruncate(fileno(log), 4), 0); /* begun anew */
    logscan_update(&scan, fileno(log));
    assert_int_equal(scan.offset, 4);
    assert_int_equal(scan.cause.kind, LOG_CAUSE_NONE);
    fclose(log);
}

static void test_only_the_end_counts(void **state)
{
    FILE *log = new_log();
    struct logscan scan = {0};
    fputs(FRAMES TORCH_OOM "\nlived through it\n", log);
    assert_int_equal(logscan_update(&scan, fileno(log)), 0);
    assert_int_equal(scan.cause.kind, LOG_CAUSE_GPU_OOM);
    for (int i = 0; i < 40000; i++)
        fprintf(log, "step %d\n", i);
    assert_int_equal(logscan_update(&scan, fileno(log)), 0);
    assert_int_equal(scan.cause.kind, LOG_CAUSE_NONE);

    assert_int_equal(ftruncate(fileno(log), (off_t)4 << 30), 0); /* 4 GiB of NULs, then the end */
    fseek(log, 0, SEEK_END);
    fputs("\n" FRAMES TORCH_OOM "\n", log);
    assert_int_equal(logscan_update(&scan, fileno(log)), 0);
    assert_int_equal(scan.cause.kind, LOG_CAUSE_GPU_OOM);
    fclose(log);
}

static void test_names(void **state)
{
    enum failure_class class;
    for (int i = FAILURE_NONE; i < FAILURE_CLASSES; i++) {
        assert_true(failure_parse(failure_name((enum failure_class)i), &class));
        assert_int_equal(class, i);
    }
    assert_false(failure_parse("oom", &class));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_portions),
        cmocka_unit_test(test_stdout_counts_too),
        cmocka_unit_test(test_huge_line),
        cmocka_unit_test(test_evidence_is_harmless),
        cmocka_unit_test(test_evidence_is_cut_behind_a_word),
        cmocka_unit_test(test_reads_only_what_is_new),
        cmocka_unit_test(test_only_the_end_counts),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
