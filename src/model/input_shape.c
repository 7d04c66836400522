/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input that a user names, "3x224x224", gives a printed module its shapes. How they follow
 * from it is the shape inference's (shape_inference.c); here its result becomes the layers' shapes
 * and the model's sums.
 */
#include "model/input_shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/span_parts.h"
#include "model/layer_shape.h"
#include "model/shape_inference.h"

static struct feature_map map_of(const struct input_shape *input)
{
    struct feature_map map = {.channels = input->size[0], .rank = input->rank - 1};
    for (int i = 0; i < map.rank; i++)
        map.places[i] = input->size[i + 1];
    return map;
}

static int check_size(const char *text, const struct input_shape *shape, struct fault *fault)
{
    struct feature_map map = map_of(shape);
    return feature_map_is_sane(&map)
               ? 0
               : fault_set(
                     fault, EINVAL, "input=%.60s: one sample has at most 10^12 numbers", text);
}

int input_shape_parse(const char *text, struct fault *fault, struct input_shape *ret_shape)
{
    struct span rest = {.at = text, .size = strlen(text)};
    *ret_shape = (struct input_shape){0};
    while (rest.size && ret_shape->rank < MODEL_RANK_MAX) {
        size_t end = span_find(rest, 'x');
        int64_t *size = &ret_shape->size[ret_shape->rank++];
        if (number_parse(span_first(rest, end), size) < 0 || *size < 1 || *size > WINDOW_SIZE_MAX)
            break;
        rest = span_skip(rest, end + 1);
        if (rest.size == 0 && ret_shape->rank >= 2 && ret_shape->rank <= 1 + FEATURE_MAP_RANK_MAX)
            return check_size(text, ret_shape, fault);
    }
    return fault_set(fault, EINVAL,
        "input=%.60s: give channels, height and width of one sample, such as 3x224x224", text);
}

static void set_shape(const struct feature_map *map, struct layer *layer)
{
    layer->rank = 0;
    if (!map->tokens)
        layer->shape[layer->rank++] = map->channels;
    for (int i = 0; i < map->rank; i++)
        layer->shape[layer->rank++] = map->places[i];
    if (map->tokens)
        layer->shape[layer->rank++] = map->channels;
    layer->activations = (struct count){map->channels * feature_map_places(map), true};
}

/* Sets the shapes and the sums over them. Returns whether these fit 64 bits. */
static bool set_shapes(const struct feature_map *made, struct model *model)
{
    int64_t *all = &model->activations.value;
    model->n_leaves_unshaped = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        struct layer *layer = &model->layers[i];
        if (made[i].channels > 0)
            set_shape(&made[i], layer);
        if (!layer->leaf || layer->kind == LAYER_INPUT)
            continue;
        model->n_leaves_unshaped += !layer->activations.known;
        model->activations.known |= layer->activations.known;
        if (__builtin_add_overflow(*all, layer->activations.value, all))
            return false;
    }
    return true;
}

static bool reads_tokens(const struct model *model)
{
    for (size_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].kind == LAYER_EMBEDDING)
            return true;
    return false;
}

static void warn_of_guess(struct model *model, const struct layer *layer)
{
    model_warn(model, layer->line,
        "what this layer reads is a guess: the module does not show it; torchinfo prints all "
        "shapes");
    model->is_suspect = true;
}

int model_set_input(struct model *model, const struct input_shape *input, struct fault *fault)
{
    struct shape_walk walk = {.model = model, .current = map_of(input)};
    if (model->activations.known || reads_tokens(model)) {
        model_warn(model, 0, "the input's shape is not used: %s",
            model->activations.known ? "the summary has shapes" : "the model reads tokens");
        return 0;
    }
    layer_shape_resize_input(model, &walk.current);
    walk.made = calloc(model->n_layers, sizeof *walk.made);
    if (!walk.made)
        return fault_set(fault, ENOMEM, "out of memory");
    shape_inference_run(&walk);
    bool fits = set_shapes(walk.made, model);
    free(walk.made);
    if (walk.guessed)
        warn_of_guess(model, &model->layers[walk.guessed]);
    return fits ? 0 : fault_set(fault, ERANGE, "the sums over the layers are beyond 64 bits");
}
