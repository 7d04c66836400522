# SPDX-License-Identifier: Apache-2.0
"""What a jitted training step of JAX takes, from the memory analysis of its compiler.

XLA plans the memory of a whole step: one block for all temporaries, a buffer for each array that
goes in or comes out. So nothing is simulated here: the sizes are written down as the compiler
gives them, with the arrays that the caller holds. Example, for a step that donates its 40 MB of
parameters and gives them back with a loss:

    arguments [40 MB, 1 MB], temp 25 MB, outputs: the loss alone, since the others reuse arguments

The plan lacks the kernels that XLA tries while it compiles: of convolutions, some have far larger
workspaces than the ones that it chooses. This memory comes from the same pool before the first
step, and the pool never shrinks. So the pool's figures are read when the compiler has ended
("compiling").

What a version of JAX does not say is null in the file, never 0. docs/export.md has the form.
"""
import argparse
import collections
import hashlib
import importlib
import json
import os
import sys

from .user_code import Mistake, function_of

VERSION = 1
FIELDS = ("argument", "output", "alias", "temp", "generated_code", "peak")
POOL_FIELDS = {
    "in_use_bytes": "bytes_in_use",
    "peak_bytes": "peak_bytes_in_use",
    "pool_bytes": "pool_bytes",
    "largest_free_bytes": "largest_free_block_bytes",
}
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
NO_ARGUMENT = -1  # of an output that takes no argument's place

# An array that goes in or comes out. kind: what has to be equal for one to take another's place.
Array = collections.namedtuple("Array", "path kind bytes")


def _field(stats, name):
    """A figure of the analysis; None where this version of JAX does not give it."""
    name = f"{name}_memory_in_bytes" if name == "peak" else f"{name}_size_in_bytes"
    value = stats.get(name) if isinstance(stats, dict) else getattr(stats, name, None)
    known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if known else None


def _figures(compiled, arguments):
    """The figures of the analysis by name. Early versions give 0 for everything on a GPU."""
    inner = (
        compiled if hasattr(compiled, "memory_analysis") else getattr(compiled, "compiled", None)
    )
    try:
        stats = inner.memory_analysis()
    except Exception as error:
        raise Mistake(
            f"this JAX has no memory analysis ({type(error).__name__}: {error})"
        ) from None
    stats = stats[0] if isinstance(stats, (list, tuple)) and stats else stats
    figures = {name: _field(stats, name) for name in FIELDS}
    if sum(array.bytes for array in arguments) and not any(
        figures[name] for name in ("argument", "output", "temp")
    ):
        figures = dict.fromkeys(FIELDS)
    if figures["temp"] is None:
        raise Mistake("the compiler of this JAX does not say what the step's temporaries take")
    return figures


def _pool_figures(jax):
    """What XLA's allocator holds now; None where this JAX, or a device without one, does not say.

    A pool that was allocated in advance shows nothing of what it would have grown to.
    """
    try:
        stats = jax.local_devices()[0].memory_stats()
        figures = {name: stats.get(key) for name, key in POOL_FIELDS.items()}
    except Exception:
        return None
    if os.environ.get(PREALLOCATE, "").lower() not in ("false", "0"):
        figures.update(pool_bytes=None, largest_free_bytes=None)
    known = {n: v if isinstance(v, int) and v >= 0 else None for n, v in figures.items()}
    return known if any(value is not None for value in known.values()) else None


def _shape_on_device(leaf):
    """Of the part that one device holds."""
    try:
        return tuple(leaf.sharding.shard_shape(tuple(leaf.shape)))
    except Exception:
        return tuple(leaf.shape)


def _arrays(tree, warnings):
    """The arrays of a tree; its other leaves (functions, numbers) take almost no memory."""
    tree_util = importlib.import_module("jax").tree_util
    try:
        leaves = [
            (tree_util.keystr(path), leaf)
            for path, leaf in tree_util.tree_flatten_with_path(tree)[0]
        ]
    except AttributeError:
        leaves = [(str(i), leaf) for i, leaf in enumerate(tree_util.tree_leaves(tree))]
    arrays = []
    for path, leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            continue
        size = getattr(leaf.dtype, "itemsize", None)
        if not isinstance(size, int):
            warnings.append(f"{path}: an array of {leaf.dtype}, whose size is not known")
            continue
        for dimension in _shape_on_device(leaf):
            size *= int(dimension)
        arrays.append(Array(path, (str(leaf.dtype), tuple(leaf.shape)), size))
    return arrays


def _lowered(lowered):
    """JAX's own object within that of Equinox."""
    return getattr(lowered, "lowered", lowered)


def _donated(lowered):
    """What the step may overwrite, by kind; None where this version does not say."""
    try:
        leaves = importlib.import_module("jax").tree_util.tree_leaves(_lowered(lowered).args_info)
        return collections.Counter(
            (str(leaf.dtype), tuple(leaf.shape)) for leaf in leaves if leaf.donated
        )
    except Exception:
        return None


def _outputs(lowered, jitted, arguments, warnings):
    """The arrays that the step returns; None where this version does not say."""
    try:
        return _arrays(_lowered(lowered).out_info, warnings)
    except Exception:
        pass
    try:
        return _arrays(importlib.import_module("jax").eval_shape(jitted, *arguments), warnings)
    except Exception:
        return None


