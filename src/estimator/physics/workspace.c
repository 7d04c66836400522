/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator/physics/workspace.h"

const struct workspace_shares workspace_shares =
#include "estimator/physics/workspace_shares.inc"
    ;

double workspace_of(const struct convolution *convolution, const struct workspace_shares *shares)
{
    if (!convolution->dense)
        return 0;
    const struct workspace_share *share =
        &shares->at[convolution->half][convolution->pointwise][convolution->pass];
    return share->input * convolution->input + share->output * convolution->output +
           convolution->weight;
}
