/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of the readers of all summary forms: a cursor over the lines of the text, which appends
 * layers to the model and reports faults and warnings with the number of their line.
 *
 * A form's reader (torchsummary.c, torchinfo.c, keras.c, repr.c) asks for row after row with
 * parser_next, appends a layer with parser_add and fills it with the cells' meaning. Limits are
 * checked here, so that no form can miss one: lines longer than MODEL_LINE_MAX are skipped with a
 * warning, more than MODEL_LAYERS_MAX layers or MODEL_DEPTH_MAX levels are a fault.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/format.h"

/* Chosen: layers of the first allocation; most networks fit after one or two doublings. */
enum { CAPACITY_FIRST = 64 };

void model_warn(struct model *model, int line, const char *format, ...)
{
    size_t at = model->n_warnings++;
    if (at >= MODEL_WARNINGS_MAX)
        return;
    char *text = model->warnings[at];
    size_t size = sizeof model->warnings[at];
    int n = line > 0 ? snprintf(text, size, "line %d: ", line) : 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, size - (size_t)n, format, args);
    va_end(args);
    text_mend(text);
}

int parser_fault(struct parser *parser, int errnum, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fault_set(parser->fault, errnum, "line %d: %s", parser->line, text);
}

bool line_is_head(struct span line)
{
    return span_find_text(line, "Layer (type") < line.size;
}

bool parser_next(struct parser *parser, struct span *ret_line)
{
    struct span ahead = parser->rest;
    while (span_next_line(&ahead, ret_line)) {
        if (totals_begin(*ret_line) || (parser->model->n_layers > 0 && line_is_head(*ret_line)))
            return false;
        parser->rest = ahead;
        parser->line++;
        if (ret_line->size <= MODEL_LINE_MAX)
            return true;
        model_warn(
            parser->model, parser->line, "longer than %d characters, ignored", MODEL_LINE_MAX);
    }
    return false;
}

static int grow_layers(struct parser *parser)
{
    struct model *model = parser->model;
    size_t capacity = parser->capacity ? 2 * parser->capacity : CAPACITY_FIRST;
    if (model->n_layers >= MODEL_LAYERS_MAX)
        return parser_fault(parser, EFBIG, "more than %d layers", MODEL_LAYERS_MAX);
    struct layer *layers = reallocarray(model->layers, capacity, sizeof *layers);
    if (!layers)
        return fault_set(parser->fault, ENOMEM, "out of memory");
    model->layers = layers;
    parser->capacity = capacity;
    return 0;
}

int parser_add(struct parser *parser, struct span type, int depth, struct layer **ret_layer)
{
    struct model *model = parser->model;
    if (model->n_layers == parser->capacity || model->n_layers >= MODEL_LAYERS_MAX) {
        int r = grow_layers(parser);
        if (r < 0)
            return r;
    }
    if (depth >= MODEL_DEPTH_MAX)
        return parser_fault(parser, EFBIG, "nested more than %d deep", MODEL_DEPTH_MAX);
    struct layer *layer = &model->layers[model->n_layers++];
    *layer = (struct layer){
        .type = type, .kind = layer_kind_of(type), .depth = depth, .line = parser->line};
    *ret_layer = layer;
    return 0;
}

int parser_count(struct parser *parser, struct span cell, int64_t *ret_count)
{
    int r = number_parse(cell, ret_count);
    int shown = cell.size < 40 ? (int)cell.size : 40;
    if (r == -ERANGE)
        return parser_fault(
            parser, ERANGE, "a parameter count beyond 64 bits: %.*s", shown, cell.at);
    if (r < 0)
        return parser_fault(parser, EINVAL, "\"%.*s\" is no parameter count", shown, cell.at);
    return 0;
}

bool layer_is_leaf(const struct layer *layer, bool childless)
{
    if (layer->kind == LAYER_CONTAINER)
        return childless && layer->parameters > 0;
    if (childless)
        return true;
    return layer->kind > LAYER_INPUT && layer->parameters > 0;
}

void parser_mark_leaves(struct parser *parser)
{
    struct model *model = parser->model;
    parser->may_repeat = true;
    for (size_t i = 0; i < model->n_layers; i++) {
        struct layer *layer = &model->layers[i];
        bool childless = i + 1 == model->n_layers || layer[1].depth <= layer->depth;
        bool block = layer->kind == LAYER_OTHER || layer->kind == LAYER_CONTAINER;
        layer->leaf = layer_is_leaf(layer, childless);
        layer->hides = block && childless && layer->parameters > 0;
    }
}
