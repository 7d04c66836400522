/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a model summary: finds the line where one begins, lets the form's reader read its layers,
 * reads the totals, and compares the sums over the layers with them.
 *
 * Each form is one file (torchsummary.c, torchinfo.c, keras.c, repr.c) and one line in the table
 * here. The first form that recognises a line reads from there; a second summary in the text is a
 * warning.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/foreign_form.h"
#include "model/format.h"
#include "model/named_parameters.h"
#include "model/tied_output.h"
#include "model/trained_layers.h"

static const struct model_format *const formats[] = {
    &format_torchinfo,
    &format_torchsummary,
    &format_keras,
    &format_repr,
};

static const struct model_format *detect_format(struct span line, struct span rest)
{
    for (size_t i = 0; line.size <= MODEL_LINE_MAX && i < ARRAY_SIZE(formats); i++)
        if (formats[i]->detect(line, rest))
            return formats[i];
    return NULL;
}

/* The last word of a line: behind the time and the level that a logger puts before a printed
 * module, "[2026-01-05 10:11:12 INFO] Network(". Empty for a line of one word. */
static struct span behind_prefix(struct span line)
{
    size_t at = line.size;
    while (at > 0 && line.at[at - 1] != ' ')
        at--;
    return at > 0 ? span_skip(line, at) : (struct span){line.at, 0};
}

/* Advances to the line where a summary begins. */
static const struct model_format *find_summary(struct parser *parser)
{
    struct span line, ahead = parser->rest;
    while (span_next_line(&ahead, &line)) {
        const struct model_format *format = detect_format(line, ahead);
        if (line_is_head(line))
            parser->head_line = parser->line + 1;
        if (format)
            return format;
        struct span last = behind_prefix(line);
        if (last.size && line.size <= MODEL_LINE_MAX && format_repr.detect(last, ahead)) {
            parser->rest = span_skip(parser->rest, (size_t)(last.at - parser->rest.at));
            return &format_repr;
        }
        parser->rest = ahead;
        parser->line++;
    }
    return NULL;
}

/* Reads the totals, and warns of other text after them. */
static void read_tail(struct parser *parser)
{
    struct model *model = parser->model;
    struct span line;
    int stray = 0, first_stray = 0;
    while (span_next_line(&parser->rest, &line)) {
        parser->line++;
        if (span_trim(line).size == 0 || line_is_rule(line))
            continue;
        bool second = line_is_head(line) || (totals_begin(line) && model->parameters_printed.known);
        if (second || detect_format(line, parser->rest)) {
            model_warn(model, parser->line, "a second summary begins; only the first is read");
            model->is_suspect = true;
            return;
        }
        if (totals_take(parser, line) || named_parameters_has(line))
            continue;
        first_stray = stray++ ? first_stray : parser->line;
    }
    if (stray)
        model_warn(
            model, first_stray, "%d line%s after the summary ignored", stray, stray > 1 ? "s" : "");
}

/* Some printers print the sum over a container in its row. Then the sum over the leaves alone is
 * the printed total. */
static void drop_repeated_counts(struct model *model)
{
    int64_t all = 0, leaves = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (__builtin_add_overflow(all, layer->parameters, &all))
            return;
        leaves += layer->leaf ? layer->parameters : 0;
    }
    if (!model->parameters_printed.known || all == model->parameters_printed.value ||
        leaves != model->parameters_printed.value)
        return;
    for (size_t i = 0; i < model->n_layers; i++)
        if (!model->layers[i].leaf)
            model->layers[i].parameters = 0;
}

static void name_unknown(struct model *model)
{
    for (size_t i = 0; model->n_leaves_unknown && i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (!layer->leaf || layer->kind != LAYER_OTHER)
            continue;
        model_warn(model, layer->line,
            "%.*s is not a known layer type (%zu such layers in all); taken for a layer that keeps its output",
            (int)(layer->type.size < 60 ? layer->type.size : 60), layer->type.at,
            model->n_leaves_unknown);
        return;
    }
}

/* A printed total that differs by more than this fraction is an error, not an omission of the
 * printer. */
static const double suspect_share = 0.02;

/* Layers that add up to less than the summary's own total were not understood, or are not in it. A
 * difference beyond the format's slack is a warning, a large one makes the model suspect. */
static void compare_totals(struct model *model, int64_t slack)
{
    const struct count *printed = &model->parameters_printed;
    if (!printed->known)
        return;
    int64_t off = printed->value > model->parameters ? printed->value - model->parameters
                                                     : model->parameters - printed->value;
    if (off > slack)
        model_warn(model, 0,
            "the summary prints %" PRId64 " parameters in total, its layers add up to %" PRId64,
            printed->value, model->parameters);
    /* The totals of printed modules count every level, so they differ from the sum of correct ones,
     * too. */
    if ((double)off > suspect_share * (double)model->parameters && model->format != SUMMARY_REPR)
        model->is_suspect = true;
}

/* Position embeddings and the like have no batch; many such shapes mean that two summaries were
 * mixed. */
static const double odd_share = 0.1;

/* A summary that was copied from a terminal often lacks its end; one whose first row was cut off
 * has shapes of another batch. */
