/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the summary forms share. Internal to the room. */
#ifndef COLLOC_MODEL_FORMAT_H
#define COLLOC_MODEL_FORMAT_H

#include "model/model.h"

struct parser {
    struct model *model;
    struct fault *fault;
    struct span rest;    /* not read yet */
    int line;            /* number of the line read last, from 1 */
    size_t capacity;     /* layers there is room for */
    int head_line;       /* of the table's head, "Layer (type) ..."; 0: there is none */
    bool batch_decided;  /* the first shape says whether the batch is fixed */
    size_t n_shapes;     /* tensors whose shape was read, */
    size_t n_odd_shapes; /* and those that seem to be of another batch */
    bool may_repeat;     /* containers' rows may hold their layers' parameters once more */
    char *scratch;       /* room for cells joined from several lines */
    int64_t total_slack; /* how far a printed total may be off because it was rounded */
};

/* A summary form: one file that exports one of these, and one line in the table in model.c. */
struct model_format {
    enum summary_format format;

    /* Whether a summary of this form begins with `line`; `rest` is the text behind it. Looks only
     * at a line or two. */
    bool (*detect)(struct span line, struct span rest);

    /* Reads rows from the detected line on, until parser_next says false or the summary's own end.
     * 0 or a fault. */
    int (*parse)(struct parser *parser);
};

extern const struct model_format format_torchsummary;
extern const struct model_format format_torchinfo;
extern const struct model_format format_repr;
extern const struct model_format format_keras;

/*
 * The next row; false at the end of the text and, without taking it, at the line of the totals or
 * another table's head. Skips over-long lines.
 */
bool parser_next(struct parser *parser, struct span *ret_line);

/* Like fault_set, with "line N: " in front. */
int parser_fault(struct parser *parser, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes a warning with "line N: " in front; none when line is 0. */
void model_warn(struct model *model, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new layer of this type behind the last, everything else empty. The pointer holds until the next
 * call. */
int parser_add(struct parser *parser, struct span type, int depth, struct layer **ret_layer);

/*
 * Sets the layer's shape and activations from "[-1, 64, 56, 56]", "(None, 7, 7, 512)", "[(None,
 * 10), (None, 4)]". The first shape of a summary decides the batch, which is then taken out of
 * every shape. What is no shape ("--", "multiple") leaves both not known. 0 or a fault (-ERANGE,
 * -EINVAL).
 */
int parser_shape(struct parser *parser, struct span cell, struct layer *layer);

/* The sums over the layers, into the model. 0 or -ERANGE. */
int model_sum_up(struct model *model, struct fault *fault);

/* A row's parameter count, "25,557,032". 0 or a fault. */
int parser_count(struct parser *parser, struct span cell, int64_t *ret_count);

/* Whole span as a non-negative number with thousands separators. 0, -EINVAL or -ERANGE. */
int number_parse(struct span s, int64_t *ret_value);

/* Takes a "Total params: ..." line or a neighbour of it into the model. False when the line is none
 * of them. */
bool totals_take(struct parser *parser, struct span line);
bool totals_begin(struct span line); /* is it the first line of the totals? */

/* The line above the columns of a table: "Layer (type) ...". */
bool line_is_head(struct span line);

/* A line of nothing but rules: "=====", "_____", "+---+". */
bool line_is_rule(struct span line);

enum layer_kind layer_kind_of(struct span type);

/*
 * Does a row of a tree do work itself, beside its layers? A known type with layers in it does so
 * only when it has parameters besides theirs: a normalisation with its activation inside does, a
 * convolution block named after its last layer does not.
 */
bool layer_is_leaf(const struct layer *layer, bool childless);

/* For tables whose rows are a tree: sets `leaf` and `hides` of all layers from their kinds and who
 * has deeper rows behind. */
void parser_mark_leaves(struct parser *parser);

/* Parameters of a layer from its kind and constructor arguments; also sets in_size, out_size,
 * kernel_size, in_place. */
int arguments_apply(struct parser *parser, struct layer *layer, struct count *ret_parameters);

/*
 * Copies text without what terminals add (escape sequences, overwritten progress bars, carriage
 * returns, BOM), tabs as blanks, box-drawing characters as '|', '-' and '+': one character, one
 * byte. Lines keep their numbers. `out` has room for `size` bytes. 0, or -EINVAL with a fault when
 * the bytes are no text.
 */
int text_clean(const char *text, size_t size, char *out, struct fault *fault, size_t *ret_size);

/* Small steps over a span. */
struct span span_skip(struct span s, size_t n);         /* without its first n bytes */
struct span span_first(struct span s, size_t n);        /* its first n bytes */
size_t span_find(struct span s, char c);                /* offset, or s.size when it is not there */
size_t span_find_text(struct span s, const char *text); /* the same for a string */
size_t span_find_close(struct span s); /* of the bracket that s begins with; s.size when open */
struct span span_take_word(struct span *s);       /* up to a blank; brackets hold blanks together */
struct span span_take_identifier(struct span *s); /* letters, digits, '_', '.' */
bool span_ends(struct span s, const char *suffix);

#endif