def _own_outputs(outputs, arguments, donated, alias):
    """[bytes, argument whose place it takes in the next step] of outputs with memory of their own.

    donated: kinds of arguments that are overwritten; alias: bytes of outputs that overwrite them.
    """
    candidates = collections.Counter(a.kind for a in arguments) if donated is None else donated
    candidates, left = candidates.copy(), sum(o.bytes for o in outputs) if alias is None else alias
    replaced, rows = set(), []
    for output in outputs:
        same = [i for i, a in enumerate(arguments) if a.kind == output.kind and i not in replaced]
        replaced.update(same[:1])
        if candidates[output.kind] > 0 and output.bytes <= left:
            candidates[output.kind] -= 1
            left -= output.bytes
            continue
        rows.append([output.bytes, same[0] if same else NO_ARGUMENT])
    return rows


def _batch_of(arguments):
    """The first dimension that all arrays of the last argument have in common."""
    sizes = {a.kind[1][0] for a in _arrays(arguments[-1:], []) if a.kind[1]}
    if len(sizes) != 1 or 0 in sizes:
        raise Mistake(
            "the last argument does not show the batch size, as a batch or labels would: "
            "give it as batch=N"
        )
    return int(sizes.pop())


def _program(arguments, batch):
    """The same for the same training at any batch size."""
    text = hashlib.sha256()
    for path, (dtype, shape), _ in arguments:
        per_sample = shape[1:] if shape and shape[0] == batch else shape
        text.update(f"{path} {dtype} {per_sample}\n".encode())
    return text.hexdigest()[:16]


def _platform(jax):
    try:
        return {"platform": str(jax.default_backend()), "device": jax.devices()[0].device_kind}
    except Exception:
        return {"platform": "unknown", "device": None}


def jax_step(step, *arguments, batch=None, name=None):
    """What one training step takes, as a dictionary for json.dump.

    step:      a function that is compiled with jax.jit, or what jax.jit, flax.nnx.jit or
               equinox.filter_jit returned; donated arguments count as such
    arguments: what it is called with: arrays, or jax.ShapeDtypeStruct in their place
    batch:     samples in one step on one device; default: the first dimension of the arrays of the
               last argument
    name:      of the model, for people

    It is compiled for the device that JAX uses here: only on a GPU is that what a GPU takes. The
    step does not run. Export before anything else runs in the process, and with the environment
    variable XLA_PYTHON_CLIENT_PREALLOCATE=false: then the export has what the compiler tries, too.
    Raises Mistake where this JAX does not know.
    """
    jax = importlib.import_module("jax")
    if not arguments:
        raise Mistake("give the arguments that the step is called with")
    batch, warnings = batch or _batch_of(arguments), []
    jitted = step if hasattr(step, "lower") else jax.jit(step)
    lowered = jitted.lower(*arguments)
    held = _arrays(arguments, warnings)
    figures = _figures(lowered.compile(), held)
    outputs = _outputs(lowered, jitted, arguments, warnings)
    if outputs is None and figures["output"] is None:
        raise Mistake("this JAX does not say what the step returns")
    if outputs is None:
        own = [[max(0, figures["output"] - (figures["alias"] or 0)), NO_ARGUMENT]]
    else:
        own = _own_outputs(outputs, held, _donated(lowered), figures["alias"])
    return {
        "colloc_export": VERSION,
        "model": name or getattr(step, "__name__", "step"),
        "framework": {"name": "jax", "version": str(jax.__version__), **_platform(jax)},
        "method": "jax",
        "batch": batch,
        "every_batch": False,
        "program": _program(held, batch),
        "compiled": {
            **{f"{key.replace('generated_', '')}_bytes": value for key, value in figures.items()},
            "arguments": [array.bytes for array in held],
            "outputs": own,
            "compiling": _pool_figures(jax),
        },
        "warnings": warnings,
    }


# ---- the command line ----


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python3 -m colloc_export --jax",
        description="What a training step of JAX takes, from the memory analysis of its compiler.",
    )
    parser.add_argument(
        "source",
        help="MODULE:FUNCTION or FILE.py:FUNCTION that takes the batch size and returns the step "
        "and its arguments, in a tuple",
    )
    parser.add_argument("--jax", action="store_true", required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--name", help="of the model, for people")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")
    return parser.parse_args(arguments)


def answer(options):
    """The text of the export that the command line asks for."""
    os.environ.setdefault(PREALLOCATE, "false")  # before JAX is imported
    made = function_of(options.source)(options.batch)
    if not isinstance(made, tuple) or not callable(made[0]):
        raise Mistake(f"{options.source}: returned no tuple of the step and its arguments")
    description = jax_step(
        made[0], *made[1:], batch=options.batch, name=options.name or options.source
    )
    return json.dumps(description, separators=(",", ":")) + "\n"


def need_jax():
    """Raises ImportError, with the interpreter's path, where JAX is not installed."""
    try:
        importlib.import_module("jax")
    except ImportError as missing:
        raise ImportError(
            f"colloc_export --jax needs JAX, and {sys.executable} has none ({missing})"
        ) from None
