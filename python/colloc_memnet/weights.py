# SPDX-License-Identifier: Apache-2.0
"""A trained network as text, the form that src/estimator/gpumemnet/gpumemnet_text.c reads.

A line with the version, lines of "name value", a checksum (FNV-1a, 64 bits), and all numbers as the
bits of IEEE singles in hexadecimal: first the scaling, then the weights in the network's order.
"""

import struct

VERSION = 1
VALUES, TOKEN_SIZE = 13, 3  # inputs of a row, and of a layer
NUMBERS_PER_LINE = 12


def fnv1a(data):
    """The 64-bit FNV-1a hash of bytes."""
    result = 0xCBF29CE484222325
    for byte in data:
        result = ((result ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return result


def padded(numbers, size):
    return list(numbers) + [0.0] * (size - len(numbers))


def scaling_numbers(scaling):
    """The scaling in the order of struct gpumemnet_scaling, with zeros for inputs it lacks."""
    return (
        padded(scaling.mean, VALUES)
        + padded(scaling.factor, VALUES)
        + padded(scaling.token_mean, TOKEN_SIZE)
        + padded(scaling.token_factor, TOKEN_SIZE)
    )


def format_network(plan, seed, scaling, classes, numbers):
    """Returns the text.

    plan:    feed.Plan
    scaling: rows.Scaling, of the training rows
    classes: how many the network answers with
    numbers: floats, all weights and running moments in the network's order
    """
    everything = scaling_numbers(scaling) + list(numbers)
    words = [struct.pack(">f", number).hex() for number in everything]
    lines = [
        " ".join(words[i : i + NUMBERS_PER_LINE]) for i in range(0, len(words), NUMBERS_PER_LINE)
    ]
    body = "\n".join(lines) + "\n"
    return (
        f"colloc-gpumemnet {VERSION}\nfamily {plan.family}\nmethod {plan.method}\n"
        f"bin_mib {plan.bin_mib}\nclasses {classes}\nlongest {scaling.longest}\nseed {seed}\n"
        f"numbers {len(words)}\nchecksum {fnv1a(body.encode()):016x}\n{body}"
    )


def parse_numbers(text):
    """All numbers of a text, after its head: scaling and weights. For tests."""
    body = text.split("checksum ", 1)[1].split("\n", 1)[1]
    return [struct.unpack(">f", bytes.fromhex(word))[0] for word in body.split()]
