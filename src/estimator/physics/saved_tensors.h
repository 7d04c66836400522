/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors that autograd keeps of a layer between the forward and the backward pass, by the
 * layer's type: the rules of PyTorch's tools/autograd/derivatives.yaml.
 */
#ifndef COLLOC_PHYSICS_SAVED_TENSORS_H
#define COLLOC_PHYSICS_SAVED_TENSORS_H

#include <stdbool.h>

#include "model/model.h"

struct saved_tensors {
    bool input, output;
    bool in_place; /* usually writes over its input (its gradient needs the result alone) */
    double bytes;  /* per output element, beside tensors */
    double maps;   /* further tensors of the output's size and type */
    bool raises;   /* autocast makes these maps and the output 32 bit, the input's cast being one of
                      them */
    bool single_precision; /* autocast runs it in 32 bit */
    bool half_precision;   /* autocast runs it in 16 bit */
    bool raised;           /* its Python code computes in 32 bit, and turns the result back */
    bool promotes;         /* its output has its parameters' type: 32 bit */
};

/* Returns what autograd saves for the gradient of this layer. */
struct saved_tensors saved_tensors_of(const struct layer *layer);

#endif
