# SPDX-License-Identifier: Apache-2.0
"""Masks of polygons."""
import numpy as np
from PIL import Image, ImageDraw


def frPyObjects(polygons, height, width):
    return [(polygon, height, width) for polygon in polygons]


def decode(objects):
    masks = []
    for polygon, height, width in objects:
        image = Image.new("L", (width, height))
        ImageDraw.Draw(image).polygon(polygon, fill=1)
        masks.append(np.asarray(image))
    return np.stack(masks, axis=2)
