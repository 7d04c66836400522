# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors shared between processes by torch.multiprocessing, checked bit for bit. A program of
ipc_trial.py, which prints one JSON object.

    ipc_share.py spawn|forkserver|fork N_TENSORS
"""
import hashlib
import json
import sys
import time

import torch
import torch.multiprocessing as mp

SIZES = [16, 5000, 300 << 10, (1 << 20) - 4, 1 << 20, 3 << 20, 20 << 20, 64 << 20, 300 << 20]


def digest(tensor):
    return hashlib.sha256(tensor.cpu().numpy().tobytes()).hexdigest()


def made(n_bytes, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(0, 255, (n_bytes,), generator=generator, device="cuda").to(torch.uint8)


def consume(requests, answers):
    """Answers with digests, and changes what it is asked to change."""
    while True:
        word, tensor = requests.get()
        if word == "end":
            return
        if word == "add":
            tensor.add_(1)
            torch.cuda.synchronize()
        answers.put(digest(tensor))
        del tensor


def produce(requests, answers):
    """Makes tensors by seed, and keeps each until it is asked for the next one."""
    held = None
    while True:
        n_bytes, seed = requests.get()
        if n_bytes == 0:
            return
        held = made(n_bytes, seed)
        answers.put(held)
    del held


class Batches(torch.utils.data.Dataset):
    """Of CUDA tensors, made by the workers of a DataLoader."""

    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.full((1 << 20,), i, dtype=torch.int32, device="cuda")


def exchange(context, n):
    result = {}
    requests, answers = context.Queue(), context.Queue()
    consumer = context.Process(target=consume, args=(requests, answers))
    consumer.start()
    begin = time.perf_counter()
    equal = []
    for seed, size in enumerate(SIZES):
        tensor = made(size, seed)
        requests.put(("read", tensor))
        equal.append(answers.get(timeout=60) == digest(tensor))
        view = tensor[size // 2 :]
        requests.put(("add", view))
        equal.append(answers.get(timeout=60) == digest(view))
        del tensor, view
    result["sent"], result["sent_equal"] = len(equal), sum(equal)
    result["sent_s"] = round(time.perf_counter() - begin, 3)

    begin = time.perf_counter()
    waiting, equal = [], []
    for seed in range(n):
        tensor = made((100 << 10) + seed * (40 << 10), seed)
        waiting.append((tensor, digest(tensor)))
        requests.put(("read", tensor))
        del tensor
        if len(waiting) == 8:
            equal.append(answers.get(timeout=60) == waiting.pop(0)[1])
    while waiting:
        equal.append(answers.get(timeout=60) == waiting.pop(0)[1])
    result["loop"], result["loop_equal"] = n, sum(equal)
    result["loop_s"] = round(time.perf_counter() - begin, 3)
    requests.put(("end", None))
    consumer.join(30)
    result["consumer"] = consumer.exitcode
    return result


def receive(context):
    requests, answers = context.Queue(), context.Queue()
    producer = context.Process(target=produce, args=(requests, answers))
    producer.start()
    equal = []
    for seed, size in enumerate(SIZES):
        requests.put((size, seed))
        tensor = answers.get(timeout=60)
        equal.append(digest(tensor) == digest(made(size, seed)))
        del tensor
    requests.put((0, 0))
    producer.join(30)
    return {"got": len(equal), "got_equal": sum(equal), "producer": producer.exitcode}


def load(method):
    loader = torch.utils.data.DataLoader(
        Batches(), 2, num_workers=2, multiprocessing_context=method, collate_fn=torch.stack
    )
    sums = [int(batch.sum(dtype=torch.int64)) >> 20 for batch in loader]
    return {"loaded_right": sums == [2 * i + 1 for i in range(0, 16, 2)]}


def main():
    method, n = sys.argv[1], int(sys.argv[2])
    context = mp.get_context(method)
    result = {"method": method}
    begin = time.perf_counter()
    for part in (
        lambda: exchange(context, n),
        lambda: receive(context),
        lambda: {} if method == "fork" else load(method),
    ):
        try:
            result.update(part())
        except Exception as problem:
            result.setdefault("errors", []).append(repr(problem)[:300])
            break
    result["total_s"] = round(time.perf_counter() - begin, 2)
    torch.cuda.ipc_collect()
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
