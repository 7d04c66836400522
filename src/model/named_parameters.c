/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A printed module does not say which weights are trained. Many scripts print that beside it:
 *
 *     for name, p in model.named_parameters():
 *         print(name, p.requires_grad)
 *
 *     encoder.layers.0.attention.query.weight False
 *     classifier.weight True
 *
 * A name is the path of a layer in the module, and the parameter's name in it. "(0-11): 12 x Block"
 * stands for the paths 0 to 11. The paths of all layers are hashed and sorted, so that each line is
 * one search.
 */
#include "model/named_parameters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "model/format.h"

struct path {
    uint64_t hash;
    size_t layer;
};

/* A level of the tree on the way to a layer. */
struct level {
    uint64_t hash;    /* of the path that ends here */
    const char *name; /* in the text; copies of a repeated block have the same */
    int64_t repeated; /* copies of it before this one */
};

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == ':' || c == '|' || c == ',';
}

/* Removes the last word of the line. */
static struct span take_last_word(struct span *line)
{
    size_t end = line->size, at;
    while (end > 0 && is_separator(line->at[end - 1]))
        end--;
    for (at = end; at > 0 && !is_separator(line->at[at - 1]); at--)
        ;
    struct span word = {line->at + at, end - at};
    *line = span_first(*line, at);
    return word;
}

/* "encoder.0.weight": letters, digits, '_' and '.', with a '.' or of an outermost parameter. */
static bool is_path(struct span word)
{
    struct span rest = word;
    return word.size > 0 && !(word.at[0] >= '0' && word.at[0] <= '9') &&
           span_take_identifier(&rest).size == word.size;
}

static bool read_line(struct span line, struct span *ret_path, bool *ret_trained)
{
    line = span_trim(line);
    struct span value = take_last_word(&line);
    bool is_value = span_is(value, "True") || span_is(value, "False");
    if (!is_value || line.size == 0 || line.size > MODEL_LINE_MAX)
        return false;
    *ret_trained = span_is(value, "True");
    *ret_path = span_take_identifier(&line);
    return is_path(*ret_path) && (line.size == 0 || is_separator(line.at[0]));
}

bool named_parameters_has(struct span line)
{
    struct span path;
    bool trained;
    return read_line(line, &path, &trained);
}

static uint64_t hash_name(uint64_t hash, const char *name, size_t size)
{
    hash = hash_bytes(hash, name, size);
    return hash_bytes(hash, ".", 1);
}

/* "0-11" in its copy number `repeated`, else the name itself. */
static uint64_t hash_member(uint64_t parent, struct span name, int64_t repeated)
{
    size_t dash = span_find(name, '-');
    int64_t first, last;
    if (dash == name.size || number_parse(span_first(name, dash), &first) < 0 ||
        number_parse(span_skip(name, dash + 1), &last) < 0 || first > last ||
        repeated > last - first)
        return hash_name(parent, name.at, name.size);
    char number[24];
    int size = snprintf(number, sizeof number, "%" PRId64, first + repeated);
    return hash_name(parent, number, (size_t)size);
}

static int compare_paths(const void *a, const void *b)
{
    const struct path *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static void list_paths(const struct model *model, struct path *paths)
{
    struct level levels[MODEL_DEPTH_MAX + 1] = {{.hash = HASH_START}};
    int deepest = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        int depth = layer->depth < MODEL_DEPTH_MAX ? layer->depth : MODEL_DEPTH_MAX;
        struct level *level = &levels[depth];
        bool again = depth > 0 && depth <= deepest && level->name == layer->name.at;
        level->repeated = again ? level->repeated + 1 : 0;
        level->name = layer->name.at;
        level->hash = depth == 0
                          ? HASH_START
                          : hash_member(levels[depth - 1].hash, layer->name, level->repeated);
        deepest = depth;
        paths[i] = (struct path){level->hash, i};
    }
    qsort(paths, model->n_layers, sizeof *paths, compare_paths);
}

/* The layer of a parameter: its path without the last name. */
static struct layer *find_layer(
    const struct model *model, const struct path *paths, struct span name)
{
    size_t end = name.size;
    while (end > 0 && name.at[end - 1] != '.')
        end--;
    struct path wanted = {.hash = hash_bytes(HASH_START, name.at, end)};
    const struct path *found = bsearch(
        &wanted, paths, model->n_layers, sizeof *paths, compare_paths);
    return found ? &model->layers[found->layer] : NULL;
}

int named_parameters_mark(struct model *model, struct span text)
{
    struct span line, name;
    bool trained, any = false;
    if (model->n_layers == 0)
        return false;
    struct path *paths = calloc(model->n_layers, sizeof *paths);
    if (!paths)
        return -ENOMEM;
    list_paths(model, paths);
    while (span_next_line(&text, &line)) {
        struct layer *layer = read_line(line, &name, &trained) ? find_layer(model, paths, name)
                                                               : NULL;
        if (!layer)
            continue;
        any = true;
        if (trained || layer->trainable != TRISTATE_YES)
            layer->trainable = trained ? TRISTATE_YES : TRISTATE_NO;
    }
    free(paths);
    return any;
}
