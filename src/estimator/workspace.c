#include "estimator/workspace.h"

const struct workspace_shares workspace_shares =
#include "estimator/workspace_shares.inc"
    ;

double workspace_of(const struct convolution *convolution, const struct workspace_shares *shares)
{
    if (!convolution->dense)
        return 0;
    double share = convolution->pointwise  ? shares->pointwise
                   : convolution->backward ? shares->backward
                                           : shares->forward;
    return share * (convolution->input + convolution->output) + convolution->weight;
}
