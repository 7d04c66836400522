# SPDX-License-Identifier: Apache-2.0
"""Puts everything in place once PyTorch is imported, and ends the process with a result."""
import gc
import os
import sys
import threading

import torch

from colloc_export.cuda_rules import cuda_rules
from colloc_export.recurrent import flatten

from . import cuda_module, ending, fake_tensor, loaders, result, several_gpus, training
from .device import Device, is_fake


def _end(folder):
    def end(seen):
        """Writes the result and ends the process at once: no code of the script runs after it."""
        try:
            result.write(seen, folder)
        except Exception as error:
            ending.write(f"cannot describe the run: {ending.reason_of(error)}")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    return end


def _patch_recurrent():
    flatten_parameters = torch.nn.RNNBase.flatten_parameters

    def flattened(module):
        if all(map(is_fake, module.parameters())):
            flatten(module)
        else:
            flatten_parameters(module)

    torch.nn.RNNBase.flatten_parameters = flattened


def _patch_distributions():
    """Their checks of samples would find values that are not known outside of the support."""
    torch.distributions.Distribution.set_default_validate_args(False)


def install(folder):
    """Follows this process from now on.

    folder: where the result goes
    """
    torch.set_num_threads(1)  # as in a loader's worker: on a busy machine threads only wait
    device = Device()
    seen = training.Training(device, _end(folder))
    ending.explain_end_by(seen.progress)
    fake_tensor.patch(device)
    cuda_module.patch(device)
    several_gpus.patch(seen)
    training.patch(seen)
    loaders.patch(seen)
    _patch_recurrent()
    _patch_distributions()
    rules = cuda_rules(device.operations.note_attention, device.operations.note_recurrent)
    rules.__enter__()
    device.__enter__()
    threading.current_thread()._colloc_kept = (rules, device)  # until the process ends
    gc.collect()
