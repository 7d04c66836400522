# SPDX-License-Identifier: Apache-2.0
"""Training and evaluating the learned estimators of memory (docs/memnet.md).

`colloc memnet` computes the inputs of the networks in C, as an estimate does, and becomes this
program, whose standard input it fills (`feed`). `train` needs PyTorch; `evaluate` does not.
"""
