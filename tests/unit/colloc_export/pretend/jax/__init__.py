# SPDX-License-Identifier: Apache-2.0
"""The part of JAX's documented interface that the exporter uses, for tests without JAX.

A function's results are given, not computed: `jit(f, donate_argnums=...)` calls f with arrays that
have shapes and no data, and `ANALYSIS` is what the compiler's memory analysis returns (or raises).
`POOL` is what a device says of its allocator; None as on a CPU.
"""
import types

__version__ = "0.9.pretend"

ANALYSIS = types.SimpleNamespace()
BACKEND = "gpu"
POOL = None


class Dtype:
    def __init__(self, name, itemsize):
        self.name, self.itemsize = name, itemsize

    def __str__(self):
        return self.name


FLOAT32, BFLOAT16, INT32 = Dtype("float32", 4), Dtype("bfloat16", 2), Dtype("int32", 4)


class ShapeDtypeStruct:
    def __init__(self, shape, dtype=FLOAT32, sharding=None):
        self.shape, self.dtype, self.sharding = tuple(shape), dtype, sharding


class HalvedSharding:
    """The first dimension is divided among two devices."""

    def shard_shape(self, shape):
        return (shape[0] // 2, *shape[1:])


def _paths(tree, path=""):
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from _paths(tree[key], f"{path}['{key}']")
    elif isinstance(tree, (list, tuple)):
        for i, child in enumerate(tree):
            yield from _paths(child, f"{path}[{i}]")
    elif tree is not None:
        yield path, tree


tree_util = types.SimpleNamespace(
    tree_flatten_with_path=lambda tree: (list(_paths(tree)), None),
    tree_leaves=lambda tree: [leaf for _, leaf in _paths(tree)],
    keystr=lambda path: path,
)


class Compiled:
    def memory_analysis(self):
        if isinstance(ANALYSIS, Exception):
            raise ANALYSIS
        return ANALYSIS


class Lowered:
    def __init__(self, arguments, donated, results):
        self.args_info = (
            [
                [
                    types.SimpleNamespace(shape=leaf.shape, dtype=leaf.dtype, donated=i in donated)
                    for leaf in tree_util.tree_leaves(argument)
                    if hasattr(leaf, "shape")
                ]
                for i, argument in enumerate(arguments)
            ],
            {},
        )
        self.out_info = results

    def compile(self):
        return Compiled()


class Jitted:
    def __init__(self, function, donated):
        self.function, self.donated, self.__name__ = function, donated, function.__name__

    def __call__(self, *arguments):
        return self.function(*arguments)

    def lower(self, *arguments):
        return Lowered(arguments, self.donated, self.function(*arguments))


def jit(function, donate_argnums=()):
    return Jitted(function, donate_argnums)


def eval_shape(function, *arguments):
    return getattr(function, "function", function)(*arguments)


def default_backend():
    return BACKEND


def devices():
    return [types.SimpleNamespace(device_kind="NVIDIA H100 80GB HBM3")]


def local_devices():
    return [types.SimpleNamespace(memory_stats=lambda: POOL)]
