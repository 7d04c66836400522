/* SPDX-License-Identifier: Apache-2.0 */
/* The stop rule of an array as text: "asha:metric=val_loss,min,rung=3,factor=3". */
#ifndef COLLOC_CORE_STOP_SPEC_H
#define COLLOC_CORE_STOP_SPEC_H

#include "base/fault.h"
#include "core/halving.h"

/* Reads such a text. Returns 0, or -EINVAL with a fault. */
int stop_spec_parse(const char *text, struct fault *fault, struct halving_rule *ret_rule);

#endif
