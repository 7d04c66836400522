#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of JAX on a real GPU: their memory, and colloc's estimate from their export.

    tests/gpu/jax_trial.py PROGRAMS [OUTPUT [SECONDS [CASE ...]]]

PROGRAMS is a folder with colloc (scripts/bundle makes one). Needs a GPU and a Python with JAX for
it; cases of flax, optax and equinox are skipped where these are not installed. Each case runs in a
separate process without preallocation, which exports the step, trains a few steps, and reads the
memory. OUTPUT (default: jax_trial.jsonl) gets a line of JSON as soon as a case has ended, also a
failed one. No case begins after SECONDS (default: 60).

The first case runs alone. If the driver shows memory by process, the others run six at a time; else
one by one, since then only the memory of the whole GPU is known.
"""
import concurrent.futures
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "..", "..", "python")
MIB = 1 << 20
STEPS = 6
CASE_LIMIT_S = 90
AT_ONCE = 6


# ---- the cases: each returns the jitted step, its arguments, the batch, and how many of the
# ---- arguments the step's first outputs replace


def normal(jax, seed, *shape, scale=0.02, dtype="float32"):
    return scale * jax.random.normal(jax.random.PRNGKey(seed), shape, dtype)


def labels(jax, batch, classes):
    return jax.random.randint(jax.random.PRNGKey(99), (batch,), 0, classes)


def cross_entropy(jax, scores, wanted):
    picked = jax.nn.log_softmax(scores.astype("float32"))
    return -jax.numpy.take_along_axis(picked, wanted[..., None], -1).mean()


def momentum_step(jax, loss):
    def step(parameters, velocity, inputs, wanted):
        value, gradients = jax.value_and_grad(loss)(parameters, inputs, wanted)
        velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, gradients)
        parameters = jax.tree_util.tree_map(lambda p, v: p - 0.01 * v, parameters, velocity)
        return parameters, velocity, value

    return step


def adam_step(jax, loss):
    numpy = jax.numpy

    def step(parameters, states, inputs, wanted):
        value, gradients = jax.value_and_grad(loss)(parameters, inputs, wanted)
        first = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, states[0], gradients)
        second = jax.tree_util.tree_map(
            lambda v, g: 0.999 * v + 0.001 * g * g, states[1], gradients
        )
        parameters = jax.tree_util.tree_map(
            lambda p, m, v: p - 0.001 * m / (numpy.sqrt(v) + 1e-8), parameters, first, second
        )
        return parameters, (first, second), value

    return step


def zeros_like(jax, tree):
    return jax.tree_util.tree_map(jax.numpy.zeros_like, tree)


def mlp_loss(jax):
    def loss(parameters, inputs, wanted):
        for weight, bias in parameters[:-1]:
            inputs = jax.nn.relu(inputs @ weight + bias)
        weight, bias = parameters[-1]
        return cross_entropy(jax, inputs @ weight + bias, wanted)

    return loss


def mlp_parameters(jax, widths):
    return [
        (normal(jax, i, a, b), normal(jax, i, b))
        for i, (a, b) in enumerate(zip(widths, widths[1:]))
    ]


def mlp(jax, batch, widths, donate):
    """With Adam."""
    parameters = mlp_parameters(jax, widths)
    states = (zeros_like(jax, parameters), zeros_like(jax, parameters))
    step = jax.jit(adam_step(jax, mlp_loss(jax)), donate_argnums=(0, 1) if donate else ())
    inputs = normal(jax, 7, batch, widths[0], scale=1)
    return step, (parameters, states, inputs, labels(jax, batch, widths[-1])), batch, 2


def convolutions(jax, batch, side, widths, dtype):
    """3x3 convolutions, half the side after each pair; with momentum, donated."""

    def convolve(maps, weight, stride):
        return jax.lax.conv_general_dilated(
            maps, weight, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(parameters, inputs, wanted):
        maps = inputs.astype(dtype)
        for i, weight in enumerate(parameters["convolutions"]):
            maps = jax.nn.relu(convolve(maps, weight.astype(dtype), 1 + i % 2))
        return cross_entropy(jax, maps.mean((1, 2)) @ parameters["head"].astype(dtype), wanted)

    channels = [3, *widths]
    parameters = {
        "convolutions": [
            normal(jax, i, 3, 3, a, b) for i, (a, b) in enumerate(zip(channels, channels[1:]))
        ],
        "head": normal(jax, 50, widths[-1], 10),
    }
    step = jax.jit(momentum_step(jax, loss), donate_argnums=(0, 1))
    inputs = normal(jax, 7, batch, side, side, 3, scale=1)
    arguments = (parameters, zeros_like(jax, parameters), inputs, labels(jax, batch, 10))
    return step, arguments, batch, 2


def transformer(jax, batch, tokens, width, layers, dtype, donate):
    """Decoder blocks with written-out attention and a vocabulary of 8192; with Adam."""
    numpy, heads = jax.numpy, width // 64

    def norm(x):
        x = x - x.mean(-1, keepdims=True)
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def attention(x, block):
        parts = (norm(x) @ block["qkv"].astype(dtype)).reshape(batch, tokens, 3, heads, 64)
        query, key, value = (parts[:, :, i].swapaxes(1, 2) for i in range(3))
        scores = query @ key.swapaxes(2, 3) / 8
        mask = numpy.tril(numpy.ones((tokens, tokens), bool))
        shares = jax.nn.softmax(numpy.where(mask, scores, -1e9).astype("float32")).astype(dtype)
        mixed = (shares @ value).swapaxes(1, 2).reshape(batch, tokens, width)
        return x + mixed @ block["out"].astype(dtype)

    def loss(parameters, inputs, wanted):
        x = parameters["embedding"][inputs].astype(dtype)
        for block in parameters["blocks"]:
            x = attention(x, block)
            hidden = jax.nn.gelu(norm(x) @ block["up"].astype(dtype))
            x = x + hidden @ block["down"].astype(dtype)
        return cross_entropy(jax, norm(x) @ parameters["embedding"].T.astype(dtype), wanted)

    def block(seed):
        return {
            "qkv": normal(jax, seed, width, 3 * width),
            "out": normal(jax, seed + 1, width, width),
            "up": normal(jax, seed + 2, width, 4 * width),
            "down": normal(jax, seed + 3, 4 * width, width),
        }

    parameters = {
        "embedding": normal(jax, 90, 8192, width),
        "blocks": [block(4 * i) for i in range(layers)],
    }
    states = (zeros_like(jax, parameters), zeros_like(jax, parameters))
    step = jax.jit(adam_step(jax, loss), donate_argnums=(0, 1) if donate else ())
    words = jax.random.randint(jax.random.PRNGKey(7), (batch, tokens), 0, 8192)
    return step, (parameters, states, words, words), batch, 2


def flax_convolutions(jax, batch):
    """flax.linen with optax's AdamW, as in flax's examples."""
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, maps):
            for width in (64, 128, 256):
                maps = linen.relu(linen.GroupNorm(8)(linen.Conv(width, (3, 3))(maps)))
                maps = linen.avg_pool(maps, (2, 2), (2, 2))
            return linen.Dense(10)(linen.relu(linen.Dense(256)(maps.reshape(len(maps), -1))))

    net, optimizer = Net(), optax.adamw(1e-3)
    inputs = normal(jax, 7, batch, 64, 64, 3, scale=1)
    parameters = net.init(jax.random.PRNGKey(0), inputs[:1])
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state, inputs, wanted):
        def loss(parameters):
            scores = net.apply(parameters, inputs)
            return optax.softmax_cross_entropy_with_integer_labels(scores, wanted).mean()

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    return step, (parameters, state, inputs, labels(jax, batch, 10)), batch, 2


def equinox_mlp(jax, batch):
    """equinox with optax's Adam, as in equinox's examples."""
    import equinox
    import optax

    model = equinox.nn.MLP(1024, 10, 2048, 4, key=jax.random.PRNGKey(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(equinox.filter(model, equinox.is_array))

    @equinox.filter_jit
    def step(model, state, inputs, wanted):
        @equinox.filter_value_and_grad
        def loss(model):
            return cross_entropy(jax, jax.vmap(model)(inputs), wanted)

        value, gradients = loss(model)
        updates, state = optimizer.update(gradients, state, model)
        return equinox.apply_updates(model, updates), state, value

    inputs = normal(jax, 7, batch, 1024, scale=1)
    return step, (model, state, inputs, labels(jax, batch, 10)), batch, 2


def flax_residual(jax, batch, side, widths):
    """Residual blocks with batch normalisation, as in flax's ImageNet example; with momentum."""
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, maps):
            def convolve(maps, width, window, stride=1):
                maps = linen.Conv(width, (window, window), (stride, stride), use_bias=False)(maps)
                return linen.BatchNorm(use_running_average=False)(maps)

            maps = linen.relu(convolve(maps, 64, 7, 2))
            for width in widths:
                inner = linen.relu(convolve(maps, width, 1))
                inner = linen.relu(convolve(inner, width, 3, 2))
                maps = linen.relu(convolve(inner, 4 * width, 1) + convolve(maps, 4 * width, 1, 2))
            return linen.Dense(100)(maps.mean((1, 2)))

    net, optimizer = Net(), optax.sgd(0.1, momentum=0.9)
    inputs = normal(jax, 7, batch, side, side, 3, scale=1)
    variables = jax.jit(net.init)(jax.random.PRNGKey(0), inputs[:1])
    state = (variables["batch_stats"], optimizer.init(variables["params"]))

    def step(parameters, state, inputs, wanted):
        def loss(parameters):
            variables = {"params": parameters, "batch_stats": state[0]}
            scores, changed = net.apply(variables, inputs, mutable=["batch_stats"])
            return cross_entropy(jax, scores, wanted), changed["batch_stats"]

        (value, means), gradients = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, velocity = optimizer.update(gradients, state[1], parameters)
        return optax.apply_updates(parameters, updates), (means, velocity), value

    arguments = (variables["params"], state, inputs, labels(jax, batch, 100))
    return jax.jit(step, donate_argnums=(0, 1)), arguments, batch, 2