static void look_for_gaps(struct parser *parser)
{
    struct model *model = parser->model;
    if (parser->head_line && !model->parameters_printed.known) {
        model_warn(model, 0, "the summary is cut off: there are no totals behind its layers");
        model->is_suspect = true;
    }
    if ((double)parser->n_odd_shapes <= odd_share * (double)parser->n_shapes)
        return;
    if (model->batch.known)
        model_warn(model, 0,
            "%zu of %zu shapes are not of the batch of %" PRId64 " that the first one shows",
            parser->n_odd_shapes, parser->n_shapes, model->batch.value);
    else
        model_warn(model, 0, "%zu of %zu shapes show a batch, the first one leaves it open",
            parser->n_odd_shapes, parser->n_shapes);
    model->is_suspect = true;
}

/* What only the whole model shows: repeated counts, what is trained, sums, hidden layers, gaps. */
static int finish_model(struct parser *parser, struct span text)
{
    struct model *model = parser->model;
    if (model->n_layers == 0)
        return fault_set(parser->fault, EINVAL, "line %d: a %s summary without layers",
            parser->line, summary_format_name(model->format));
    if (parser->may_repeat)
        drop_repeated_counts(model);
    if (trained_layers_find(model, text) < 0)
        return fault_set(parser->fault, ENOMEM, "out of memory");
    tied_output_find(model);
    int r = model_sum_up(model, parser->fault);
    if (r < 0)
        return r;
    model->parameters -= model->parameters_shared;
    trained_layers_sum_up(model);
    if (model->parameters_hidden)
        model_warn(model, 0,
            "blocks with %" PRId64 " of %" PRId64
            " parameters hide their layers (print it with a greater depth)",
            model->parameters_hidden, model->parameters);
    name_unknown(model);
    compare_totals(model, parser->total_slack);
    look_for_gaps(parser);
    return 0;
}

/* Tests whether a text shows arrays as Flax's tables and the printed modules of Flax and Equinox
 * do: float32[3,3,1,32], dtype=float32, dtype('float32'). */
static bool is_of_jax(struct span text)
{
    static const char *const signs[] = {
        "float32[", "bfloat16[", "f32[", "bf16[", "dtype=float32", "dtype('float32')"};
    for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
        if (span_find_text(text, signs[i]) < text.size)
            return true;
    return false;
}

/* The first line that one of the formats takes for its header decides the format. */
static int parse_text(struct parser *parser)
{
    struct span start = parser->rest;
    const struct model_format *format = find_summary(parser);
    const char *foreign = format ? NULL : foreign_form_name(start);
    if (foreign)
        return fault_set(parser->fault, EINVAL,
            "this is %s: give print(model), a table of torchinfo or torchsummary, or the training "
            "itself: colloc estimate -- python train.py",
            foreign);
    if (!format && parser->head_line && !is_of_jax(start))
        return fault_set(parser->fault, EINVAL, "line %d: a table without a layer that can be read",
            parser->head_line);
    if (!format && is_of_jax(start))
        return fault_set(parser->fault, EINVAL,
            "a summary of JAX (Flax, Equinox), which is not understood: export its training step "
            "(python3 -m colloc_export --jax), or give the task's memory with --memory");
    if (!format)
        return fault_set(parser->fault, EINVAL,
            "no model summary in it: none of torchsummary, torchinfo, a printed module, Keras begins on any line");
    parser->model->format = format->format;
    int r = format->parse(parser);
    if (r < 0)
        return r;
    read_tail(parser);
    return finish_model(parser, start);
}

bool model_detect(const char *text, size_t size)
{
    char *clean = size > 0 && size <= MODEL_SIZE_MAX ? malloc(size) : NULL;
    struct parser parser = {.rest = {.at = clean}};
    bool found = clean && text_clean(text, size, clean, NULL, &parser.rest.size) == 0 &&
                 (find_summary(&parser) || parser.head_line ||
                     foreign_form_name((struct span){
                         clean, parser.rest.size + (size_t)(parser.rest.at - clean)}));
    free(clean);
    return found;
}

/* One block of memory has the cleaned text and room for cells that were joined: layers point into
 * it. */
CLEANUP_DEFINE(struct model *, model_destroy)

int model_parse(const char *text, size_t size, struct fault *fault, struct model **ret_model)
{
    if (size == 0)
        return fault_set(fault, EINVAL, "an empty file is no model summary");
    if (size > MODEL_SIZE_MAX)
        return fault_set(fault, EFBIG, "larger than %d MiB", MODEL_SIZE_MAX >> 20);
    CLEANUP(cleanup_model_destroy) struct model *model = calloc(1, sizeof *model);
    if (!model)
        return fault_set(fault, ENOMEM, "out of memory");
    /* Joined cells are at most as long as the text. */
    model->text = malloc(2 * size);
    if (!model->text)
        return fault_set(fault, ENOMEM, "out of memory");
    struct parser parser = {.model = model, .fault = fault, .scratch = model->text + size};
    parser.rest.at = model->text;
    int r = text_clean(text, size, model->text, fault, &parser.rest.size);
    if (r == 0)
        r = parse_text(&parser);
    if (r == 0)
        *ret_model = TAKE(model);
    return r;
}
