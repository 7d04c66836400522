# SPDX-License-Identifier: Apache-2.0
"""Data loaders: batches are made in this process, and large ones of a part of their samples.

A GPU takes batches of tens of thousands of small samples, which take a while to be read one by one.
Of a batch of more than `SAMPLES` every n-th sample is read, and stands for those up to the next, if
all that were read are alike: then the batch has its size, and its labels are real ones in their
order.

What a batch takes the processors is seen, too: the pixels of the JPEGs that Pillow decodes for it,
and how many workers the script wanted. The estimate then knows how long a GPU waits for its data,
where `colloc calibrate` has measured how fast the host decodes.
"""
import dataclasses
import functools

import torch
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher

from . import after_import
from .device import is_fake

SAMPLES = 1024  # chosen: most take a millisecond or less

NUMBERS = (type(None), bool, int, float)


class Decoded:
    """What Pillow has decoded in this process so far."""

    def __init__(self):
        self.pixels = self.others = 0  # of JPEGs; pictures of other formats

    def patch(self):
        """To be called after the import of PIL.ImageFile."""
        from PIL.ImageFile import ImageFile

        load = ImageFile.load

        @functools.wraps(load)
        def loaded(image, *args, **kwargs):
            is_read = bool(getattr(image, "tile", None))  # empty once it has been
            result = load(image, *args, **kwargs)
            if is_read and image.format == "JPEG":
                self.pixels += image.size[0] * image.size[1]
            elif is_read:
                self.others += 1
            return result

        ImageFile.load = loaded


@dataclasses.dataclass
class _Loaded:
    """What is known of a data set, and kept with it, so that no other one gets its id."""

    dataset: object
    workers: int = 0
    samples: int = 0
    pixels: int = 0  # of the JPEGs that were decoded for these
    others: int = 0  # pictures of other formats


class Loading:
    """How the batches of each data set are made.

    A library may make a loader anew from the script's own, as accelerate does, which has no workers
    any more: so of all loaders of a data set the most workers count.
    """

    def __init__(self):
        self.decoded = Decoded()
        self._sets = {}  # by the id of the data set
        self._last = None

    def note_loader(self, dataset, workers):
        loaded = self._sets.setdefault(id(dataset), _Loaded(dataset))
        loaded.workers = max(loaded.workers, workers if isinstance(workers, int) else 0)

    def note_iteration(self, dataset):
        self._last = self._sets.get(id(dataset), self._last)

    def counted(self, fetch):
        """fetch: of a fetcher of DataLoader."""

        @functools.wraps(fetch)
        def fetched(fetcher, indices):
            pixels, others = self.decoded.pixels, self.decoded.others
            batch = fetch(fetcher, indices)
            loaded = self._sets.get(id(fetcher.dataset))
            if loaded and fetcher.auto_collation:
                loaded.samples += len(indices)
                loaded.pixels += self.decoded.pixels - pixels
                loaded.others += self.decoded.others - others
            return batch

        return fetched

    def describe(self):
        """The member `loader` of the result (docs/export.md), of the loader that came last."""
        if not self._last:
            return None
        last = self._last
        if last.samples and last.pixels and not last.others:
            pixels = round(last.pixels / last.samples, 1)
            return {"workers": last.workers, "data": "jpeg", "pixels": pixels}
        is_held = isinstance(_innermost(last.dataset), TensorDataset)
        return {"workers": last.workers, "data": "tensors" if is_held else None}


def _innermost(dataset):
    """A data set without torch's own views of it."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    return dataset


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


def _patch_fetchers(loading):
    _IterableDatasetFetcher.fetch = loading.counted(_IterableDatasetFetcher.fetch)
    fetch = loading.counted(_MapDatasetFetcher.fetch)

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
    loading = training.loading = Loading()

    @functools.wraps(initialize)
    def initialized(loader, *args, **kwargs):
        args = list(args)
        if len(args) > 5:
            workers, args[5] = args[5], 0
        else:
            workers, kwargs["num_workers"] = kwargs.get("num_workers", 0), 0
        for name in ("persistent_workers", "prefetch_factor", "timeout", "pin_memory"):
            kwargs.pop(name, None)
        for name in ("multiprocessing_context", "pin_memory_device"):
            kwargs.pop(name, None)
        initialize(loader, *args, **kwargs)
        loading.note_loader(loader.dataset, workers)

    @functools.wraps(iterate)
    def iterated(loader):
        training.loader_batch = getattr(loader, "batch_size", None)
        loading.note_iteration(getattr(loader, "dataset", None))
        return iterate(loader)

    DataLoader.__init__, DataLoader.__iter__ = initialized, iterated
    _patch_fetchers(loading)
    after_import.call({"PIL.ImageFile": loading.decoded.patch})
