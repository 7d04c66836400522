/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizers of a training: what each of PyTorch's keeps per parameter, and what it takes while
 * it steps (its foreach form, the default). One table: names, aliases, states.
 */
#ifndef COLLOC_TRAINING_OPTIMIZER_H
#define COLLOC_TRAINING_OPTIMIZER_H

enum optimizer {
    OPTIMIZER_UNSAID,
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_RMSPROP,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_OTHER, /* one that is not in the table */
    OPTIMIZERS
};

struct optimizer_traits {
    int states;      /* tensors of the parameter's size that stay */
    int temporaries; /* the same, during step() */
};

/* The names of those that are known, NULL-terminated: for help and completion. */
extern const char *const optimizer_names[OPTIMIZER_OTHER];

/* A name or an alias ("sgdm"), in any case. NULL and "" are OPTIMIZER_UNSAID; any other name is
 * OPTIMIZER_OTHER, since there are many more than are known here. */
enum optimizer optimizer_parse(const char *text);

/* The name; "" for OPTIMIZER_UNSAID, "other" for OPTIMIZER_OTHER. */
const char *optimizer_name(enum optimizer optimizer);

/* What stands in for OPTIMIZER_UNSAID and OPTIMIZER_OTHER: OPTIMIZER_ADAM, the usual one, which
 * takes the most. */
enum optimizer optimizer_assumed(enum optimizer optimizer);

/* Of the one that is assumed. Never NULL. */
const struct optimizer_traits *optimizer_traits(enum optimizer optimizer);

#endif
