/* SPDX-License-Identifier: Apache-2.0 */
/* Names of modules that run beside each other. */
#ifndef COLLOC_MODEL_BRANCH_NAME_H
#define COLLOC_MODEL_BRANCH_NAME_H

#include "model/model.h"

/* What a child of a module reads, by its name. */
enum branch_role {
    BRANCH_NONE,    /* it is no branch by its name */
    BRANCH_BEGINS,  /* what the module reads */
    BRANCH_GOES_ON, /* what its predecessor has put out */
    BRANCH_FORKS,   /* the same as its predecessor */
};

/*
 * Finds the role of a layer by its name.
 *
 * before: the name of the branch, or of the part of one, before it in the same module; empty: there
 *     is none.
 */
enum branch_role branch_role_of(struct span name, struct span before);

#endif
