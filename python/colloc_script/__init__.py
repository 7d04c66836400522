# SPDX-License-Identifier: Apache-2.0
"""Follows a user's unmodified PyTorch training script without a GPU. See docs/script-estimate.md.

`inject/sitecustomize.py` is on the script's PYTHONPATH and calls `follow.install` once PyTorch is
imported. From then on CUDA appears to be there: tensors on it have shapes and no data, tensors on
the CPU are real. The run ends after the second optimizer step, and what the GPU would have held is
written in the exporter's format (docs/export.md).
"""
