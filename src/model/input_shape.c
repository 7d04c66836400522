/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through the layers in the order in which they are printed and keeps the current map: its
 * channels and its places (height and width, or the dimensions that it has).
 *
 *     Conv2d(3, 64, kernel_size=7, stride=2, padding=3)    3 x 224 x 224  ->  64 x 112 x 112
 *     MaxPool2d(kernel_size=3, stride=2, padding=1)                       ->  64 x 56 x 56
 *
 * A printed module lists layers, not the program that calls them. Where the arguments say that a
 * layer reads another number of channels than the current map has, it reads the input of a block
 * around it (a shortcut, a parallel branch), else the last map with as many channels, else several
 * maps put together, which have the places of the current one.
 *
 * Modules that are branches by their names (branch_name.c) read the input of the module around
 * them, and that module puts out their channels side by side; or their sum, if all have the
 * channels that the next convolution reads.
 *
 * Lists of convolutions that all put out as many channels make maps of one kind from several maps
 * (feature pyramids): each member reads the last map of its channels, or what the member of the
 * same number in the list before it has made. What comes next reads all of them, taken for the
 * largest.
 *
 * Layers over tokens (Linear, LayerNorm) treat places as tokens. A block that ends with one number
 * for each channel of its input scales that input (squeeze-and-excitation).
 */
#include "model/input_shape.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/branch_name.h"
#include "model/format.h"

enum { PLACES_MAX = 3 };

/* Layers; chosen: a network's longest block has fewer. */
enum { LOOK_BACK = 400, LOOK_AHEAD = 400 };

static const double elements_most = 1e12; /* of one sample; chosen */

/* The output of a layer for one sample. */
struct map {
    int64_t channels; /* 0: there is none */
    int64_t places[PLACES_MAX];
    int rank;    /* how many dimensions `places` has; 0: features alone */
    bool tokens; /* channels are the last dimension */
};

struct open_module {
    size_t layer;
    struct map entry;
    struct span branch; /* the name of the last layer that is a branch, or a part of one */
    int n_branches;     /* that have begun */
    bool is_empty;      /* the branch that began last has no layers */
    bool divides;       /* a branch is empty: it passes what the others do not read */
    int64_t channels;   /* of the branches that have ended */
    struct map before;  /* what the part of a branch that began last reads */
    bool is_map_list;   /* its members do not follow one another: has_map_list */
    size_t beside; /* of such a list: the next member of the list before it; 0: there is none */
    struct map largest; /* that a member has made */
};

struct walk {
    struct model *model;
    struct map current;
    struct map *made; /* the output of each layer; no channels: not known */
    struct open_module open[MODEL_DEPTH_MAX];
    int n_open;
    size_t n_leaves; /* seen so far */
    size_t guessed;  /* the first layer or list whose input, or reader, is a guess; 0: none */
    size_t map_list; /* that ended last; 0: there is none */
    size_t ended, ended_at; /* the module that ended last, and n_leaves at that time */
    int64_t pooled;         /* its channels, if it joins a pooled copy of its input, too */
};

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
        if (rest.size == 0 && ret_shape->rank >= 2 && ret_shape->rank <= 1 + PLACES_MAX)
            return 0;
    }
    return fault_set(fault, EINVAL,
        "input=%.60s: give channels, height and width of one sample, such as 3x224x224", text);
}

/* ---- maps ---- */

static int64_t count_places(const struct map *map)
{
    int64_t places = 1;
    for (int i = 0; i < map->rank; i++)
        places *= map->places[i];
    return places;
}

/* Larger maps are mistakes. With it no product of sizes here overflows. */
static bool is_sane(const struct map *map)
{
    return map->channels > 0 && (double)map->channels * (double)count_places(map) <= elements_most;
}

static bool is_vector(const struct map *map)
{
    return count_places(map) == 1;
}

