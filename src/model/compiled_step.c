/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the compiled step of an export:
 *
 *     "compiled": {"temp_bytes": 26214400, "argument_bytes": 41000000, "code_bytes": null, ...,
 *                  "arguments": [40000000, 1000000], "outputs": [[40000000, 0], [4, -1]]}
 *
 * A member that this version of JAX did not know is null. Temporaries have to be known, since they
 * are most of a step's memory. Every size is checked: a file may come from anywhere.
 */
#include "model/compiled_step.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Of one array, and of all: a larger size is a mistake. Chosen: sums do not overflow. */
#define STEP_BYTES_MAX ((int64_t)1 << 52)

enum { ARRAYS_MAX = 100000 }; /* chosen: parameters and states of the largest models */

void compiled_step_fini(struct compiled_step *step)
{
    free(step->arguments);
    free(step->outputs);
    *step = (struct compiled_step){0};
}

static bool size_in_bytes(const json_t *value, int64_t *ret)
{
    *ret = json_integer_value(value);
    return json_is_integer(value) && *ret >= 0 && *ret <= STEP_BYTES_MAX;
}

/* Null or missing: not known. */
static int read_figure(
    const json_t *compiled, const char *name, struct fault *fault, struct count *ret)
{
    const json_t *value = json_object_get(compiled, name);
    *ret = (struct count){0};
    if (!value || json_is_null(value))
        return 0;
    ret->known = size_in_bytes(value, &ret->value);
    return ret->known ? 0
                      : fault_set(fault, EINVAL,
                            "compiled: %s: must be bytes, at most 2^52, or null", name);
}

static int check_list(const json_t *list, const char *name, struct fault *fault)
{
    if (!json_is_array(list))
        return fault_set(fault, EINVAL, "compiled: %s: must be a list", name);
    if (json_array_size(list) > ARRAYS_MAX)
        return fault_set(fault, EFBIG, "compiled: %s: more than %d", name, ARRAYS_MAX);
    return 0;
}

static int read_arguments(const json_t *list, struct fault *fault, struct compiled_step *step)
{
    int r = check_list(list, "arguments", fault);
    size_t n = json_array_size(list);
    if (r < 0)
        return r;
    step->arguments = calloc(n + 1, sizeof *step->arguments);
    if (!step->arguments)
        return fault_set(fault, ENOMEM, "out of memory");
    for (step->n_arguments = 0; step->n_arguments < n; step->n_arguments++)
        if (!size_in_bytes(
                json_array_get(list, step->n_arguments), &step->arguments[step->n_arguments]))
            return fault_set(fault, EINVAL, "compiled: arguments[%zu]: must be bytes, at most 2^52",
                step->n_arguments);
    return 0;
}

static bool read_output(
    const json_t *row, const struct compiled_step *step, struct compiled_output *ret)
{
    const json_t *replaces = json_array_get(row, 1);
    ret->replaces = json_integer_value(replaces);
    return size_in_bytes(json_array_get(row, 0), &ret->bytes) && json_is_integer(replaces) &&
           ret->replaces >= COMPILED_NO_ARGUMENT && ret->replaces < (int64_t)step->n_arguments;
}

/* No two outputs may take the place of one argument. */
static int read_outputs(const json_t *list, struct fault *fault, struct compiled_step *step)
{
    int r = check_list(list, "outputs", fault);
    size_t n = json_array_size(list);
    if (r < 0)
        return r;
    step->outputs = calloc(n + 1, sizeof *step->outputs);
    bool *is_replaced = calloc(step->n_arguments + 1, sizeof *is_replaced);
    if (!step->outputs || !is_replaced)
        r = fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct compiled_output *output = &step->outputs[step->n_outputs];
        bool right = read_output(json_array_get(list, i), step, output);
        bool *replaced = right && output->replaces >= 0 ? &is_replaced[output->replaces] : NULL;
        if (!right || (replaced && *replaced))
            r = fault_set(fault, EINVAL,
                "compiled: outputs[%zu]: must be [bytes, index of the argument that it replaces, or "
                "-1]",
                i);
        else
            step->n_outputs++;
        if (replaced)
            *replaced = true;
    }
    free(is_replaced);
    return r;
}

/* Free and used memory are parts of the pool; a file that says otherwise is wrong. */
static int check_pool(const struct compiled_pool *pool, struct fault *fault)
{
    int64_t used = pool->in_use_bytes.known ? pool->in_use_bytes.value : 0,
            left = pool->largest_free_bytes.known ? pool->largest_free_bytes.value : 0;
    bool fits = !pool->pool_bytes.known || used + left <= pool->pool_bytes.value;
    return fits ? 0
                : fault_set(
                      fault, EINVAL, "compiled: compiling: the pool is smaller than its blocks");
}

static int read_pool(const json_t *value, struct fault *fault, struct compiled_pool *ret_pool)
{
    const struct {
        const char *name;
        struct count *figure;
    } figures[] = {
        {"in_use_bytes", &ret_pool->in_use_bytes},
        {"peak_bytes", &ret_pool->peak_bytes},
        {"pool_bytes", &ret_pool->pool_bytes},
        {"largest_free_bytes", &ret_pool->largest_free_bytes},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(figures); i++)
        r = read_figure(value, figures[i].name, fault, figures[i].figure);
    return r < 0 ? r : check_pool(ret_pool, fault);
}

int compiled_step_read(
    const struct json_t *root, struct fault *fault, struct compiled_step *ret_step)
{
    const json_t *compiled = json_object_get(root, "compiled");
    const char *platform = json_string_value(
        json_object_get(json_object_get(root, "framework"), "platform"));
    *ret_step = (struct compiled_step){0};
    if (!compiled)
        return 0;
    ret_step->is_there = true;
    ret_step->is_for_gpu = platform &&
                           (strcmp(platform, "gpu") == 0 || strcmp(platform, "cuda") == 0);
    if (!size_in_bytes(json_object_get(compiled, "temp_bytes"), &ret_step->temp_bytes))
        return fault_set(fault, EINVAL, "compiled: temp_bytes: must be bytes, at most 2^52");
    int r = read_figure(compiled, "argument_bytes", fault, &ret_step->argument_bytes);
    if (r == 0)
        r = read_figure(compiled, "code_bytes", fault, &ret_step->code_bytes);
    if (r == 0)
        r = read_pool(json_object_get(compiled, "compiling"), fault, &ret_step->compiling);
    if (r == 0)
        r = read_arguments(json_object_get(compiled, "arguments"), fault, ret_step);
    return r < 0 ? r : read_outputs(json_object_get(compiled, "outputs"), fault, ret_step);
}
