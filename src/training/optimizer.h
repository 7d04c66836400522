/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizers of a training, and the memory that PyTorch's implementations (the foreach form,
 * the default) need per parameter. One table: names, aliases, states.
 */
#ifndef COLLOC_TRAINING_OPTIMIZER_H
#define COLLOC_TRAINING_OPTIMIZER_H

enum optimizer {
    OPTIMIZER_NOT_GIVEN,
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
    int states;      /* tensors of the parameter's size between steps */
    int temporaries; /* further ones during step() */
};

/* The names in the table, NULL-terminated: for help and completion. */
extern const char *const optimizer_names[OPTIMIZER_OTHER];

/* Parses a name or an alias ("sgdm") in any case. Returns OPTIMIZER_NOT_GIVEN for NULL and "",
 * OPTIMIZER_OTHER for a name that is not in the table. */
enum optimizer optimizer_parse(const char *text);

/* Returns the name; "" for OPTIMIZER_NOT_GIVEN, "other" for OPTIMIZER_OTHER. */
const char *optimizer_name(enum optimizer optimizer);

/* Returns the optimizer that estimates assume: OPTIMIZER_ADAM, which needs the most memory, for
 * OPTIMIZER_NOT_GIVEN and OPTIMIZER_OTHER. */
enum optimizer optimizer_assumed(enum optimizer optimizer);

/* Returns the traits of the assumed optimizer. Never NULL. */
const struct optimizer_traits *optimizer_traits(enum optimizer optimizer);

#endif