/* Returns false when the result is below one place or above the limit. */
static bool slide_window(const struct layer *layer, const struct window *w, struct map *map)
{
    bool enlarges = span_starts(layer->type, "ConvTranspose");
    for (int i = 0; i < map->rank; i++) {
        int64_t reach = w->dilation[i] * (w->kernel[i] - 1), n = map->places[i];
        if (enlarges)
            n = (n - 1) * w->stride[i] - 2 * w->padding[i] + reach + w->output_padding[i] + 1;
        else if (w->same)
            n = (n + w->stride[i] - 1) / w->stride[i];
        else
            n = (n + 2 * w->padding[i] - reach - 1 + (w->ceiling ? w->stride[i] - 1 : 0)) /
                    w->stride[i] +
                1;
        if (n < 1 || n > WINDOW_SIZE_MAX)
            return false;
        map->places[i] = n;
    }
    return true;
}

/* ---- the input of a layer ---- */

/* Tests whether the layer is in a list of convolutions that make maps of one kind. */
static bool is_in_map_list(const struct walk *walk)
{
    for (int i = walk->n_open - 1; i >= 0 && i >= walk->n_open - 2; i--)
        if (walk->open[i].is_map_list)
            return true;
    return false;
}

static bool has_places_of(const struct map *map, const struct map *other)
{
    return map->rank == other->rank &&
           memcmp(map->places, other->places, (size_t)map->rank * sizeof *map->places) == 0;
}

/* Finds the last output of a module, not of a layer, of as many channels. */
static const struct map *find_output(const struct walk *walk, size_t layer, int64_t channels)
{
    for (size_t k = layer; k > 0 && k + LOOK_BACK > layer; k--)
        if (walk->made[k - 1].channels == channels && !walk->model->layers[k - 1].leaf)
            return &walk->made[k - 1];
    return NULL;
}

/* Finds a map of as many channels: in a list of maps what a module put out; else the input of a
 * module around the layer, or one made before with the places of the current one; with any places
 * if the current one is a result or a gate. */
static const struct map *find_map(const struct walk *walk, size_t layer, int64_t channels)
{
    const struct map *output = is_in_map_list(walk) ? find_output(walk, layer, channels) : NULL;
    if (output)
        return output;
    for (int i = walk->n_open - 1; i >= 0; i--)
        if (walk->open[i].entry.channels == channels)
            return &walk->open[i].entry;
    for (size_t k = layer; k > 0 && k + LOOK_BACK > layer; k--)
        if (walk->made[k - 1].channels == channels &&
            (is_vector(&walk->current) || has_places_of(&walk->made[k - 1], &walk->current)))
            return &walk->made[k - 1];
    return NULL;
}

/* The module that ended last put several maps together: its output has the channels of all, and so
 * have the inputs of the modules that began since. */
static void join_output(struct walk *walk, size_t layer, int64_t channels)
{
    struct map *made = &walk->made[walk->ended];
    bool is_next = walk->ended < layer && made->channels == walk->current.channels &&
                   walk->ended_at == walk->n_leaves;
    if (!is_next)
        return;
    made->channels = channels;
    for (int i = 0; i < walk->n_open; i++)
        if (walk->open[i].layer > walk->ended)
            walk->open[i].entry.channels = channels;
}

/* Returns the map that a layer with this many input channels reads. */
static struct map input_of(struct walk *walk, size_t layer, int64_t channels)
{
    const struct map *found = walk->current.channels == channels ? &walk->current
                                                                 : find_map(walk, layer, channels);
    if (found)
        return *found;
    struct map joined = walk->current; /* of several maps, or a part of one */
    joined.channels = channels;
    if (channels > walk->current.channels)
        join_output(walk, layer, channels);
    return joined;
}

/* ---- layers ---- */

static bool apply_convolution(struct walk *walk, size_t i, struct map *map)
{
    const struct layer *layer = &walk->model->layers[i];
    struct window window = {0};
    bool is_guess = walk->current.channels != layer->in_size && i > 0 &&
                    layer->in_size != walk->pooled && !find_map(walk, i, layer->in_size);
    *map = input_of(walk, i, layer->in_size);
    walk->guessed = is_guess && walk->guessed == 0 ? i : walk->guessed;
    map->tokens = false;
    if (layer->in_size == LAYER_SIZE_UNKNOWN || map->rank == 0 ||
        !arguments_window(layer, map->rank, &window) || !slide_window(layer, &window, map))
        return false;
    map->channels = layer->out_size;
    return true;
}

/* Makes tokens `width` wide: neighbours are merged into one (patch merging), or a function has
 * divided or joined their channels. */
