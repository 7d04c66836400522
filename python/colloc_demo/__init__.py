# SPDX-License-Identifier: Apache-2.0
"""What the demos share: the trace, the progress and the table."""
