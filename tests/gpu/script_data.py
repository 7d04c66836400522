#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small data for the trial of other authors' scripts (script_trial.py).

    tests/gpu/script_data.py BUNDLE

BUNDLE has the scripts; BUNDLE/data gets the data, and BUNDLE/links, with a line `LINK TARGET` for
each symbolic link that a script needs to find its data, says where they go (relative to BUNDLE).
Everything is random: images, words, labels.
"""
import json
import os
import pickle
import random
import struct
import sys

import numpy as np

IMAGES, CLASSES = 48, 8  # real files and classes; the others are links to them
WORDS = 10000

# Trained networks that scripts load, with the ends of their files' names in PyTorch's cache.
TRAINED = {
    "vgg16": ["397923af"],
    "vgg19": ["dcbb9e9d"],
    "resnet18": ["f37072fd", "5c106cde"],
    "resnet50": ["0676ba61", "11ad3fa6", "19c8e357"],
}


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def mnist(data, draw):
    folder = os.path.join(data, "MNIST", "raw")
    for part, count in (("train", 60000), ("t10k", 10000)):
        images = draw.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = draw.integers(0, 10, count, dtype=np.uint8)
        head = struct.pack(">IIII", 2051, count, 28, 28)
        write(os.path.join(folder, f"{part}-images-idx3-ubyte"), head + images.tobytes())
        head = struct.pack(">II", 2049, count)
        write(os.path.join(folder, f"{part}-labels-idx1-ubyte"), head + labels.tobytes())


def cifar(data, draw):
    def batch(count, key, classes):
        labels = draw.integers(0, classes, count).tolist()
        return pickle.dumps(
            {"data": draw.integers(0, 256, (count, 3072), dtype=np.uint8), key: labels}
        )

    ten = os.path.join(data, "cifar-10-batches-py")
    for name in [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]:
        write(os.path.join(ten, name), batch(10000, "labels", 10))
    names = {"label_names": list("abcdefghij")}
    write(os.path.join(ten, "batches.meta"), pickle.dumps(names))
    hundred = os.path.join(data, "cifar-100-python")
    for name, count in (("train", 50000), ("test", 10000)):
        write(os.path.join(hundred, name), batch(count, "fine_labels", 100))
    names = {"fine_label_names": [f"c{number}" for number in range(100)]}
    write(os.path.join(hundred, "meta"), pickle.dumps(names))


def images(data, draw):
    """A folder of ImageNet's form, and flat folders of pictures, pairs and masks."""
    from PIL import Image

    pool = os.path.join(data, "pool")
    os.makedirs(pool, exist_ok=True)
    for number in range(IMAGES):
        small = draw.integers(0, 256, (20, 25, 3), dtype=np.uint8)
        picture = Image.fromarray(small).resize((320, 256))
        picture.save(os.path.join(pool, f"{number}.jpg"), quality=80)
        picture.resize((512, 256)).save(os.path.join(pool, f"pair{number}.jpg"), quality=80)
        picture.save(os.path.join(pool, f"{number}.png"))
        mask = Image.fromarray(draw.integers(0, 2, (16, 20), dtype=np.uint8)).resize((320, 256))
        mask.save(os.path.join(pool, f"mask{number}.png"))

    def link(folder, count, pattern, name="{}"):
        os.makedirs(os.path.join(data, folder), exist_ok=True)
        suffix = pattern[pattern.rindex(".") :]
        for number in range(count):
            target = os.path.join(pool, pattern.format(number % IMAGES))
            os.symlink(target, os.path.join(data, folder, name.format(number) + suffix))

    for one in range(CLASSES):
        link(f"imagenet/train/n{one}", 512, "{}.jpg")
        link(f"imagenet/val/n{one}", 32, "{}.jpg")
    for folder in ("pictures", "faces"):
        link(folder, 4096, "{}.jpg", "{:06}")
    for part in ("train", "test", "val"):
        link(f"pairs/{part}", 1024, "pair{}.jpg")
        for side in "AB":
            link(f"sides/{part}/{side}", 1024, "{}.jpg")
    link("masked/imgs", 1024, "{}.png")
    link("masked/masks", 1024, "mask{}.png")
    link("bsd/images/train", 512, "{}.jpg")
    link("bsd/images/test", 64, "{}.jpg")
    voc = "voc/VOCdevkit/VOC2012"
    link(f"{voc}/JPEGImages", 1024, "{}.jpg", "p{}")
    link(f"{voc}/SegmentationClass", 1024, "mask{}.png", "p{}")
    for part, numbers in (("train", range(960)), ("val", range(960, 1024))):
        place = os.path.join(data, voc, "ImageSets", "Segmentation", f"{part}.txt")
        write(place, "".join(f"p{number}\n" for number in numbers).encode())
    link("kitti/training/image_2", 512, "{}.png")
    link("kitti/training/semantic", 512, "mask{}.png")
    names = "".join(f"{number:06}.jpg " + "1 -1 " * 20 + "\n" for number in range(4096))
    attributes = " ".join(
        ["Black_Hair", "Blond_Hair", "Brown_Hair", "Male", "Young"] + [f"a{n}" for n in range(35)]
    )
    write(
        os.path.join(data, "faces", "list_attr_celeba.txt"), f"4096\n{attributes}\n{names}".encode()
    )


