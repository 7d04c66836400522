/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model summaries: the text a user prints of a network, read into a list of layers.
 *
 * Five forms are known: torchsummary, torchinfo, a module's repr with and without counts, Keras 2
 * and Keras 3. The form is detected by the text, never by a file's name. Any bytes may be
 * given: what is no summary comes back as a fault with the line, what is odd but readable becomes a
 * warning.
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
        50000, /* repeats written out; more is a fault: estimates of many keep others waiting */
    MODEL_WARNINGS_MAX = 16,   /* later ones are only counted */
    MODEL_SIZE_MAX = 16 << 20, /* bytes of text */
    MODEL_LINE_MAX = 4096,     /* a longer line is skipped with a warning */
};

/* A whole number that the text may not tell. `value` is 0 and of no meaning unless `known`. */
struct count {
    int64_t value;
    bool known;
};

enum told { NOT_TOLD, TOLD_NO, TOLD_YES };

/* What a layer does, as far as its type's name is known. */
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
    LAYER_RESHAPE, /* makes no new tensor: identity, flatten */
    LAYER_MERGE,   /* add, concatenate, upsample, pad: a new map without parameters */
};

struct layer {
    struct span type; /* "Conv2d"; lives as long as the model */
    struct span name; /* "layer1.conv" in the form the text gives; empty when it gives none */
    struct span args; /* what stands in the parentheses of a repr; empty otherwise */
    enum layer_kind kind;
    int depth;   /* 0 is the outermost row */
    int line;    /* in the text, from 1 */
    bool leaf;   /* does work itself, so that its output counts; else it only contains others */
    bool shared; /* a reuse of an earlier layer: has an output, but adds no parameters */
    bool hides;  /* a block whose insides the text leaves out */
    enum told trainable;
    enum told in_place;
    enum told drops;               /* of a dropout: with a probability above 0 */
    int rank;                      /* 0: shape not known */
    int64_t shape[MODEL_RANK_MAX]; /* of the (first) output, without the batch */
    struct count activations;      /* elements of all outputs, per sample */
    int64_t parameters;            /* its own, without those of the layers in it */
    int64_t in_size, out_size;     /* features, channels or rows as constructed; 0: not told */
    int64_t kernel_size;           /* product over the window's dimensions; 0: not told */
};

/* Sizes that a summary prints below its rows, for the batch of its shapes (or one sample). */
struct printed_sizes {
    struct reading input_bytes, pass_bytes, params_bytes;
};

/* The program that wrote the summary. Of these, torchsummary alone prints no tree. */
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
    struct count parameters_printed; /* "Total params", as it stands there */
    struct count trainable_printed;
    struct printed_sizes printed;
    struct count
        activations; /* sum of the leaves' outputs per sample; not known when no leaf has a shape */
    size_t n_leaves;
    size_t n_leaves_unshaped;  /* leaves that `activations` had to leave out */
    size_t n_leaves_unknown;   /* leaves of a type this program does not know */
    int64_t parameters_hidden; /* in blocks whose insides the text leaves out */
    bool is_suspect;           /* cut off, of two prints, or its total is not that of its layers */
    int64_t parameters_shared; /* that stand in two places and are counted once in `parameters` */

    char warnings[MODEL_WARNINGS_MAX]
                 [200]; /* "line 12: ...": what a person should know about the summary */
    size_t n_warnings;  /* all of them, also beyond MODEL_WARNINGS_MAX */

    char *text; /* what the spans point into */
};

/*
 * Reads a summary of any form. `text` need not end in NUL and may be freed afterwards. 0, or with a
 * fault -EINVAL (no summary, binary, a broken number), -ERANGE (a product or sum beyond 64 bits),
 * -EFBIG (beyond the limits above), -ENOMEM. Time and memory are linear in the size of the text
 * (for "12 x Layer" in the layers it stands for).
 */
int model_parse(const char *text, size_t size, struct fault *fault, struct model **ret_model);

/* Whether a summary begins on a line of the text; it may be a broken one. */
bool model_detect(const char *text, size_t size);

void model_destroy(struct model *model);

/* How many warnings can be read: n_warnings within the limit. */
size_t model_warnings(const struct model *model);

const char *layer_kind_name(enum layer_kind kind); /* "conv" */

#endif
