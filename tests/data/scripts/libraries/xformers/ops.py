# SPDX-License-Identifier: Apache-2.0
"""The public interface of xformers.ops, whose kernels need a GPU."""


def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None):
    raise NotImplementedError("No operator found for `memory_efficient_attention_forward`")