def u_net(jax, batch, side, widths, dtype):
    """Down by strides, up by transposed convolutions, with the maps of the way down; Adam."""
    numpy, layout = jax.numpy, ("NHWC", "HWIO", "NHWC")
    channels = [3, *widths]

    def loss(parameters, inputs, wanted):
        maps, kept = inputs.astype(dtype), []
        for weight in parameters["down"]:
            maps = jax.lax.conv_general_dilated(
                maps, weight.astype(dtype), (2, 2), "SAME", dimension_numbers=layout
            )
            maps = jax.nn.relu(maps)
            kept.append(maps)
        for weight, beside in zip(parameters["up"], [*kept[-2::-1], None]):
            maps = jax.lax.conv_transpose(maps, weight.astype(dtype), (2, 2), "SAME")
            maps = jax.nn.relu(maps) if beside is None else jax.nn.relu(maps) + beside
        return numpy.mean((maps.astype("float32") - wanted) ** 2)

    pairs = list(zip(channels, channels[1:]))
    parameters = {
        "down": [normal(jax, i, 4, 4, a, b) for i, (a, b) in enumerate(pairs)],
        "up": [normal(jax, 20 + i, 4, 4, b, a) for i, (a, b) in enumerate(pairs[::-1])],
    }
    states = (zeros_like(jax, parameters), zeros_like(jax, parameters))
    inputs = normal(jax, 7, batch, side, side, 3, scale=1)
    return jax.jit(adam_step(jax, loss)), (parameters, states, inputs, inputs), batch, 2