static void widen_tokens(struct map *map, int64_t width)
{
    int64_t places = count_places(map), times = width / map->channels;
    if (width > map->channels && width % map->channels == 0 && places % times == 0)
        *map = (struct map){.places = {places / times}, .rank = 1};
    map->channels = width;
    map->tokens = true;
}

static bool is_attention(const struct layer *layer)
{
    return span_find_text(layer->type, "Attention") < layer->type.size;
}

/* Returns the innermost attention around the current layer, or NULL. */
static const struct open_module *find_attention(const struct walk *walk)
{
    for (int i = walk->n_open - 1; i >= 0; i--)
        if (is_attention(&walk->model->layers[walk->open[i].layer]))
            return &walk->open[i];
    return NULL;
}

/* Over the channels of tokens; or over all features, or the mean of all places, of a map. */
static bool apply_linear(const struct walk *walk, const struct layer *layer, struct map *map)
{
    const struct open_module *attention = find_attention(walk);
    int64_t in = layer->in_size;
    if (in == LAYER_SIZE_UNKNOWN || (attention && attention->entry.channels != in))
        return false; /* in an attention: of positions, not of tokens */
    if (map->tokens && map->rank > 0 && map->channels * count_places(map) != in)
        widen_tokens(map, in);
    else
        *map = (struct map){.rank = 0};
    map->channels = layer->out_size;
    return true;
}

/* A norm of other tokens than the current ones is listed beside the layer that it belongs to: both
 * read what the module around them reads. */
static bool apply_norm(struct walk *walk, size_t i, struct map *map)
{
    const struct layer *layer = &walk->model->layers[i];
    bool of_tokens = span_starts(layer->type, "LayerNorm") && !span_ends(layer->type, "2d");
    int64_t width = layer->in_size;
    bool is_beside = of_tokens && width != LAYER_SIZE_UNKNOWN && map->channels != width &&
                     map->rank > 0 && walk->n_open > 0;
    if (is_beside) {
        struct map *made = &walk->made[i];
        *made = walk->open[walk->n_open - 1].entry;
        widen_tokens(made, width);
        return false;
    }
    if (width == LAYER_SIZE_UNKNOWN || map->channels == width)
        map->tokens |= of_tokens && map->rank > 0;
    else
        *map = input_of(walk, i, width);
    return true;
}

static bool apply_pool(const struct layer *layer, struct map *map)
{
    struct window window = {0};
    if (map->rank == 0)
        return true;
    if (layer->kind == LAYER_POOL_GLOBAL)
        return arguments_output_size(layer, map->rank, map->places);
    return arguments_window(layer, map->rank, &window) && slide_window(layer, &window, map);
}

static bool enlarge_map(struct map *map, int64_t scale)
{
    for (int i = 0; i < map->rank; i++) {
        if (scale < 1 || map->places[i] > WINDOW_SIZE_MAX / scale)
            return false;
        map->places[i] *= scale;
    }
    return true;
}

static bool is_resize(const struct layer *layer)
{
    return span_is(layer->type, "Resize");
}

/* torchvision's detectors enlarge each image in front of the network, and fill both sides up to
 * multiples of 32. */
static bool resize_map(struct map *map, const struct layer *layer)
{
    enum { SIDES = 2, FILL = 32 };
    int64_t shorter, longest;
    if (map->rank != SIDES || !arguments_sides(layer, &shorter, &longest))
        return false;
    const int64_t *sides = map->places;
    bool is_wide = sides[1] > sides[0];
    double scale = fmin(
        (double)shorter / (double)sides[!is_wide], (double)longest / (double)sides[is_wide]);
    for (int i = 0; i < SIDES; i++) {
        double side = floor((double)sides[i] * scale);
        if (side < 1 || side > WINDOW_SIZE_MAX)
            return false;
        map->places[i] = ((int64_t)side + FILL - 1) / FILL * FILL;
    }
    return true;
}

static void flatten_map(struct map *map)
{
    map->channels *= count_places(map);
    map->rank = 0;
    map->tokens = false;
}

