# SPDX-License-Identifier: Apache-2.0
"""Measures on a GPU of this machine the scratch memory of the convolutions of a description.

cuDNN chooses a kernel by shapes, data type, layout and GPU. Its rules are not published, but its
choice is always the same. Each convolution runs once forward and once for each gradient, on zeros;
for a moment this takes the memory of its operands.
"""
import torch

from .sources import Mistake

CACHE_MOST = 2 << 30  # bytes that may stay with the allocator between two measurements
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


def _question(conv):
    """The properties of a convolution that decide its scratch memory: the key of the cache."""
    return repr([value for name, value in sorted(conv.items()) if name != "tick"])


def _answer(conv, batch, scratch):
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


def ask(description, cuda=torch.cuda):
    """The member `kernels` of a description, measured at its batch on the first GPU."""
    answers, scratch, batch = {}, Scratch(cuda), description["batch"]
    for conv in description["convs"]:
        question = _question(conv)
        if question not in answers:
            answers[question] = _answer(conv, batch, scratch)
    return {
        "batch": batch,
        "gpu": cuda.get_device_name(),
        "cudnn": torch.backends.cudnn.version(),
        "scratch": [answers[_question(conv)] for conv in description["convs"]],
    }
