# SPDX-License-Identifier: Apache-2.0
"""What counts as the scratch memory of a convolution."""
import os
import sys
import unittest

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python")
)

from colloc_collect.kernels import peak_of, scratch_of  # noqa: E402

BOTH, WEIGHT_ALONE, INPUT_ALONE = [True, True, False], [False, True, False], [True, False, False]


class Peak(unittest.TestCase):
    def test_only_what_is_given_back_counts(self):
        self.assertEqual(peak_of([1000]), 0)
        self.assertEqual(peak_of([1000, 70, -1]), 70)

    def test_one_after_the_other_and_both_at_once(self):
        self.assertEqual(peak_of([70, -1, 30, -1]), 70)
        self.assertEqual(peak_of([70, 30, -1, -2]), 100)


class OfAConvolution(unittest.TestCase):
    def test_forward(self):
        self.assertEqual(scratch_of([5000, 70, -1], None, 0), [70])

    def test_the_weights_gradient_divides_backward(self):
        self.assertEqual(scratch_of([5000, 70, -1, 600, 30, -1], BOTH, 600), [70, 30])
        self.assertEqual(scratch_of([5000, 70, -1, 600, 30, -1, 24], BOTH, 600), [70, 30])

    def test_an_inputs_gradient_of_the_weights_size(self):
        self.assertEqual(scratch_of([600, 70, -1, 600, 30, -1], BOTH, 600), [70, 30])

    def test_one_gradient_alone(self):
        self.assertEqual(scratch_of([600, 30, -1], WEIGHT_ALONE, 600), [None, 30])
        self.assertEqual(scratch_of([5000, 70, -1], INPUT_ALONE, 600), [70, None])


if __name__ == "__main__":
    unittest.main()
