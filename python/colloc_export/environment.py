# SPDX-License-Identifier: Apache-2.0
"""Where a run takes place: among fake tensors, which have shapes and no data, or on the CPU."""
import contextlib

import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_map


class Cpu:
    method = "cpu"

    @contextlib.contextmanager
    def active(self):
        yield

    def model(self, make_model):
        return make_model()

    def batch(self, make_batch, size):
        """A copy, as a transfer to the GPU makes one."""
        return tree_map(
            lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, make_batch(size)
        )


class _Mode(FakeTensorMode):
    """A mode that a deep copy of its tensors keeps.

    A fake tensor refers to its mode, so copy.deepcopy (as nn.TransformerEncoder makes its layers)
    would copy the mode and its table of weak references to storages. Each copy frees the same
    references in the end, and the C library ends the process.
    """

    def __deepcopy__(self, memo):
        return self


class Fake:
    method = "fake"

    def __init__(self):
        try:
            self._mode = _Mode(allow_non_fake_inputs=True)
        except TypeError:
            self._mode = _Mode()

    def active(self):
        return self._mode

    @contextlib.contextmanager
    def _real(self):
        """Leaves the fake-tensor mode within the context."""
        self._mode.__exit__(None, None, None)
        try:
            yield
        finally:
            self._mode.__enter__()

    @staticmethod
    def _is_fake(tensor):
        return isinstance(tensor, FakeTensor) and tensor.device.type != "meta"

    def _fake(self, tensor):
        if self._is_fake(tensor):
            return tensor
        if tensor.device.type == "meta":  # early versions deep-copy a fake tensor to this
            return torch.empty_like(tensor, device="cpu")
        return self._mode.from_tensor(tensor)

    def model(self, make_model):
        """The model, of fake tensors.

        When its constructor reads values it is made with data, which is then dropped.
        """
        try:
            model = make_model()
        except Exception:
            with self._real():
                model = make_model()
        return self._strip(model)

    def _strip(self, model):
        fakes = {}
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is None or self._is_fake(parameter):
                    continue
                if id(parameter) not in fakes:
                    with self._real():  # early versions refuse .data of a real one in the mode
                        data = parameter.data
                    fakes[id(parameter)] = torch.nn.Parameter(
                        self._fake(data), parameter.requires_grad
                    )
                module._parameters[name] = fakes[id(parameter)]
            for name, buffer in module._buffers.items():
                module._buffers[name] = None if buffer is None else self._fake(buffer)
        return model

    def batch(self, make_batch, size):
        """A batch, cloned: the mode keeps what it converted, and each batch has to be released."""
        with self._real():
            batch = make_batch(size)
        return tree_map(
            lambda leaf: self._fake(leaf).clone() if isinstance(leaf, torch.Tensor) else leaf, batch
        )
