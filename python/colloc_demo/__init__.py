# SPDX-License-Identifier: Apache-2.0
"""Shared by the demos: the trace, the progress and the table."""
