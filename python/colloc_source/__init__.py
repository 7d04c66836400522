# SPDX-License-Identifier: Apache-2.0
"""How the C sources of colloc hang together: what scripts/call-graph and check-components read."""
