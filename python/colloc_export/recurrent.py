# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers as cuDNN runs them: all steps and layers in one operation.

It keeps a reserve for the backward pass and takes workspaces. The sizes are cuDNN 9's, measured at
the allocator: exact for LSTM and GRU of two layers in one or both directions; other shapes are
computed from the same terms. Layers with tanh and relu were not measured.
"""
import torch

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
RESERVED = {
    "lstm": 5,
    "gru": 6,
    "rnn_tanh": 2,
    "rnn_relu": 2,
}  # units that each unit of the output keeps: gates and cell states
MIB = 1 << 20


class Shape:
    """The properties of a recurrent layer that decide its sizes."""

    def __init__(self, kind, layers, directions, has_biases, dropout):
        self.kind, self.layers, self.directions, self.has_biases, self.dropout = (
            kind,
            layers,
            directions,
            has_biases,
            dropout,
        )

    def reserve(self, steps, batch, units, element):
        """Bytes kept for the backward pass.

        The gates of each layer and, between layers, the output and a bit per element for dropout.
        """
        of_layers = self.layers * self.directions * RESERVED[self.kind]
        between = self.directions * (self.layers - 1)
        bits = batch * -(-steps * units * between // 8) if self.dropout else 0
        return (of_layers + between) * steps * batch * units * element + bits + 256

    def workspace(self, steps, batch, inputs, units, element, weights):
        """Bytes of scratch memory.

        The weights without their biases, 16 MiB per direction, gradients of gates and states.
        """
        biases = (
            2 * GATES[self.kind] * units * self.layers * self.directions if self.has_biases else 0
        )
        directions, states = self.directions, 2 if self.kind == "lstm" else 1
        each_step = directions * (GATES[self.kind] + 1 + directions) * units + inputs
        of_states = states * self.layers * directions * (4 + directions) * units
        return (
            (weights - biases) * element
            + directions * 16 * MIB
            + 256
            + batch * (element * (steps * each_step + of_states) + 8)
        )


class _Flat(torch.autograd.Function):
    """Autocast casts the weights into one buffer; their gradients come back one by one."""

    @staticmethod
    def forward(ctx, *weights):
        ctx.shapes = [weight.shape for weight in weights]
        return weights[0].new_empty(sum(weight.numel() for weight in weights), dtype=torch.float16)

    @staticmethod
    def backward(ctx, gradient):
        return tuple(part.float() for part in _views(gradient, ctx.shapes))


def _views(flat, shapes):
    parts = flat.split([shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes)]


class _Recurrent(torch.autograd.Function):
    """Steps first: input and output are [steps, batch, units]."""

    @staticmethod
    def forward(ctx, shape, input, hidden, cell, *weights):
        ctx.shape, ctx.sizes = shape, (*input.shape, hidden.shape[-1], input.element_size())
        dense = input.contiguous()
        steps, batch, _ = input.shape
        output = input.new_empty(steps, batch, hidden.shape[-1] * shape.directions)
        states = [torch.empty_like(state) for state in (hidden, cell) if state is not None]
        workspace = _workspace(ctx, input, weights)
        reserve = input.new_empty(
            shape.reserve(steps, batch, hidden.shape[-1], input.element_size()), dtype=torch.uint8
        )
        del dense, workspace
        ctx.has_cell = cell is not None
        ctx.save_for_backward(input, hidden, cell, output, reserve, *weights)
        return (output, *states)

    @staticmethod
    def backward(ctx, gradient, *of_states):
        input, hidden, cell, _, _, *weights = ctx.saved_tensors
        dense, gradient = input.contiguous(), gradient.contiguous()
        of_input = input.new_empty(input.shape)
        of_hidden, of_cell = (
            torch.empty_like(hidden),
            torch.empty_like(cell) if ctx.has_cell else None,
        )
        workspace = _workspace(ctx, input, weights)
        del workspace, gradient, dense
        dense = input.contiguous()
        flat = input.new_empty(sum(weight.numel() for weight in weights))
        workspace = _workspace(ctx, input, weights)
        del workspace, dense
        return (
            None,
            of_input,
            of_hidden,
            of_cell,
            *_views(flat, [weight.shape for weight in weights]),
        )


def flatten(module):
    """Moves the layer's weights into one block, as its transfer to a GPU does.

    Returns the block, in a list.
    """
    weights = [weight for weight in module._flat_weights if weight is not None]
    flat = weights[0].new_empty(sum(weight.numel() for weight in weights)).detach()
    if not torch._has_compatible_shallow_copy_type(weights[0], flat):
        return []
    for weight, part in zip(weights, _views(flat, [weight.shape for weight in weights])):
        weight.data = part
    return [flat]


def _workspace(ctx, input, weights):
    steps, batch, inputs, units, element = ctx.sizes
    count = ctx.shape.workspace(
        steps, batch, inputs, units, element, sum(weight.numel() for weight in weights)
    )
    return input.new_empty(count, dtype=torch.uint8)


def recurrent(kind, is_autocast, on_recurrent):
    """Returns a replacement for aten's operator of this kind.

    Under autocast cuDNN computes in half precision, whatever autocast's type is.

    on_recurrent: called with the input [steps, batch, units], the weights, and how many steps of
        layers follow one another
    """

    def kernel(
        input, hidden, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    ):
        shape = Shape(
            kind, num_layers, 2 if bidirectional else 1, has_biases, dropout > 0 and train
        )
        hidden, cell = hidden if isinstance(hidden, (list, tuple)) else (hidden, None)
        if is_autocast():
            params = [_Flat.apply(*params)]
            hidden, cell, input = hidden.half(), None if cell is None else cell.half(), input.half()
        steps_first = input.transpose(0, 1) if batch_first else input
        on_recurrent(steps_first, params, steps_first.shape[0] * num_layers * shape.directions)
        output, *states = _Recurrent.apply(shape, steps_first, hidden, cell, *params)
        return (output.transpose(0, 1) if batch_first else output, *states)

    return kernel