/* Sets what layer `i` makes of the current map. Returns false where that does not follow. */
static bool apply_layer(struct walk *walk, size_t i, struct map *map)
{
    const struct layer *layer = &walk->model->layers[i];
    switch (layer->kind) {
    case LAYER_CONV:
        return apply_convolution(walk, i, map);
    case LAYER_LINEAR:
        return apply_linear(walk, layer, map);
    case LAYER_NORM:
        return apply_norm(walk, i, map);
    case LAYER_POOL:
    case LAYER_POOL_GLOBAL:
        return apply_pool(layer, map);
    case LAYER_ATTENTION:
        map->tokens = true;
        return true;
    case LAYER_RESHAPE:
        if (span_is(layer->type, "Flatten"))
            flatten_map(map);
        return true;
    case LAYER_MERGE:
        if (is_resize(layer)) /* of the input, wherever it is printed */
            return walk->n_leaves == 0;
        return !span_starts(layer->type, "Upsampl") || enlarge_map(map, arguments_scale(layer));
    case LAYER_EMBEDDING:
    case LAYER_RECURRENT:
        return false;
    default:
        return true;
    }
}

/* ---- modules ---- */

/* timm's squeeze-and-excitation takes the mean of all places in a function: two convolutions of one
 * tap, the first to fewer channels, and a gate. */
static bool is_gate(const struct model *model, size_t i)
{
    const struct layer *layers = model->layers;
    size_t end = i + 1;
    int convolutions = 0;
    bool narrow = true;
    for (; end < model->n_layers && layers[end].depth > layers[i].depth; end++) {
        convolutions += layers[end].kind == LAYER_CONV;
        narrow &= layers[end].kind != LAYER_CONV || layers[end].kernel_size == 1;
    }
    return convolutions == 2 && narrow && span_ends(layers[end - 1].type, "igmoid");
}

/* Returns the index behind the last layer in a module. */
static size_t end_of(const struct model *model, size_t module)
{
    size_t i = module + 1;
    while (i < model->n_layers && model->layers[i].depth > model->layers[module].depth)
        i++;
    return i;
}

/* Returns the only convolution in a member of a list, or the member itself; NULL: it is more. */
static const struct layer *only_convolution(const struct model *model, size_t member, size_t end)
{
    const struct layer *found = NULL;
    for (size_t i = member; i < end; i++) {
        const struct layer *layer = &model->layers[i];
        bool is_simple = !layer->leaf || layer->kind == LAYER_CONV || layer->kind == LAYER_NORM ||
                         layer->kind == LAYER_ACTIVATION;
        if (!is_simple || (found && layer->kind == LAYER_CONV))
            return NULL;
        found = layer->kind == LAYER_CONV ? layer : found;
    }
    return found;
}

/* Tests whether a module is a list of convolutions that make maps of one kind. */
static bool has_map_list(const struct model *model, size_t list)
{
    size_t end = end_of(model, list), members = 0, next;
    int64_t channels = 0;
    if (!span_is(model->layers[list].type, "ModuleList"))
        return false;
    for (size_t member = list + 1; member < end; member = next) {
        next = end_of(model, member);
        const struct layer *convolution = only_convolution(model, member, next);
        if (!convolution || (channels > 0 && convolution->out_size != channels))
            return false;
        channels = convolution->out_size;
        members++;
    }
    return members > 1;
}

static size_t count_members(const struct model *model, size_t list)
{
    size_t members = 0, end = end_of(model, list);
    for (size_t member = list + 1; member < end; member = end_of(model, member))
        members++;
    return members;
}

/* A list beside one of as many members reads what these have made, one by one. */
static void enter_map_list(struct walk *walk, struct open_module *list)
{
    const struct layer *layers = walk->model->layers;
    size_t other = walk->map_list;
    list->is_map_list = has_map_list(walk->model, list->layer);
    bool is_beside = list->is_map_list && other > 0 &&
                     layers[other].depth == layers[list->layer].depth &&
                     end_of(walk->model, other) == list->layer;
    if (is_beside && count_members(walk->model, other) == count_members(walk->model, list->layer))
        list->beside = other + 1;
}

static void enter_member(struct walk *walk, size_t i)
{
    struct open_module *list = walk->n_open > 0 ? &walk->open[walk->n_open - 1] : NULL;
    if (!list || list->beside == 0 ||
        walk->model->layers[i].depth != walk->model->layers[list->layer].depth + 1)
        return;
    if (walk->made[list->beside].channels > 0)
        walk->current = walk->made[list->beside];
    list->beside = end_of(walk->model, list->beside);
}

