# SPDX-License-Identifier: Apache-2.0
"""Asks cuDNN, on a GPU of this machine, what scratch memory the convolutions of a description take.

Which kernel it picks follows from shapes, data type, layout and GPU, but by rules that nobody publishes; asked, it always gives the same
answer. Each convolution runs once forward and once for each gradient, on zeros, which takes its operands' memory for a moment.
"""
import torch

from .sources import Mistake

CACHE_MOST = 2 << 30  # bytes that may stay with the allocator between two questions


class Scratch:
    """What an operation takes from the caching allocator and has given back when it ends."""

    def __init__(self, cuda):
        self.cuda = cuda

    def _stats(self):
        """Peak, current and failures; PyTorch before 2 knows allocated bytes only, which are rounded up to 512."""
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
        """Bytes; None where the GPU had no room for what the library wanted, which then took another kernel."""
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
    """[forward] or [input's gradient, weight's gradient] of an entry of `convs`."""
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
    """What the answer depends on."""
    return repr([value for name, value in sorted(conv.items()) if name != "tick"])


def _answer(conv, batch, scratch):
    if scratch.cuda.memory_reserved() > CACHE_MOST:
        scratch.cuda.empty_cache()
    try:
        return measure(conv, batch, scratch)
    except RuntimeError:  # no memory for the operands beside what others hold, or no such kernel
        scratch.cuda.empty_cache()
        return [None, None] if conv["phase"] == "backward" else [None]


def check_gpu(cuda=torch.cuda):
    """There has to be somebody to ask."""
    if not cuda.is_available():
        raise Mistake("--kernels asks a GPU, and PyTorch finds none here")
    try:
        cuda.init()
    except RuntimeError as error:
        raise Mistake(
            f"--kernels asks a GPU, and the one here lets nobody in: {str(error).splitlines()[0]}"
        ) from None


def ask(description, cuda=torch.cuda):
    """The member `kernels` of a description: of its batch, on the first GPU."""
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
