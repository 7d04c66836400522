/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the summary forms share. Internal to this component. */
#ifndef COLLOC_MODEL_FORMAT_H
#define COLLOC_MODEL_FORMAT_H

#include "base/span_parts.h"
#include "model/model.h"

struct parser {
    struct model *model;
    struct fault *fault;
    struct span rest;    /* not read yet */
    int line;            /* number of the last line read, from 1 */
    size_t capacity;     /* allocated layers */
    int head_line;       /* of the table's head, "Layer (type) ..."; 0: there is none */
    bool batch_decided;  /* a shape was read, which decided whether the batch is fixed */
    size_t n_shapes;     /* tensors whose shape was read, */
    size_t n_odd_shapes; /* and those that seem to be of another batch */
    bool may_repeat;     /* a container's row may repeat the parameters of its layers */
    char *scratch;       /* memory for cells joined from several lines */
    int64_t total_slack; /* the largest error of a printed total by rounding */
};

/* A summary form: one file that exports one of these, and one line in the table of
 * summary_reader.c. */
struct model_format {
    enum summary_format format;

    /* Tests whether a summary of this form begins with `line`. `rest`: the text after the line, of
     * which only a line or two is read. */
    bool (*detect)(struct span line, struct span rest);

    /* Reads rows from the detected line on, until parser_next returns false or the summary ends.
     * Returns 0 or a fault. */
    int (*parse)(struct parser *parser);
};

extern const struct model_format format_torchsummary;
extern const struct model_format format_torchinfo;
extern const struct model_format format_repr;
extern const struct model_format format_keras;

/*
 * Reads the next row; skips lines that are too long. Returns false at the end of the text, and at
 * the line of the totals or of another table's head, which is then still to be read.
 */
bool parser_next(struct parser *parser, struct span *ret_line);

/* Does what fault_set does, with "line N: " before the message. */
int parser_fault(struct parser *parser, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a warning, with "line N: " before it unless line is 0. */
void model_warn(struct model *model, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends a layer of this type, with all else zero. *ret_layer is valid until the next call.
 * Returns 0 or a fault. */
int parser_add(struct parser *parser, struct span type, int depth, struct layer **ret_layer);

/*
 * Sets the layer's shape and activations from "[-1, 64, 56, 56]", "(None, 7, 7, 512)", "[(None,
 * 10), (None, 4)]". The first shape of a summary decides the batch, which is removed from every
 * shape. After a text that is no shape ("--", "multiple") both stay unknown. Returns 0 or a fault
 * (-ERANGE, -EINVAL).
 */
int parser_shape(struct parser *parser, struct span cell, struct layer *layer);

/* Parses a row's parameter count, "25,557,032". Returns 0 or a fault. */
int parser_count(struct parser *parser, struct span cell, int64_t *ret_count);

/* Parses the whole span as a non-negative number with thousands separators. Returns 0, -EINVAL or
 * -ERANGE. */
int number_parse(struct span s, int64_t *ret_value);

/* Parses a line of the totals ("Total params: ..." and the lines around it) into the model. Returns
 * false for any other line. */
bool totals_take(struct parser *parser, struct span line);
bool totals_begin(struct span line); /* Tests whether this is the first line of the totals. */

/* Tests whether the line is the head of a table: "Layer (type) ...". */
bool line_is_head(struct span line);

/* Tests whether the line consists of rules only: "=====", "_____", "+---+". */
bool line_is_rule(struct span line);

/* Returns the kind of a layer by the name of its class: "Conv2d"; LAYER_OTHER for a class that is
 * not known. */
enum layer_kind layer_kind_of(struct span type);

/*
 * Tests whether a row of a tree does work itself, besides its layers. A row of a known type that
 * contains layers does so only when it has parameters besides theirs: a normalisation with its
 * activation inside does, a convolution block named after its last layer does not.
 */
bool layer_is_leaf(const struct layer *layer, bool childless);

/* For tables whose rows are a tree: sets `leaf` and `hides` of all layers, from their kinds and
 * from the rows that contain deeper ones. */
void parser_mark_leaves(struct parser *parser);

/* Calculates the parameters of a layer from its kind and its constructor arguments; also sets
 * in_size, out_size, kernel_size and in_place. */
int arguments_apply(struct parser *parser, struct layer *layer, struct count *ret_parameters);

enum {
    WINDOW_RANK_MAX = 3,
    WINDOW_SIZE_MAX = 1 << 20, /* of one dimension; chosen: far above any */
};

/* Where a convolution or a pooling looks, for each dimension. */
struct window {
    int64_t kernel[WINDOW_RANK_MAX], stride[WINDOW_RANK_MAX], padding[WINDOW_RANK_MAX],
        dilation[WINDOW_RANK_MAX], output_padding[WINDOW_RANK_MAX];
    bool same;    /* padding="same" */
    bool ceiling; /* ceil_mode=True */
};

/* Reads the window of a layer over `rank` dimensions (1 to 3) from its arguments. Returns false
 * where they do not say it. */
bool arguments_window(const struct layer *layer, int rank, struct window *ret_window);

/* Reads output_size of an adaptive pooling in the same way. */
bool arguments_output_size(
    const struct layer *layer, int rank, int64_t ret[static WINDOW_RANK_MAX]);

/* Reads min_size, of which the last counts, and max_size of a Resize: what the shorter side
 * becomes, and what the longer one is at most. Returns false where they are not numbers. */
bool arguments_sides(const struct layer *layer, int64_t *ret_shorter, int64_t *ret_longest);

/* Returns scale_factor of an Upsample as a whole number; 1 where there is none. */
int64_t arguments_scale(const struct layer *layer);

/*
 * Copies text without what terminals add (escape sequences, overwritten progress bars, carriage
 * returns, BOM), with blanks for tabs and '|', '-' and '+' for box-drawing characters: one byte for
 * each character. Lines keep their numbers. `out`: `size` bytes. Returns 0, or -EINVAL with a fault
 * when the bytes are no text.
 */
int text_clean(const char *text, size_t size, char *out, struct fault *fault, size_t *ret_size);

/* Helpers for spans. */
size_t span_find_close(struct span s); /* the offset of the end of the bracket that s begins with;
                                        * s.size when it is not closed */
struct span span_take_word(struct span *s);       /* up to a blank outside of brackets */
struct span span_take_identifier(struct span *s); /* letters, digits, '_', '.' */

#endif
