/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model summaries: the text in which a program prints a network, parsed into a list of layers.
 *
 * Five forms are known: torchsummary, torchinfo, a module's repr with and without counts, Keras 2
 * and Keras 3. The form is detected from the text, never from a file's name. The parser accepts any
 * bytes: a text that is no summary is a fault that names the line; what is odd but readable becomes
 * a warning.
 */
#ifndef COLLOC_MODEL_MODEL_H
#define COLLOC_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/reading.h"
#include "base/text.h"

enum {
    MODEL_RANK_MAX = 6,    /* a shape of more dimensions is "not known" */
    MODEL_DEPTH_MAX = 256, /* nesting beyond it is a fault */
    MODEL_LAYERS_MAX =
        50000, /* with repeats written out; more is a fault, since estimating them would delay other
                * requests */
    MODEL_WARNINGS_MAX = 16,   /* later ones are only counted */
    MODEL_SIZE_MAX = 16 << 20, /* bytes of text */
    MODEL_LINE_MAX = 4096,     /* a longer line is skipped with a warning */
};

/* A whole number that the text may lack. `value` is meaningless (0) unless `known`. */
struct count {
    int64_t value;
    bool known;
};

enum tristate { TRISTATE_UNKNOWN, TRISTATE_NO, TRISTATE_YES };

/* What a layer does, by the name of its type. */
enum layer_kind {
    LAYER_OTHER, /* a type this program does not know */
    LAYER_CONTAINER,
    LAYER_INPUT,
    LAYER_CONV,
    LAYER_LINEAR,
    LAYER_NORM,
    LAYER_ACTIVATION,
    LAYER_DROPOUT,
    LAYER_POOL,        /* over a window */
    LAYER_POOL_GLOBAL, /* to a fixed size, whatever the input's */
    LAYER_EMBEDDING,
    LAYER_ATTENTION,
    LAYER_RECURRENT,
    LAYER_RESHAPE, /* allocates no tensor: identity, flatten */
    LAYER_MERGE,   /* add, concatenate, upsample, pad: a new map without parameters */
};

/* Where the text has no arguments of a layer. No size that works is 0. */
enum { LAYER_SIZE_UNKNOWN = 0, LAYER_RANK_UNKNOWN = 0 };

struct layer {
    struct span type; /* "Conv2d"; lives as long as the model */
    struct span name; /* "layer1.conv", as the text writes it; empty when the text has no names */
    struct span args; /* the text in the parentheses of a repr; empty otherwise */
    enum layer_kind kind;
    int depth;   /* 0 is the outermost row */
    int line;    /* in the text, from 1 */
    bool leaf;   /* does work itself: its output counts; otherwise it only contains layers */
    bool shared; /* a reuse of an earlier layer: has an output, but adds no parameters */
    bool hides;  /* a block whose layers the text leaves out */
    enum tristate trainable;
    enum tristate in_place;
    enum tristate drops;           /* of a dropout: with a probability above 0 */
    bool in_adapter;               /* of a printed module: it is part of an adapter */
    int weight_bits;               /* of a quantised weight; 0: as the training's precision says */
    int rank;                      /* number of dimensions in the text, or LAYER_RANK_UNKNOWN */
    int64_t shape[MODEL_RANK_MAX]; /* of the (first) output, without the batch */
    struct count activations;      /* elements of all outputs, per sample */
    int64_t parameters;            /* its own, without those of the layers in it */
    int64_t in_size, out_size;     /* features, channels or rows, from its arguments, or
                                    * LAYER_SIZE_UNKNOWN */
    int64_t kernel_size;           /* product over the window's dimensions, or LAYER_SIZE_UNKNOWN */
};

/* Sizes that a summary prints below its rows, for the batch of its shapes or for one sample. */
struct printed_sizes {
    struct reading input_bytes, pass_bytes, params_bytes;
};

/* The program that wrote the summary. All but torchsummary print a tree. */
enum summary_format {
    SUMMARY_TORCHINFO,
    SUMMARY_TORCHSUMMARY,
    SUMMARY_KERAS,
    SUMMARY_REPR,
    SUMMARY_EXPORT,
    SUMMARY_FORMATS
};

/* "torchinfo", "torchsummary", "keras", "repr", "export" */
const char *summary_format_name(enum summary_format format);

struct model {
    enum summary_format format;
    struct layer *layers;
    size_t n_layers;

    struct count batch; /* the batch the shapes were printed for; not known for -1 and None */
    int64_t parameters; /* rebuilt from the layers */
    struct count parameters_printed; /* "Total params" as printed */
    struct count trainable_printed;
    struct count parameters_trained; /* not known: the text does not say that some are not */
    bool trained_is_open;            /* some are not trained, and the text does not say which */
    bool gradients_reach_all;        /* what is trained stands in all blocks, or before them */
    bool is_quantised;               /* some layers' weights are */
    struct printed_sizes printed;
    struct count
        activations; /* sum of the leaves' outputs per sample; not known when no leaf has a shape */
    size_t n_leaves;
    size_t n_leaves_unshaped;  /* leaves without a shape, which `activations` lacks */
    size_t n_leaves_unknown;   /* leaves of a type this program does not know */
    int64_t parameters_hidden; /* in blocks whose layers the text leaves out */
    bool is_suspect;           /* the text is cut off, mixes two summaries, or its total differs
                                * from its layers' */
    int64_t parameters_shared; /* shared by two layers, and counted once in `parameters` */

    char warnings[MODEL_WARNINGS_MAX][200]; /* "line 12: ...": for the user */
    size_t n_warnings; /* all, also those beyond MODEL_WARNINGS_MAX, which are not stored */

    char *text; /* the memory that the spans point into */
};

/*
 * Reads a summary of any form, in time and memory linear in the size of the text (of "12 x Layer",
 * in the twelve layers). `text`: need not end in NUL, and may be freed afterwards. Returns 0; or
 * with a fault -EINVAL (no summary, binary, a broken number), -ERANGE (a product or sum beyond 64
 * bits), -EFBIG (beyond the limits above) or -ENOMEM.
 */
int model_parse(const char *text, size_t size, struct fault *fault, struct model **ret_model);

/* Tests whether a summary begins on a line of the text, even a broken one. */
bool model_detect(const char *text, size_t size);

/* Sets the sums over the layers. Returns 0 or a fault (-ERANGE). */
int model_sum_up(struct model *model, struct fault *fault);

/* Releases the model and the text that its spans point into. */
void model_destroy(struct model *model);

/* Returns the number of stored warnings: n_warnings, at most MODEL_WARNINGS_MAX. */
size_t model_warnings(const struct model *model);

const char *layer_kind_name(enum layer_kind kind); /* "conv" */

#endif
