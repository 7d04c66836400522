#include "estimator/workspace.h"

double workspace_of(const struct convolution *convolution)
{
    return convolution->dense ? convolution->input + convolution->output + convolution->weight : 0;
}
