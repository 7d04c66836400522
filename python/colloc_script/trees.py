# SPDX-License-Identifier: Apache-2.0
"""Arguments of operations: trees with tensors among their leaves."""
import torch
from torch.utils._pytree import tree_map

from colloc_export.tracker import WITHOUT_TENSORS


def mapped(function, tree):
    """A copy of a tree with each tensor replaced."""
    if isinstance(tree, torch.Tensor):
        return function(tree)
    if type(tree) in WITHOUT_TENSORS:
        return tree
    if type(tree) in (list, tuple):
        return type(tree)([mapped(function, one) for one in tree])
    if type(tree) is dict:
        return {key: mapped(function, one) for key, one in tree.items()}
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)
