/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the tape share: a summary's text becomes a tape, which is replayed. */
#ifndef COLLOC_TESTS_ESTIMATOR_TAPE_CASE_H
#define COLLOC_TESTS_ESTIMATOR_TAPE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "estimator/estimator.h"
#include "estimator/physics/allocator_replay.h"
#include "estimator/physics/tape_build.h"

#define TREE "Layer (type:depth-idx)  Output Shape  Param #\n====\n"

struct built {
    struct model *model;
    struct tape tape;
    struct footprint footprint;
};

static const struct gpu_traits bare = {.match = ""};

static inline void build(
    const char *text, struct estimate_request request, const char *optimizer, struct built *ret)
{
    struct fault fault = {""};
    const char *why = "";
    assert_int_equal(model_parse(text, strlen(text), &fault, &ret->model), 0);
    request.model = ret->model;
    int r = tape_build(&request, &fault, &ret->tape, &why);
    if (r != 0)
        fail_msg("%s%s", fault.text, why);
    assert_int_equal(allocator_replay_tape(&ret->tape, optimizer_traits(optimizer_parse(optimizer)),
                         &bare, 0, &fault, &ret->footprint),
        0);
}

static inline void drop(struct built *built)
{
    tape_fini(&built->tape);
    model_destroy(built->model);
}

static inline int count_kind(const struct tape *tape, enum layer_kind kind)
{
    int n = 0;
    for (size_t i = 0; i < tape->n_ops; i++)
        n += tape->ops[i].kind == kind;
    return n;
}

static const struct op *last_of(const struct built *built, enum layer_kind kind)
{
    const struct op *found = NULL;
    for (size_t i = 0; i < built->tape.n_ops; i++)
        if (built->tape.ops[i].kind == kind)
            found = &built->tape.ops[i];
    assert_non_null(found);
    return found;
}

/* Returns the bytes that autograd keeps for each sample, of a tree in torchinfo's form. */
static inline double saved_by(const char *tree)
{
    struct built b;
    build(tree, (struct estimate_request){.batch = 1}, "sgd", &b);
    double saved = b.footprint.saved;
    drop(&b);
    return saved;
}

#endif