/* Keeps the largest map of a list that the layer or module `i` is in. */
static void note_member(struct walk *walk, size_t i)
{
    struct open_module *list = walk->n_open > 0 ? &walk->open[walk->n_open - 1] : NULL;
    if (list && list->is_map_list && walk->made[i].channels > 0 &&
        count_places(&walk->made[i]) > count_places(&list->largest))
        list->largest = walk->made[i];
}

static void enter_module(struct walk *walk, size_t i)
{
    if (walk->n_open == MODEL_DEPTH_MAX)
        return;
    walk->open[walk->n_open++] = (struct open_module){.layer = i, .entry = walk->current};
    enter_map_list(walk, &walk->open[walk->n_open - 1]);
    for (int k = 0; is_gate(walk->model, i) && k < walk->current.rank; k++)
        walk->current.places[k] = 1;
}

/* Returns the channels that the first convolution of a module, or in it, reads; 0: it has none. */
static int64_t channels_read(const struct model *model, size_t module)
{
    const struct layer *layers = model->layers;
    for (size_t i = module; i == module || layers[i].depth > layers[module].depth;) {
        if (layers[i].kind == LAYER_CONV)
            return layers[i].in_size;
        if (++i == model->n_layers)
            break;
    }
    return 0;
}

static bool is_empty_module(const struct model *model, size_t i)
{
    return model->layers[i].kind == LAYER_CONTAINER &&
           (i + 1 == model->n_layers || model->layers[i + 1].depth <= model->layers[i].depth);
}

/* A branch without another in its module: a function passes the other channels. */
static bool is_only_branch(const struct model *model, size_t i)
{
    const struct layer *layers = model->layers;
    if (branch_role_of(layers[i].name, (struct span){0}) == BRANCH_NONE)
        return false;
    for (size_t k = i + 1; k < model->n_layers && layers[k].depth >= layers[i].depth; k++)
        if (layers[k].depth == layers[i].depth &&
            branch_role_of(layers[k].name, layers[i].name) == BRANCH_BEGINS)
            return false;
    return true;
}

/* Returns the channels that the first convolution after a module reads; 0: there is none, or an
 * empty branch before it passes a part of them. */
static int64_t channels_read_after(const struct model *model, size_t module)
{
    const struct layer *layers = model->layers;
    size_t i = module + 1;
    while (i < model->n_layers && layers[i].depth > layers[module].depth)
        i++;
    size_t end = model->n_layers - i > LOOK_AHEAD ? i + LOOK_AHEAD : model->n_layers;
    for (; i < end && !is_empty_module(model, i) && !is_only_branch(model, i); i++)
        if (layers[i].kind == LAYER_CONV)
            return layers[i].in_size;
    return 0;
}

/* Begins a branch of a module, or the second part of a fork: sets the current map to what it
 * reads. */
static void begin_branch(
    struct walk *walk, struct open_module *module, size_t i, enum branch_role role)
{
    if (module->n_branches++ > 0 && !module->is_empty)
        module->channels += walk->current.channels;
    walk->current = role == BRANCH_FORKS ? module->before : module->entry;
    int64_t read = channels_read(walk->model, i);
    if (module->divides && read > 0 && read < walk->current.channels)
        walk->current.channels = read; /* a part of them */
    module->is_empty = is_empty_module(walk->model, i);
    module->divides |= module->is_empty;
}

static void enter_branch(struct walk *walk, size_t i)
{
    const struct layer *layers = walk->model->layers;
    struct open_module *module = walk->n_open > 0 ? &walk->open[walk->n_open - 1] : NULL;
    if (!module || layers[i].depth != layers[module->layer].depth + 1)
        return;
    enum branch_role role = branch_role_of(layers[i].name, module->branch);
    if (role == BRANCH_NONE)
        return;
    if (role != BRANCH_GOES_ON)
        begin_branch(walk, module, i, role);
    module->branch = layers[i].name;
    module->before = walk->current;
}

