# SPDX-License-Identifier: Apache-2.0
"""Stable names of configurations and models."""
import hashlib
import json


def identify(value):
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def model_key(row):
    """The name of a model: the same for every batch, optimizer and precision."""
    return row["model"] if row["kind"] == "real" else identify(row["model"])