def separable(jax, batch, side, widths, dtype):
    """Depthwise 3x3 and pointwise convolutions, as in mobile networks; with momentum, donated."""

    def convolve(maps, weight, stride, groups=1):
        return jax.lax.conv_general_dilated(
            maps, weight.astype(dtype), (stride, stride), "SAME", feature_group_count=groups,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip

    def loss(parameters, inputs, wanted):
        maps = inputs.astype(dtype)
        for i, (deep, flat) in enumerate(parameters["blocks"]):
            maps = jax.nn.relu(convolve(maps, deep, 1 + i % 2, maps.shape[-1]))
            maps = jax.nn.relu(convolve(maps, flat, 1))
        return cross_entropy(jax, maps.mean((1, 2)) @ parameters["head"].astype(dtype), wanted)

    channels = [3, *widths]
    parameters = {
        "blocks": [
            (normal(jax, i, 3, 3, 1, a), normal(jax, 20 + i, 1, 1, a, b))
            for i, (a, b) in enumerate(zip(channels, channels[1:]))
        ],
        "head": normal(jax, 50, widths[-1], 10),
    }
    step = jax.jit(momentum_step(jax, loss), donate_argnums=(0, 1))
    inputs = normal(jax, 7, batch, side, side, 3, scale=1)
    arguments = (parameters, zeros_like(jax, parameters), inputs, labels(jax, batch, 10))
    return step, arguments, batch, 2


def recurrent(jax, batch, tokens, width, vocabulary):
    """A gated recurrent layer by lax.scan over embedded words; with Adam."""
    numpy = jax.numpy

    def loss(parameters, inputs, wanted):
        def cell(state, x):
            gates = x @ parameters["in"] + state @ parameters["own"]
            forget, new = numpy.split(gates, 2, -1)
            forget = jax.nn.sigmoid(forget)
            state = forget * state + (1 - forget) * numpy.tanh(new)
            return state, state

        embedded = parameters["embedding"][inputs].swapaxes(0, 1)
        _, states = jax.lax.scan(cell, numpy.zeros((batch, width)), embedded)
        return cross_entropy(jax, states @ parameters["head"], wanted.T)

    parameters = {
        "embedding": normal(jax, 1, vocabulary, width),
        "in": normal(jax, 2, width, 2 * width),
        "own": normal(jax, 3, width, 2 * width),
        "head": normal(jax, 4, width, vocabulary),
    }
    states = (zeros_like(jax, parameters), zeros_like(jax, parameters))
    words = jax.random.randint(jax.random.PRNGKey(7), (batch, tokens), 0, vocabulary)
    return jax.jit(adam_step(jax, loss)), (parameters, states, words, words), batch, 2


CASES = {
    "mlp": functools.partial(mlp, batch=512, widths=(1024, 4096, 4096, 1000), donate=False),
    "convolutions": functools.partial(
        convolutions, batch=128, side=64, widths=(64, 64, 128, 128, 256), dtype="float32"
    ),
    "transformer": functools.partial(
        transformer, batch=16, tokens=256, width=512, layers=4, dtype="float32", donate=False
    ),
    "flax convolutions": functools.partial(flax_convolutions, batch=256),
    "equinox mlp": functools.partial(equinox_mlp, batch=1024),
    "transformer bf16 donated": functools.partial(
        transformer, batch=32, tokens=512, width=768, layers=6, dtype="bfloat16", donate=True
    ),
    "convolutions bf16": functools.partial(
        convolutions, batch=64, side=224, widths=(32, 64, 128, 256), dtype="bfloat16"
    ),
    "mlp donated": functools.partial(mlp, batch=4096, widths=(4096, 8192, 8192, 1000), donate=True),
    "transformer large": functools.partial(
        transformer, batch=8, tokens=1024, width=1024, layers=12, dtype="float32", donate=True
    ),
    "residual, flax": functools.partial(
        flax_residual, batch=64, side=160, widths=(64, 128, 256, 512)
    ),
    "u-net": functools.partial(
        u_net, batch=16, side=256, widths=(64, 128, 256, 512), dtype="float32"
    ),
    "separable": functools.partial(
        separable, batch=64, side=112, widths=(32, 64, 128, 256), dtype="float32"
    ),
    "recurrent": functools.partial(recurrent, batch=64, tokens=128, width=1024, vocabulary=10000),
    "mlp small": functools.partial(mlp, batch=256, widths=(784, 512, 512, 10), donate=False),
    "mlp wide batch": functools.partial(
        mlp, batch=16384, widths=(1024, 2048, 2048, 2048, 1000), donate=True
    ),
    "convolutions small": functools.partial(
        convolutions, batch=256, side=32, widths=(32, 64, 64, 128), dtype="float32"
    ),
    "convolutions deep": functools.partial(
        convolutions, batch=32, side=224, widths=(64, 64, 128, 128, 256, 256), dtype="float32"
    ),
    "convolutions bf16 small": functools.partial(
        convolutions, batch=512, side=32, widths=(64, 128, 128, 256), dtype="bfloat16"
    ),
    "u-net bf16": functools.partial(
        u_net, batch=8, side=384, widths=(32, 64, 128, 256), dtype="bfloat16"
    ),
    "transformer small": functools.partial(
        transformer, batch=32, tokens=128, width=256, layers=4, dtype="float32", donate=True
    ),
    "transformer bf16": functools.partial(
        transformer, batch=8, tokens=1024, width=1024, layers=6, dtype="bfloat16", donate=False
    ),
    "transformer long": functools.partial(
        transformer, batch=2, tokens=2048, width=512, layers=6, dtype="float32", donate=False
    ),
}


# ---- in the process of a case


def train(jax, step, arguments, replaced):
    """Replaces the list's first arguments after each step, so that nothing holds the old ones."""
    for _ in range(STEPS):
        result = step(*arguments)
        arguments[:replaced] = result[:replaced]
    jax.block_until_ready([leaf for leaf in jax.tree_util.tree_leaves(result)])


def ask_nvidia_smi(query, *columns):
    """Rows of nvidia-smi; none where it does not answer."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["nvidia-smi", f"--query-{query}={','.join(columns)}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
        return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return []


def number_or_none(text):
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def own_memory_mib():
    """What the driver shows for this process; None where it shows no process, or other numbers."""
    for pid, mib in ask_nvidia_smi("compute-apps", "pid", "used_memory"):
        if pid == str(os.getpid()):
            return number_or_none(mib)
    return None


def device_memory_mib():
    rows = ask_nvidia_smi("gpu", "memory.used")
    return number_or_none(rows[0][0]) if rows else None


def run_case(name, path):
    """Writes the record of a case to `path` after each part, so that a later failure leaves it."""
    record = {"case": name, "part": "import"}

    def keep(part, **values):
        record.update(values, part=part)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(path + ".new", path)

    keep("import")
    import jax

    device = jax.local_devices()[0]
    keep("build", jax=jax.__version__, platform=device.platform, gpu=device.device_kind)
    sys.path.insert(0, os.environ.get("COLLOC_TRIAL_PYTHON", PYTHON))
    from colloc_export import jax_step

    step, arguments, batch, replaced = CASES[name](jax)
    arguments = list(arguments)
    keep("export", batch=batch, stats_before=device.memory_stats())
    keep("train", export=jax_step(step, *arguments, batch=batch, name=name))
    train(jax, step, arguments, replaced)
    keep(
        "done",
        memory_stats=device.memory_stats(),
        process_mib=own_memory_mib(),
        device_mib=device_memory_mib(),
    )


# ---- the trial


def start_case(name, path):
    """Returns how the case's process ended, its last lines, and the seconds that it took."""
    environment = {
        **os.environ,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, os.path.abspath(__file__), "case", name, path], env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=CASE_LIMIT_S, check=False,
        )  # fmt: skip
        status, text = done.returncode, done.stderr or done.stdout
    except subprocess.TimeoutExpired:
        status, text = "time", ""
    return status, text[-1500:], round(time.monotonic() - began, 1)


