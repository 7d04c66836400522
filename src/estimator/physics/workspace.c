/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch memory of convolutions.
 *
 * cuDNN's fast kernels for dense convolutions read and write maps with the channels last, while
 * PyTorch's default is channels first. So a kernel first copies its input, its output or both into
 * the other layout, and the weight too; that copy is the workspace. Kernels differ in what they
 * copy, so the forward pass and each backward pass have separate shares of input and output, fitted
 * to measured runs:
 *
 *     workspace = share.input * input + share.output * output + weight
 *
 * Kernels for grouped convolutions take no workspace.
 */
#include "estimator/physics/workspace.h"

const struct workspace_shares workspace_shares =
#include "estimator/physics/workspace_shares.inc"
    ;

double workspace_of(const struct convolution *convolution, const struct workspace_shares *shares)
{
    if (!convolution->dense)
        return 0;
    const struct workspace_share *share =
        &shares->at[convolution->precision][convolution->taps][convolution->pass];
    return share->input * convolution->input + share->output * convolution->output +
           convolution->weight;
}
