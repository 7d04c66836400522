# SPDX-License-Identifier: Apache-2.0
"""JPEGs that stand for photographs: what it takes to decode them is what counts.

    pictures.py FOLDER [COUNT]
        makes a folder of COUNT (640) of them in ten classes, as torchvision's ImageFolder reads it

Needs Pillow.
"""
import io
import os
import random
import sys

CLASSES = 10


# As large as ImageNet's on average: 147,897,477,120 bytes (ILSVRC2012_img_train.tar) of 1,281,167.
IMAGENET = {"blur": 0.5, "quality": 95}


def make_jpegs(count, blur=1, quality=85):
    """500 x 375 pixels of random shapes, which compress about as photographs do: 20 to 40 KiB."""
    from PIL import Image, ImageDraw, ImageFilter

    chance, jpegs = random.Random(1), []
    for _ in range(count):
        image = Image.effect_noise((500, 375), 40).convert("RGB")
        draw = ImageDraw.Draw(image)
        for _ in range(30):
            x, y = chance.randrange(500), chance.randrange(375)
            color = tuple(chance.randrange(256) for _ in range(3))
            draw.ellipse((x, y, x + chance.randrange(120), y + chance.randrange(120)), fill=color)
        out = io.BytesIO()
        image.filter(ImageFilter.GaussianBlur(blur)).save(out, "JPEG", quality=quality)
        jpegs.append(out.getvalue())
    return jpegs


def write_folder(folder, count, **form):
    for number, jpeg in enumerate(make_jpegs(count, **form)):
        place = os.path.join(folder, f"class-{number % CLASSES}")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"{number}.jpg"), "wb") as file:
            file.write(jpeg)


if __name__ == "__main__":
    write_folder(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 640)
