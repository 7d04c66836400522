# SPDX-License-Identifier: Apache-2.0
"""Stages with images, for training and for serving: images.py STAGE [MODEL]

    read      makes the request's JPEG: 500 x 375 pixels, one of 64 pictures of random shapes
    decode    decodes it on the host, crops it to 224 x 224, perhaps mirrored: bytes
    train     a step of a ResNet with a batch
    infer     a ResNet's classes for a batch, in half precision on a GPU
    answer    the five best classes as text

read, decode and answer need Pillow, the others PyTorch and torchvision.
"""

import io
import os
import random
import sys

from stage import put_bytes, run_stage, take_bytes

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pictures import make_jpegs  # noqa: E402

SIZE = 224
PIXELS = SIZE * SIZE * 3
CLASSES = 1000


def run_read():
    jpegs = make_jpegs(64)

    def work(items):
        for item in items:
            item["jpeg"] = put_bytes(f"jpeg-{item['id']}", jpegs[item["id"] % len(jpegs)])
        return items

    run_stage(work, lambda n: [{"id": i} for i in range(n)])


def run_decode():
    from PIL import Image

    jpeg = make_jpegs(1)[0]

    def decode(item):
        with Image.open(io.BytesIO(take_bytes(item.pop("jpeg")))) as image:
            left, top = random.randrange(500 - SIZE), random.randrange(375 - SIZE)
            cropped = image.convert("RGB").crop((left, top, left + SIZE, top + SIZE))
            if random.random() < 0.5:
                cropped = cropped.transpose(Image.FLIP_LEFT_RIGHT)
            item["pixels"] = put_bytes(f"pixels-{item['id']}", cropped.tobytes())
        return item

    def sample(n):
        return [{"id": i, "jpeg": put_bytes(f"sample-{i}", jpeg)} for i in range(n)]

    run_stage(lambda items: [decode(item) for item in items], sample)


def sample_pixels(n):
    return [{"id": i, "pixels": put_bytes(f"sample-{i}", bytes(PIXELS))} for i in range(n)]


def load_batch(items):
    """The pixels of the items on the device: n x 3 x 224 x 224, about -1 to 1."""
    import torch
    from torch_stage import DEVICE

    data = bytearray(b"".join(take_bytes(item.pop("pixels")) for item in items))
    batch = torch.frombuffer(data, dtype=torch.uint8).view(-1, SIZE, SIZE, 3)
    return batch.to(DEVICE).permute(0, 3, 1, 2).float().div_(127.5).sub_(1)


def run_train(model_name):
    import torch
    import torchvision
    from torch_stage import DEVICE, resources, synchronize

    model = torchvision.models.get_model(model_name, weights=None).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def work(items):
        pixels = load_batch(items)
        labels = torch.tensor([item["id"] % CLASSES for item in items], device=DEVICE)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(pixels), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss_value = loss.item()
        return [{"id": item["id"], "loss": loss_value} for item in items]

    work(sample_pixels(2))
    synchronize()
    run_stage(work, sample_pixels, resources)


def run_infer(model_name):
    import torch
    import torchvision
    from torch_stage import DEVICE, HALF, resources, synchronize

    model = torchvision.models.get_model(model_name, weights=None).to(DEVICE, HALF).eval()

    def work(items):
        with torch.inference_mode():
            best = model(load_batch(items).to(HALF)).topk(5).indices.tolist()
        return [{"id": item["id"], "classes": classes} for item, classes in zip(items, best)]

    work(sample_pixels(1))
    synchronize()
    run_stage(work, sample_pixels, resources)


def run_answer():
    def work(items):
        for item in items:
            item["text"] = ", ".join(f"class {n}" for n in item.pop("classes"))
        return items

    run_stage(work, lambda n: [{"id": i, "classes": [1, 2, 3, 4, 5]} for i in range(n)])


def main():
    name, model = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "resnet50")
    stages = {
        "read": run_read,
        "decode": run_decode,
        "train": lambda: run_train(model),
        "infer": lambda: run_infer(model),
        "answer": run_answer,
    }
    stages[name]()


if __name__ == "__main__":
    main()