def detection(data):
    """Annotations of COCO's form for the pool of pictures."""
    draw = random.Random(0)
    for part, count in (("train2017", 1024), ("val2017", 32)):
        os.makedirs(os.path.join(data, "coco", part), exist_ok=True)
        pictures, boxes = [], []
        for number in range(count):
            name = f"{number:012}.jpg"
            target = os.path.join(data, "pool", f"{number % IMAGES}.jpg")
            os.symlink(target, os.path.join(data, "coco", part, name))
            pictures.append({"id": number, "file_name": name, "width": 320, "height": 256})
            for _ in range(4):
                x, y = draw.randrange(200), draw.randrange(150)
                width, height = draw.randrange(20, 100), draw.randrange(20, 100)
                corners = [x, y, x + width, y, x + width, y + height, x, y + height]
                boxes.append({
                    "id": len(boxes) + 1, "image_id": number, "category_id": draw.randrange(1, 90),
                    "bbox": [x, y, width, height], "area": width * height, "iscrowd": 0,
                    "segmentation": [corners],
                })  # fmt: skip
        kinds = [{"id": number, "name": str(number)} for number in range(1, 91)]
        content = {"images": pictures, "annotations": boxes, "categories": kinds}
        place = os.path.join(data, "coco", "annotations", f"instances_{part}.json")
        write(place, json.dumps(content).encode())


def text(data, draw):
    words = np.array([f"w{number}" for number in range(WORDS)])
    for name, lines in (("train", 20000), ("valid", 500), ("test", 500)):
        rows = draw.integers(0, WORDS, (lines, 20))
        content = "\n".join(" ".join(words[row]) for row in rows)
        write(os.path.join(data, "words", f"{name}.txt"), content.encode())
        if name == "train":
            write(os.path.join(data, "words", "wikitext-2.txt"), content.encode())
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz .,!?\nABCDEFGHIJKLMNOPQRSTUVWXYZ123456"))
    content = "".join(letters[draw.integers(0, len(letters), 1_000_000)])
    write(os.path.join(data, "words", "input.txt"), content.encode())


def tokens(data, draw):
    for name, most in (("openwebtext", 50257), ("letters", 65), ("tinystories", 32000)):
        for part in ("train", "val"):
            made = draw.integers(0, most, 4_000_000, dtype=np.uint16)
            write(os.path.join(data, name, f"{part}.bin"), made.tobytes())
    letters = {"vocab_size": 65, "itos": {}, "stoi": {}}
    write(os.path.join(data, "letters", "meta.pkl"), pickle.dumps(letters))
    head = np.zeros(256, dtype=np.int32)
    head[:3] = 20240520, 1, 4_000_000
    made = draw.integers(0, 50257, 4_000_000, dtype=np.uint16)
    write(os.path.join(data, "llmc.bin"), head.tobytes() + made.tobytes())
    rows = (
        {"context": draw.integers(1, 50000, 60).tolist(),
         "completion": draw.integers(1, 50000, 60).tolist()}
        for _ in range(4096)
    )  # fmt: skip
    content = "".join(json.dumps(row) + "\n" for row in rows)
    write(os.path.join(data, "pairs.jsonl"), content.encode())


def weights(data):
    """Empty weights in the place of the trained ones that scripts load from disk."""
    import torch
    import torchvision

    hub = os.path.join(data, "hub", "checkpoints")
    os.makedirs(hub, exist_ok=True)
    for name, ends in TRAINED.items():
        with torch.device("meta"):
            shapes = torchvision.models.get_model(name, weights=None).state_dict()
        empty = {key: torch.zeros(like.shape, dtype=like.dtype) for key, like in shapes.items()}
        for end in ends:
            torch.save(empty, os.path.join(hub, f"{name}-{end}.pth"))


def bert(data):
    """A tokenizer and untrained weights in the form of bert-base-cased."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    place = os.path.join(data, "bert")
    os.makedirs(place, exist_ok=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + [f"w{number}" for number in range(2000)]
    words += [f"[unused{number}]" for number in range(28996 - len(words))]
    vocabulary = os.path.join(place, "vocab.txt")
    write(vocabulary, "\n".join(words).encode())
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig(vocab_size=28996)).save_pretrained(place)
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": 512}
    write(os.path.join(place, "tokenizer_config.json"), json.dumps(settings).encode())
    BertTokenizer(vocabulary).save_pretrained(place)


def links(bundle):
    with open(os.path.join(bundle, "links"), encoding="utf-8") as file:
        for line in file:
            link, target = (os.path.join(bundle, part) for part in line.split())
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if not os.path.lexists(link):
                os.symlink(target, link)


def main():
    bundle = os.path.abspath(sys.argv[1])
    data, draw = os.path.join(bundle, "data"), np.random.default_rng(0)
    if not os.path.exists(os.path.join(data, "done")):
        for make in (mnist, cifar, images, text, tokens):
            make(data, draw)
        detection(data)
        for make in (weights, bert):
            try:
                make(data)
            except Exception as error:  # a library that is missing or has changed: one script less
                print(f"no {make.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        write(os.path.join(data, "done"), b"")
    links(bundle)


if __name__ == "__main__":
    main()