/* Tests whether module `i` only pools and changes the channels. Returns the stride of the pool. */
static bool is_pooled_shortcut(const struct model *model, size_t i, int64_t *ret_stride)
{
    const struct layer *layers = model->layers;
    struct window window = {.stride = {1}};
    int pools = 0, convolutions = 0;
    for (size_t k = i + 1; k < model->n_layers && layers[k].depth > layers[i].depth; k++) {
        if (k > i + LOOK_AHEAD)
            return false;
        bool is_pool = layers[k].kind == LAYER_POOL,
             is_pointwise = layers[k].kind == LAYER_CONV && layers[k].kernel_size == 1;
        if (!is_pool && !is_pointwise && layers[k].kind != LAYER_NORM)
            return false;
        pools += is_pool && arguments_window(&layers[k], 1, &window);
        convolutions += is_pointwise;
    }
    *ret_stride = window.stride[0];
    return pools == 1 && convolutions == 1;
}

/* Tests whether one of the convolutions in a module has this stride. */
static bool has_stride(const struct model *model, size_t module, int64_t stride)
{
    const struct layer *layers = model->layers;
    struct window window;
    for (size_t k = module + 1;
         k < model->n_layers && layers[k].depth > layers[module].depth && k < module + LOOK_AHEAD;
         k++)
        if (layers[k].kind == LAYER_CONV && arguments_window(&layers[k], 1, &window) &&
            window.stride[0] == stride)
            return true;
    return false;
}

/*
 * A block whose shortcut comes first, and shrinks the map as its other part does:
 *
 *     (proj): Sequential(AvgPool2d(kernel_size=3, stride=2), Conv2d(64, 64, kernel_size=1))
 *     (layers): Sequential(..., Conv2d(256, 256, kernel_size=3, stride=2), ...)
 *
 * Both read what the block reads, since their results are added. Between the two stands at most
 * what changes no map.
 */
static void enter_beside_shortcut(struct walk *walk, size_t i)
{
    const struct layer *layers = walk->model->layers;
    const struct open_module *block = walk->n_open > 0 ? &walk->open[walk->n_open - 1] : NULL;
    int64_t stride;
    if (!block || layers[i].depth != layers[block->layer].depth + 1 || i == block->layer + 1 ||
        i > block->layer + LOOK_BACK || !is_pooled_shortcut(walk->model, block->layer + 1, &stride))
        return;
    for (size_t k = block->layer + 2; k < i; k++)
        if (layers[k].depth == layers[i].depth && layers[k].kind != LAYER_RESHAPE &&
            layers[k].kind != LAYER_DROPOUT)
            return;
    if (channels_read(walk->model, i) == block->entry.channels && stride > 1 &&
        has_stride(walk->model, i, stride))
        walk->current = block->entry;
}

/* Tests whether a module adds its branches: all have equally many channels, and the next layer
 * reads no more. */
static bool adds_branches(const struct walk *walk, const struct open_module *module)
{
    int64_t channels = walk->current.channels;
    return !module->divides && module->channels == (module->n_branches - 1) * channels &&
           channels_read_after(walk->model, module->layer) == channels;
}

/* Puts the branches of a module together. Returns the channels with those of its input, as its
 * first convolution reads it, since a function may have pooled it and put it beside them; 0: too
 * many. */
static int64_t join_branches(struct walk *walk, const struct open_module *module)
{
    struct map joined = walk->current;
    int64_t read = channels_read(walk->model, module->layer);
    joined.channels = module->channels + (module->is_empty ? 0 : walk->current.channels);
    if (module->divides && read > 0 && read < module->entry.channels)
        joined.channels += module->entry.channels - read;
    if (!is_sane(&joined))
        return 0;
    walk->current = joined;
    return joined.channels + read;
}

/* A list of maps puts out its largest, and so does the module that it is a part of. */
static void leave_map_list(struct walk *walk, const struct open_module *module)
{
    const struct layer *layers = walk->model->layers;
    if (module->is_map_list) {
        walk->current = module->largest.channels > 0 ? module->largest : walk->current;
        walk->map_list = module->layer;
        walk->guessed = walk->guessed > 0 ? walk->guessed : module->layer;
    } else if (walk->map_list > module->layer &&
               layers[walk->map_list].depth == layers[module->layer].depth + 1) {
        walk->current = walk->made[walk->map_list];
    }
}

