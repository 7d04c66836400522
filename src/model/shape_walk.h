/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the walk through a printed network that finds its layers' shapes: the current map,
 * the modules that are open around the current layer, and what was made before. Internal to this
 * component.
 */
#ifndef COLLOC_MODEL_SHAPE_WALK_H
#define COLLOC_MODEL_SHAPE_WALK_H

#include "model/feature_map.h"

/* How many layers a search goes back or ahead; chosen: a network's longest block has fewer. */
enum { SHAPE_LOOK_BACK = 400, SHAPE_LOOK_AHEAD = 400 };

/* A module whose first layer was reached, and whose last one was not. */
struct open_module {
    size_t layer; /* its own row */
    struct feature_map entry;
    size_t adapter; /* the first row that reads what its first row reads; 0: it is no layer with an
                     * adapter */
    /* parallel_branches.c: */
    struct span branch;        /* the name of the last layer that is a branch, or a part of one */
    int n_branches;            /* that have begun */
    bool is_empty;             /* the branch that began last has no layers */
    bool divides;              /* a branch is empty: it passes what the others do not read */
    int64_t channels;          /* of the branches that have ended */
    struct feature_map before; /* what the part of a branch that began last reads */
    /* feature_pyramid.c: */
    bool is_pyramid; /* its members do not follow one another */
    size_t beside;   /* of such a list: the next member of the list before it; 0: there is none */
    struct feature_map largest; /* that a member has made */
};

struct shape_walk {
    struct model *model;
    struct feature_map current;
    struct feature_map *made; /* the output of each layer; no channels: not known */
    struct open_module open[MODEL_DEPTH_MAX];
    int n_open;
    size_t n_leaves; /* seen so far */
    size_t guessed;  /* the first layer or list whose input, or reader, is a guess; 0: none */
    size_t pyramid;  /* that ended last; 0: there is none */
    size_t ended, ended_at; /* the module that ended last, and n_leaves at that time */
    int64_t pooled;         /* its channels, if it joins a pooled copy of its input, too */
};

/* Returns the innermost open module; NULL: none is open. */
struct open_module *shape_walk_innermost(struct shape_walk *walk);

/* Returns the innermost open module if layer `i` is one level below it; else NULL. */
struct open_module *shape_walk_parent(struct shape_walk *walk, size_t i);

/* Returns the innermost attention around the current layer, or NULL. */
const struct open_module *shape_walk_attention(const struct shape_walk *walk);

/* Tests whether the layer is an attention, by its type's name. */
bool layer_is_attention(const struct layer *layer);

#endif
