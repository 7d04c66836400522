# SPDX-License-Identifier: Apache-2.0
"""A launcher of Hydra for colloc."""
