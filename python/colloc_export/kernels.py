# SPDX-License-Identifier: Apache-2.0
"""Measures on a GPU of this machine the scratch memory of the convolutions of a description.

cuDNN chooses a kernel by shapes, data type, layout and GPU. Its rules are not published, but its
choice is always the same. Each convolution runs once forward and once for each gradient, on zeros;
for a moment this takes the memory of its operands. With cudnn.benchmark it runs twice: the first
time all its kernels are tried, in the largest workspace of them, the second time the fastest runs.
PyTorch remembers for each thread what it tried (Conv_v8.cpp), so each convolution is asked in its
own thread; a training runs forward in one thread and backward in another. The code of the
tried kernels stays in the process: that is known when all of a network were asked in one.

Answers are kept (kept_kernels.py): nothing is asked twice, and without a GPU they serve for its
kind.
"""
import concurrent.futures
import contextlib
import hashlib
import os
import subprocess

import torch

from .kept_kernels import Kept, driver_version
from .sources import Mistake

CACHE_MOST = 2 << 30  # bytes that may stay in the allocator's cache between two measurements


class Scratch:
    """Memory that an operation takes from the caching allocator and has freed when it ends."""

    def __init__(self, cuda):
        self.cuda = cuda

    def _stats(self):
        """Peak, current and failures.

        PyTorch before 2 reports only allocated bytes, which are rounded up to 512.
        """
        stats = self.cuda.memory_stats()
        bytes = "requested_bytes" if "requested_bytes.all.peak" in stats else "allocated_bytes"
        return tuple(
            stats[name]
            for name in (
                f"{bytes}.all.peak",
                f"{bytes}.all.current",
                "num_alloc_retries",
                "num_ooms",
            )
        )

    def of(self, operation):
        """Bytes of scratch memory.

        None: the GPU had too little memory for the kernel, so the library took another one.
        """
        failures = self._stats()[2:]
        self.cuda.reset_peak_memory_stats()
        result = operation()
        peak, current, *after = self._stats()
        del result
        return peak - current if tuple(after) == failures else None


def _of_batch(conv, batch):
    fixed, per_sample = conv["batch"]
    return fixed + per_sample * batch


def _tensor(shape, conv):
    tensor = torch.zeros(shape, dtype=getattr(torch, conv["dtype"]), device="cuda")
    return (
        tensor.to(memory_format=torch.channels_last)
        if conv.get("channels_last") and tensor.dim() == 4
        else tensor
    )


def measure(conv, batch, scratch):
    """Scratch of an entry of `convs`: [forward], or [gradient of the input, of the weight]."""
    n = _of_batch(conv, batch)
    input, weight = _tensor([n, *conv["input"]], conv), _tensor(conv["weight"], conv)
    rest = tuple(
        conv[name]
        for name in ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    )
    if conv["phase"] != "backward":
        return [scratch.of(lambda: torch.ops.aten.convolution(input, weight, None, *rest))]
    output = _tensor([n, *conv["output"]], conv)

    def gradient(mask):
        return scratch.of(
            lambda: torch.ops.aten.convolution_backward(
                output, input, weight, [conv["output"][0]], *rest, mask
            )
        )

    return [gradient([True, False, False]), gradient([False, True, False])]


def _question(conv, batch, tries):
    """The properties of a convolution that decide its scratch memory: the key of an answer."""
    shape = [value for name, value in sorted(conv.items()) if name not in ("tick", "batch")]
    return repr([_of_batch(conv, batch), tries and "tried in its own thread", *shape])


def _question_of_code(questions):
    """The key of what a process holds that was asked all these."""
    return f"code {hashlib.sha256(repr(sorted(questions)).encode()).hexdigest()}"


def _library_passes(conv, batch):
    """What PyTorch asks cuDNN, for each pass, with the thread of a training that asks it. A
    transposed convolution is the gradient of another one."""
    passes = ("input", "weight") if conv["phase"] == "backward" else ("forward",)
    outer, inner = conv["input"], conv["output"]
    if conv["transposed"]:
        turned = {"forward": "input", "input": "forward", "weight": "weight"}
        passes, outer, inner = tuple(turned[one] for one in passes), inner, outer
    rest = [conv[name] for name in ("weight", "stride", "padding", "dilation", "groups", "dtype")]
    rest += [bool(conv.get("channels_last")), _of_batch(conv, batch), outer, inner]
    return [repr([conv["phase"] == "backward", one, *rest]) for one in passes]


def _answer_once(conv, batch, scratch):
    if scratch.cuda.memory_reserved() > CACHE_MOST:
        scratch.cuda.empty_cache()
    try:
        return measure(conv, batch, scratch)
    except RuntimeError:  # too little memory is left for the operands, or there is no such kernel
        scratch.cuda.empty_cache()
        return [None, None] if conv["phase"] == "backward" else [None]


