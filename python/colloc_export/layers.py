# SPDX-License-Identifier: Apache-2.0
"""The layers of a model in the order in which they run, from hooks on its modules."""
from .tracker import storage_of, tensors_in


def own_parameters(module):
    """The module's own parameters; of one that is gathered for a while, this process's part."""
    return [getattr(p, "part_of_rank", p) for p in module.parameters(recurse=False)]


class Layers:
    """Use as a context around one forward pass.

    counted: ids of parameters that rows of other networks have; it gets this network's, too
    """

    def __init__(self, model, counted=None):
        self.model = model
        self.rows = []
        self._stack = []
        self._counted = set() if counted is None else counted
        self._seen = set()
        self._hooks = []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._before(name)))
            self._hooks.append(module.register_forward_hook(self._after))
        return self

    def __exit__(self, *_):
        for hook in self._hooks:
            hook.remove()
        self._stack.clear()
        for name, module in self.model.named_modules():
            if module not in self._seen and own_parameters(module):
                self._insert(name, module)

    def _insert(self, name, module):
        """Puts a module whose parameters another module uses behind the row of their owner."""
        holder = name.rpartition(".")[0]
        while holder and all(row["name"] != holder for row in self.rows):
            holder = holder.rpartition(".")[0]
        at = next((i for i, row in enumerate(self.rows) if row["name"] == holder), 0)
        depth = self.rows[at]["depth"] if self.rows else -1
        self._add(name, module, depth + 1)
        self.rows.insert(at + 1, self.rows.pop())

    def multiply_adds(self, count):
        """Adds operations that ran inside the current module."""
        if self._stack:
            self._stack[-1]["multiply_adds"] += count

    def _count(self, parameters):
        new = [p for p in parameters if id(p) not in self._counted]
        self._counted.update(id(p) for p in new)
        return sum(p.numel() for p in new), sum(p.numel() for p in new if p.requires_grad)

    def _add(self, name, module, depth):
        parameters, trainable = self._count(own_parameters(module))
        row = {
            "name": name,
            "type": type(module).__name__,
            "depth": depth,
            "leaf": True,
            "shared": module in self._seen,
            "args": module.extra_repr().replace("\n", " "),
            "shape": None,
            "activations": 0,
            "parameters": parameters,
            "trainable": trainable,
            "buffers": sum(b.numel() for b in module.buffers(recurse=False)),
            "multiply_adds": 0,
            "in_place": False,
        }
        self._seen.add(module)
        self.rows.append(row)
        return row

    def _before(self, name):
        def hook(module, inputs):
            if self._stack:
                self._stack[-1]["leaf"] = False
            self._stack.append(self._add(name, module, len(self._stack)))

        return hook

    def _after(self, module, inputs, output):
        row = self._stack.pop()
        results = tensors_in(output) or tensors_in(
            list(vars(output).values()) if hasattr(output, "__dict__") else []
        )
        if not results:
            return
        row["shape"] = list(results[0].shape)
        row["activations"] = sum(t.numel() for t in results)
        given = {storage_of(t)._cdata for t in tensors_in(inputs)}
        row["in_place"] = storage_of(results[0])._cdata in given
