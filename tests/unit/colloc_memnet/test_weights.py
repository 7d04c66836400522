# SPDX-License-Identifier: Apache-2.0
"""Files of weights: those of data/memnet are read and written again to the letter."""

import glob
import os
import sys
import types
import unittest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))

from colloc_memnet import feed, weights  # noqa: E402


def head_of(text):
    return dict(line.split(" ", 1) for line in text.splitlines()[1:9])


class Weights(unittest.TestCase):
    def test_hash(self):  # the published examples of 64-bit FNV-1a
        self.assertEqual(weights.fnv1a(b""), 0xCBF29CE484222325)
        self.assertEqual(weights.fnv1a(b"a"), 0xAF63DC4C8601EC8C)
        self.assertEqual(weights.fnv1a(b"foobar"), 0x85944171F73967E8)

    def test_built_in_files_are_reproduced(self):
        paths = glob.glob(os.path.join(ROOT, "data", "memnet", "*.txt"))
        self.assertEqual(len(paths), 8)
        for path in paths:
            with open(path, encoding="ascii") as file:
                text = file.read()
            head, numbers = head_of(text), weights.parse_numbers(text)
            values, token = weights.VALUES, weights.TOKEN_SIZE
            starts = [0, values, 2 * values, 2 * values + token, 2 * (values + token)]
            parts = [numbers[a:b] for a, b in zip(starts, starts[1:])]
            scaling = types.SimpleNamespace(
                mean=parts[0],
                factor=parts[1],
                token_mean=parts[2],
                token_factor=parts[3],
                longest=int(head["longest"]),
            )
            plan = feed.Plan("", head["family"], head["method"], int(head["bin_mib"]), (), (), ())
            again = weights.format_network(
                plan, int(head["seed"]), scaling, int(head["classes"]), numbers[starts[-1] :]
            )
            self.assertEqual(again, text, path)


if __name__ == "__main__":
    unittest.main()