def read_json(path):
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return json.load(file)
    return {}


def estimate(programs, path, gpu):
    """colloc's answer to the export; or why there is none."""
    answer = {"estimate_error": "no answer"}
    command = [os.path.join(programs, "colloc"), "estimate", "--json", f"--export={path}"]
    for options in ([f"--gpu={gpu}"], []):
        try:
            done = subprocess.run(
                [*command, *options],
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return {"estimate": json.loads(done.stdout)["estimates"][0]}
            answer = {"estimate_error": done.stderr[-500:]}
        except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            answer = {"estimate_error": str(error)}
    return answer


def with_estimate(record, programs, folder):
    if not record.get("export"):
        return record
    path = os.path.join(folder, record["case"].replace(" ", "-") + ".export.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record["export"], file)
    return {**record, **estimate(programs, path, record.get("gpu"))}


def compared(record, idle_mib, alone):
    """The measured memory of the process, what of it is not the pool, and the estimate's error."""
    stats, device_mib = record.get("memory_stats") or {}, record.get("device_mib")
    measured = record.get("process_mib")
    if measured is None and alone and device_mib is not None and idle_mib is not None:
        measured = device_mib - idle_mib
    pool = stats.get("pool_bytes", stats.get("peak_pool_bytes"))
    answer = record.get("estimate") or {}
    result = {"measured_mib": measured, "idle_mib": idle_mib, "ran_alone": alone}
    result["pool_mib"] = pool / MIB if pool is not None else None
    if measured is not None and pool is not None:
        result["context_mib"] = measured - pool / MIB
    if measured and answer.get("mib"):
        result["error"] = answer["mib"] / measured - 1
    return result


def line_of(record):
    answer, stats = record.get("estimate") or {}, record.get("memory_stats") or {}
    cells = [f"{record['case']}: status {record['status']} ({record.get('part')})"]
    for name, value in (
        ("measured", record.get("measured_mib")),
        ("context", record.get("context_mib")),
        ("pool", record.get("pool_mib")),
        ("peak in use", stats.get("peak_bytes_in_use", 0) / MIB or None),
        ("estimate", answer.get("mib")),
        ("floor", answer.get("floor_mib")),
        ("P99", answer.get("p99_mib")),
    ):
        cells.append(f"{name} {value:.0f} MiB" if value is not None else f"{name} ?")
    if "error" in record:
        cells.append(f"error {100 * record['error']:+.1f} %")
    return ", ".join(cells)


class Trial:
    def __init__(self, programs, output, seconds, folder):
        self.programs, self.output, self.folder = programs, output, folder
        self.deadline, self.lock = time.monotonic() + seconds, threading.Lock()
        self.idle_mib = device_memory_mib()

    def write(self, record):
        with self.lock, open(self.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            print(line_of(record), flush=True)

    def run(self, name, alone):
        """Runs a case unless the time is over. Returns its record."""
        if time.monotonic() > self.deadline:
            record = {"case": name, "status": "not begun: no time"}
            self.write(record)
            return record
        path = os.path.join(self.folder, name.replace(" ", "-") + ".json")
        status, text, seconds = start_case(name, path)
        record = {**read_json(path), "case": name, "status": status, "seconds": seconds}
        if status != 0:
            record["text"] = text
        try:
            record = with_estimate(record, self.programs, self.folder)
            record.update(compared(record, self.idle_mib, alone))
        except Exception:
            record["trial_error"] = traceback.format_exc()[-1500:]
        self.write(record)
        return record

    def run_all(self, names):
        first = self.run(names[0], alone=True)
        by_process = first.get("process_mib") is not None
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE if by_process else 1) as pool:
            for done in [pool.submit(self.run, name, not by_process) for name in names[1:]]:
                done.result()


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "case":
        run_case(*arguments[1:])
        return
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    programs, output, seconds = arguments[:3] + ["", "jax_trial.jsonl", "60"][len(arguments[:3]) :]
    names = arguments[3:] or list(CASES)
    bundled = os.path.join(os.path.abspath(programs), "python")
    if not os.path.isdir(PYTHON) and os.path.isdir(bundled):
        os.environ["COLLOC_TRIAL_PYTHON"] = bundled
    with tempfile.TemporaryDirectory(prefix="colloc-jax-") as folder:
        Trial(programs, output, float(seconds), folder).run_all(names)


if __name__ == "__main__":
    main()
