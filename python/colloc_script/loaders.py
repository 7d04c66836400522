# SPDX-License-Identifier: Apache-2.0
"""Data loaders: batches are made in this process, and large ones of a part of their samples.

A GPU takes batches of tens of thousands of small samples, which take a while to be read one by one.
Of a batch of more than `SAMPLES` every n-th sample is read, and stands for those up to the next, if
all that were read are alike: then the batch has its size, and its labels are real ones in their
order.
"""
import functools

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from .device import is_fake

SAMPLES = 1024  # chosen: most take a millisecond or less

NUMBERS = (type(None), bool, int, float)


class _Opaque(Exception):
    """A sample whose memory is not known from its form."""


def _form(value):
    """What decides how much memory a sample takes."""
    if isinstance(value, torch.Tensor) and is_fake(value):
        raise _Opaque  # each takes memory of the GPU
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return tuple(value.shape), value.dtype
    if hasattr(value, "size") and hasattr(value, "mode"):  # a picture
        return value.size, value.mode
    if isinstance(value, NUMBERS):
        return type(value)
    if isinstance(value, (str, bytes)):
        return len(value)
    if type(value) in (list, tuple):
        return tuple(map(_form, value))
    if type(value) is dict:
        return tuple((key, _form(one)) for key, one in value.items())
    raise _Opaque


def _are_alike(samples):
    try:
        return len({_form(sample) for sample in samples}) == 1
    except (_Opaque, TypeError):
        return False


def _copied(value):
    """The sample with new containers, which the collation may change."""
    if type(value) in (list, tuple):
        return type(value)([_copied(one) for one in value])
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    return value


def _read(fetch, fetcher, indices):
    """The samples themselves."""
    collate, fetcher.collate_fn = fetcher.collate_fn, list
    try:
        return fetch(fetcher, indices)
    finally:
        fetcher.collate_fn = collate


def _patch_fetcher():
    fetch = _MapDatasetFetcher.fetch

    @functools.wraps(fetch)
    def fetched(fetcher, indices):
        if not fetcher.auto_collation or len(indices) <= SAMPLES:
            return fetch(fetcher, indices)
        stride = -(-len(indices) // SAMPLES)
        samples = _read(fetch, fetcher, list(indices)[::stride])
        if not _are_alike(samples):
            return fetch(fetcher, indices)
        return fetcher.collate_fn([_copied(samples[i // stride]) for i in range(len(indices))])

    _MapDatasetFetcher.fetch = fetched


def patch(training):
    """Puts the hooks in place, for the whole process."""
    initialize, iterate = DataLoader.__init__, DataLoader.__iter__

    @functools.wraps(initialize)
    def initialized(loader, *args, **kwargs):
        args = list(args)
        if len(args) > 5:
            args[5] = 0
        else:
            kwargs["num_workers"] = 0
        for name in ("persistent_workers", "prefetch_factor", "timeout", "pin_memory"):
            kwargs.pop(name, None)
        for name in ("multiprocessing_context", "pin_memory_device"):
            kwargs.pop(name, None)
        initialize(loader, *args, **kwargs)

    @functools.wraps(iterate)
    def iterated(loader):
        training.loader_batch = getattr(loader, "batch_size", None)
        return iterate(loader)

    DataLoader.__init__, DataLoader.__iter__ = initialized, iterated
    _patch_fetcher()
