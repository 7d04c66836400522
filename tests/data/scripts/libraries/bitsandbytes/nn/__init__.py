# SPDX-License-Identifier: Apache-2.0
from .modules import Linear4bit, Linear8bitLt

__all__ = ["Linear4bit", "Linear8bitLt"]
