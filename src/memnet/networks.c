/* SPDX-License-Identifier: Apache-2.0 */
/* Parses layers.jsonl, sorts the networks by key and finds them by bisection. */
#include "memnet/networks.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

enum cell { CELL_TYPE, CELL_PARAMETERS = 2, CELL_SHAPE = 4, CELL_REUSED = 6 };

/* ---- the summary ---- */

static void print_shape(FILE *out, const json_t *shape)
{
    if (!json_is_array(shape)) {
        fputs("--", out);
        return;
    }
    fputs("[1", out);
    for (size_t i = 0; i < json_array_size(shape); i++)
        fprintf(out, ", %" JSON_INTEGER_FORMAT, json_integer_value(json_array_get(shape, i)));
    fputc(']', out);
}

static int print_row(FILE *out, const json_t *row, size_t i, struct fault *fault)
{
    const char *type = json_string_value(json_array_get(row, CELL_TYPE));
    const json_t *parameters = json_array_get(row, CELL_PARAMETERS),
                 *reused = json_array_get(row, CELL_REUSED);
    if (!type || !*type || strpbrk(type, " \n") || !json_is_integer(parameters) || !reused)
        return fault_set(
            fault, EINVAL, "rows[%zu]: must have a type, parameters and whether it is reused", i);
    fprintf(out, "├─%s: 1-%zu   ", type, i + 1);
    print_shape(out, json_array_get(row, CELL_SHAPE));
    if (json_integer_value(reused))
        fputs("   (recursive)\n", out);
    else if (json_integer_value(parameters) == 0)
        fputs("   --\n", out);
    else
        fprintf(out, "   %" JSON_INTEGER_FORMAT "\n", json_integer_value(parameters));
    return 0;
}

static int print_summary(const json_t *root, FILE *out, struct fault *fault)
{
    static const char rule[] =
        "==========================================================================\n";
    const json_t *rows = json_object_get(root, "rows");
    int r = json_array_size(rows) ? 0 : fault_set(fault, EINVAL, "no rows");
    fprintf(out, "%sLayer (type:depth-idx)   Output Shape   Param #\n%sSequential: 0-1   --   --\n",
        rule, rule);
    for (size_t i = 0; r == 0 && i < json_array_size(rows); i++)
        r = print_row(out, json_array_get(rows, i), i, fault);
    fputs(rule, out);
    return r;
}

static int model_of(const json_t *root, struct fault *fault, struct model **ret_model)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = print_summary(root, out, fault);
    if (fclose(out) != 0 && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = model_parse(text, size, fault, ret_model);
    free(text);
    return r;
}

/* ---- the file ---- */

static int add_network(struct networks *networks, const json_t *root, struct fault *fault)
{
    const char *key = json_string_value(json_object_get(root, "model"));
    if (!key)
        return fault_set(fault, EINVAL, "no member \"model\"");
    if (ARRAY_RESERVE(networks->rows, networks->capacity, networks->n + 1) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    struct named_network *row = &networks->rows[networks->n++];
    *row = (struct named_network){.key = strdup(key)};
    return row->key ? model_of(root, fault, &row->model)
                    : fault_set(fault, ENOMEM, "out of memory");
}

static int parse_line(struct networks *networks, struct span line, int number, struct fault *fault)
{
    json_error_t error;
    json_t *root = json_loadb(line.at, line.size, 0, &error);
    if (!root)
        return fault_set(fault, EINVAL, "line %d: no JSON, or cut: %s", number, error.text);
    int r = add_network(networks, root, fault);
    json_decref(root);
    return r < 0 ? fault_prefix(fault, r, "line %d", number) : 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct named_network *left = a, *right = b;
    return strcmp(left->key, right->key);
}

int networks_parse(
    const char *text, size_t size, struct fault *fault, struct networks *ret_networks)
{
    struct span rest = {text, size}, line;
    *ret_networks = (struct networks){0};
    int r = 0;
    for (int number = 1; r == 0 && span_next_line(&rest, &line); number++)
        if (span_trim(line).size > 0)
            r = parse_line(ret_networks, line, number, fault);
    if (r == 0 && ret_networks->n)
        qsort(ret_networks->rows, ret_networks->n, sizeof *ret_networks->rows, compare_keys);
    for (size_t i = 1; r == 0 && i < ret_networks->n; i++)
        if (compare_keys(&ret_networks->rows[i - 1], &ret_networks->rows[i]) == 0)
            r = fault_set(
                fault, EINVAL, "two networks have the key \"%.80s\"", ret_networks->rows[i].key);
    return r;
}

void networks_fini(struct networks *networks)
{
    for (size_t i = 0; i < networks->n; i++) {
        free(networks->rows[i].key);
        model_destroy(networks->rows[i].model);
    }
    free(networks->rows);
    *networks = (struct networks){0};
}

const struct model *networks_find(const struct networks *networks, const char *key)
{
    struct named_network wanted = {.key = (char *)key};
    const struct named_network *found = networks->n ? bsearch(&wanted, networks->rows, networks->n,
                                                          sizeof wanted, compare_keys)
                                                    : NULL;
    return found ? found->model : NULL;
}