def check_gpu(cuda=torch.cuda):
    """Raises Mistake when no GPU of this machine can be used."""
    if not cuda.is_available():
        raise Mistake("--kernels measures on a GPU, and PyTorch finds none here")
    try:
        cuda.init()
    except RuntimeError as error:
        raise Mistake(
            "--kernels measures on a GPU, and this one cannot be used: "
            f"{str(error).splitlines()[0]}"
        ) from None


def _answer(conv, batch, scratch, tries):
    """[scratch], or [scratch, tried] where kernels are tried."""
    if not tries:
        return [_answer_once(conv, batch, scratch)]
    with concurrent.futures.ThreadPoolExecutor(1) as thread:  # in which nothing was tried yet
        tried, fastest = (
            thread.submit(_answer_once, conv, batch, scratch).result() for _ in range(2)
        )
    return [fastest, tried]


def _tries(description):
    return bool(description.get("flags", {}).get("cudnn_benchmark"))


def _process_bytes():
    """What nvidia-smi says of this process, on all GPUs; None: nothing."""
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        text = subprocess.run(query, capture_output=True, check=True, text=True, timeout=10).stdout
        rows = [line.split(",") for line in text.splitlines()]
        own = [int(row[1]) for row in rows if len(row) == 2 and int(row[0]) == os.getpid()]
        return sum(own) << 20 if own else None
    return None


def _code_bytes(cuda):
    """What this process has on the GPU beside the allocator's segments; None: not known."""
    cuda.synchronize()  # else there may be no context yet
    process = _process_bytes()
    return None if process is None else max(0, process - cuda.memory_reserved())


def _measure_new(description, kept, cuda):
    """Asks the GPU for what is not kept. Where kernels are tried, their code is known only of a
    process that was asked all."""
    batch, tries = description["batch"], _tries(description)
    convs = {_question(conv, batch, tries): conv for conv in description["convs"]}
    code = _question_of_code(convs)
    asks_all = tries and kept.get(code) is None and _code_bytes(cuda) is not None
    before, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, tries
    try:
        for question, conv in convs.items():
            if asks_all or kept.get(question) is None:
                kept.put(question, _answer(conv, batch, Scratch(cuda), tries))
        if asks_all:
            kept.put(code, [[_code_bytes(cuda)]])
    finally:
        torch.backends.cudnn.benchmark = before
        kept.save()


def _tried_here(conv, batch, tried, seen):
    """Of each pass what its tries take; None where the thread tried the same before."""
    passes = _library_passes(conv, batch)
    here = [bytes if one not in seen else None for one, bytes in zip(passes, tried)]
    seen.update(passes)
    return here if any(bytes is not None for bytes in here) else []


def _member(description, kept, gpu):
    """The member `kernels`: of `tried` each pass of a convolution has it where it first runs."""
    batch, tries, seen = description["batch"], _tries(description), set()
    answers = [kept.get(_question(conv, batch, tries)) for conv in description["convs"]]
    member = {
        "batch": batch,
        "gpu": gpu,
        "cudnn": torch.backends.cudnn.version(),
        "scratch": [answer[0] for answer in answers],
    }
    if not tries:
        return member
    member["tried"] = [
        _tried_here(conv, batch, answer[1], seen)
        for conv, answer in zip(description["convs"], answers)
    ]
    questions = {_question(conv, batch, tries) for conv in description["convs"]}
    code = kept.get(_question_of_code(questions))
    return {**member, "process": code[0][0]} if code and code[0][0] is not None else member


def ask(description, cuda=torch.cuda):
    """The member `kernels` of a description, at its batch: what is kept, else by the first GPU."""
    gpu = cuda.get_device_name()
    kept = Kept(gpu, torch.backends.cudnn.version(), driver_version())
    _measure_new(description, kept, cuda)
    return _member(description, kept, gpu)


def recall(description, gpu):
    """The same without a GPU, for one of this name. Raises Mistake where an answer is missing."""
    named = (gpu, f"NVIDIA {gpu}")
    found = [Kept(name, torch.backends.cudnn.version()) for name in named]
    kept = next((one for one in found if one.answers), found[0])
    batch, tries = description["batch"], _tries(description)
    questions = {_question(conv, batch, tries) for conv in description["convs"]}
    missing = sum(kept.get(question) is None for question in questions)
    if missing:
        raise Mistake(
            f"of {missing} of {len(questions)} convolutions no answer of a {gpu} is kept: "
            "run the same once on a machine with that GPU"
        )
    return _member(description, kept, gpu)
