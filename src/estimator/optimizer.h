/* What an optimizer of PyTorch keeps per parameter, and what it takes while it steps (its foreach
 * form, the default).
 */
#ifndef COLLOC_ESTIMATOR_OPTIMIZER_H
#define COLLOC_ESTIMATOR_OPTIMIZER_H

struct optimizer {
    const char *name;
    int states;      /* tensors of the parameter's size that stay */
    int temporaries; /* the same, during step() */
};

/* NULL: no optimizer of that name is known. */
const struct optimizer *optimizer_find(const char *name);

/* Taken where nobody says which. */
const struct optimizer *optimizer_usual(void);

#endif
