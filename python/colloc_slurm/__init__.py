# SPDX-License-Identifier: Apache-2.0
"""Slurm on one machine, for the tests and the demo of colloc under Slurm."""