static void leave_modules(struct walk *walk, int depth)
{
    const struct layer *layers = walk->model->layers;
    while (walk->n_open > 0 && layers[walk->open[walk->n_open - 1].layer].depth >= depth) {
        const struct open_module *module = &walk->open[--walk->n_open];
        bool scales = is_vector(&walk->current) && !is_vector(&module->entry) &&
                      walk->current.rank > 0 && walk->current.channels == module->entry.channels;
        if (scales || is_attention(&layers[module->layer])) /* which leave its size */
            walk->current = module->entry;
        bool joins = module->n_branches > 1 && !adds_branches(walk, module);
        walk->pooled = joins ? join_branches(walk, module) : 0;
        leave_map_list(walk, module);
        walk->made[module->layer] = walk->current;
        note_member(walk, module->layer);
        walk->ended = module->layer;
        walk->ended_at = walk->n_leaves;
    }
}

/* ---- the shapes ---- */

static void set_shape(const struct map *map, struct layer *layer)
{
    layer->rank = 0;
    if (!map->tokens)
        layer->shape[layer->rank++] = map->channels;
    for (int i = 0; i < map->rank; i++)
        layer->shape[layer->rank++] = map->places[i];
    if (map->tokens)
        layer->shape[layer->rank++] = map->channels;
    layer->activations = (struct count){map->channels * count_places(map), true};
}

/* The layers inside nn.MultiheadAttention are used as functions: they get no shape. */
static bool is_used_as_function(const struct walk *walk)
{
    const struct open_module *attention = find_attention(walk);
    return attention && walk->model->layers[attention->layer].kind == LAYER_ATTENTION;
}

static void walk_layers(struct walk *walk)
{
    struct model *model = walk->model;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        leave_modules(walk, layer->depth);
        enter_branch(walk, i);
        enter_beside_shortcut(walk, i);
        enter_member(walk, i);
        bool opens = i + 1 < model->n_layers && model->layers[i + 1].depth > layer->depth;
        bool applies = layer->leaf && !is_used_as_function(walk);
        struct map map = walk->current;
        if (opens)
            enter_module(walk, i);
        if (applies && apply_layer(walk, i, &map) && is_sane(&map))
            walk->made[i] = walk->current = map;
        if (!opens)
            note_member(walk, i);
        walk->n_leaves += layer->leaf;
    }
    leave_modules(walk, 0);
}

/* Sets the shapes and the sums over them. Returns whether these fit 64 bits. */
static bool set_shapes(const struct walk *walk)
{
    struct model *model = walk->model;
    int64_t *all = &model->activations.value;
    model->n_leaves_unshaped = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        struct layer *layer = &model->layers[i];
        if (walk->made[i].channels > 0)
            set_shape(&walk->made[i], layer);
        if (!layer->leaf || layer->kind == LAYER_INPUT)
            continue;
        model->n_leaves_unshaped += !layer->activations.known;
        model->activations.known |= layer->activations.known;
        if (__builtin_add_overflow(*all, layer->activations.value, all))
            return false;
    }
    return true;
}

static void resize_input(const struct model *model, struct map *input)
{
    struct map resized = *input;
    for (size_t i = 0; i < model->n_layers; i++)
        if (is_resize(&model->layers[i]) && resize_map(&resized, &model->layers[i])) {
            *input = resized;
            return;
        }
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
    struct walk walk = {
        .model = model, .current = {.channels = input->size[0], .rank = input->rank - 1}};
    if (model->activations.known || reads_tokens(model)) {
        model_warn(model, 0, "the input's shape is not used: %s",
            model->activations.known ? "the summary has shapes" : "the model reads tokens");
        return 0;
    }
    for (int i = 1; i < input->rank; i++)
        walk.current.places[i - 1] = input->size[i];
    resize_input(model, &walk.current);
    walk.made = calloc(model->n_layers, sizeof *walk.made);
    if (!walk.made)
        return fault_set(fault, ENOMEM, "out of memory");
    walk_layers(&walk);
    bool fits = set_shapes(&walk);
    free(walk.made);
    if (walk.guessed)
        warn_of_guess(model, &model->layers[walk.guessed]);
    return fits ? 0 : fault_set(fault, ERANGE, "the sums over the layers are beyond 64 bits");
}
