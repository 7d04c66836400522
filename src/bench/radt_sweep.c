/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a specification into a table. As in radT each combination is a separate workload, the
 * last parameter changes fastest, and a parameter becomes an option of the script:
 *
 *     name: sweep                      Experiment,Workload,Name,...,Devices,...,File,Params
 *     experiment: 0                    0,000,sweep,...,0,...,fit.py,--lr 0.1 --batch 8
 *     devices: 0                       0,001,sweep,...,0,...,fit.py,--lr 0.1 --batch 16
 *     collocation: "-"
 *     listeners: smi+top
 *     file: fit.py
 *     method: grid
 *     parameters:
 *       lr: {values: [0.1]}
 *       batch: {values: [8, 16]}
 */
#include "bench/radt_sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/array.h"
#include "base/columns.h"
#include "base/file.h"
#include "bench/radt.h"

enum { TEXT_MAX = 1 << 20, COMBINATIONS_MAX = 10000, PARAMETERS_MAX = 64 }; /* chosen */

struct parameter {
    const char *name;
    const yaml_node_t *values; /* a sequence, not empty */
    size_t n;
};

struct sweep {
    yaml_document_t *document;
    const char *path;
    struct fault *fault;
    struct parameter parameters[PARAMETERS_MAX];
    size_t n_parameters, n_combinations;
};

static int report_mistake(const struct sweep *sweep, const char *what, const char *name)
{
    return fault_set(sweep->fault, EINVAL, "%s: %s%.60s", sweep->path, what, name);
}

bool radt_sweep_is(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* ---- the document ---- */

static const char *scalar_of(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static yaml_node_t *member_of(
    const struct sweep *sweep, const yaml_node_t *mapping, const char *key)
{
    if (!mapping || mapping->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const char *name = scalar_of(yaml_document_get_node(sweep->document, pair->key));
        if (name && strcmp(name, key) == 0)
            return yaml_document_get_node(sweep->document, pair->value);
    }
    return NULL;
}

static int add_parameter(struct sweep *sweep, const char *name, const yaml_node_t *node)
{
    const yaml_node_t *values = member_of(sweep, node, "values");
    if (!name || !*name || strpbrk(name, " \t\r\n"))
        return report_mistake(sweep, "a parameter's name must be a word", "");
    if (sweep->n_parameters == PARAMETERS_MAX)
        return report_mistake(sweep, "too many parameters, the first of them: ", name);
    if (!values || values->type != YAML_SEQUENCE_NODE ||
        values->data.sequence.items.start == values->data.sequence.items.top)
        return report_mistake(
            sweep, "a parameter must have a list of values, as in 'values: [1, 2]': ", name);
    size_t n = (size_t)(values->data.sequence.items.top - values->data.sequence.items.start);
    for (size_t i = 0; i < n; i++)
        if (!scalar_of(
                yaml_document_get_node(sweep->document, values->data.sequence.items.start[i])))
            return report_mistake(sweep, "a value is a list or a mapping, of the parameter ", name);
    sweep->parameters[sweep->n_parameters++] = (struct parameter){name, values, n};
    if (n > COMBINATIONS_MAX / sweep->n_combinations)
        return fault_set(
            sweep->fault, EFBIG, "%s: more than %d combinations", sweep->path, COMBINATIONS_MAX);
    sweep->n_combinations *= n;
    return 0;
}

static int read_parameters(struct sweep *sweep, const yaml_node_t *root)
{
    const yaml_node_t *all = member_of(sweep, root, "parameters");
    const char *method = scalar_of(member_of(sweep, root, "method"));
    int r = 0;
    if (method && strcmp(method, "grid") != 0)
        return report_mistake(sweep, "the method must be grid, not ", method);
    if (!all || all->type != YAML_MAPPING_NODE)
        return report_mistake(sweep, "it has no mapping 'parameters'", "");
    for (const yaml_node_pair_t *pair = all->data.mapping.pairs.start;
         r == 0 && pair < all->data.mapping.pairs.top; pair++)
        r = add_parameter(sweep, scalar_of(yaml_document_get_node(sweep->document, pair->key)),
            yaml_document_get_node(sweep->document, pair->value));
    return r;
}

/* ---- the table ---- */

/* Returns a plain word of YAML as Python prints it, which is how radT passes it. */
static const char *as_python(const yaml_node_t *node)
{
    static const char *const words[][2] = {
        {"true", "True"}, {"false", "False"}, {"null", "None"}, {"~", "None"}};
    const char *text = scalar_of(node);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
            strcasecmp(text, words[i][0]) == 0)
            return words[i][1];
    return text;
}

/* Writes the options of combination number `i` as text that the caller frees; NULL: out of memory.
 */
static char *params_of(const struct sweep *sweep, size_t i)
{
    char *text = NULL;
    size_t size, below = sweep->n_combinations;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t k = 0; k < sweep->n_parameters; k++) {
        const struct parameter *parameter = &sweep->parameters[k];
        below /= parameter->n;
        yaml_node_item_t item =
            parameter->values->data.sequence.items.start[i / below % parameter->n];
        fprintf(out, "%s--%s %s", k ? " " : "", parameter->name,
            as_python(yaml_document_get_node(sweep->document, item)));
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int print_row(const struct sweep *sweep, const yaml_node_t *root, size_t i, FILE *out)
{
    static const char *const keys[] = {
        "name", "", "", "devices", "collocation", "listeners", "file"};
    const char *experiment = scalar_of(member_of(sweep, root, "experiment"));
    char *params = params_of(sweep, i);
    if (!params)
        return fault_set(sweep->fault, ENOMEM, "out of memory");
    columns_print(out, experiment ? experiment : "0");
    fprintf(out, ",%03zu", i);
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        const char *value = *keys[k] ? scalar_of(member_of(sweep, root, keys[k])) : NULL;
        fputc(',', out);
        columns_print(out, value ? value : "");
    }
    fputc(',', out);
    columns_print(out, params);
    fputc('\n', out);
    free(params);
    return 0;
}

/* A value is in many rows, and an alias of YAML in many parameters: a short text can be a long
 * table. */
static int print_table(const struct sweep *sweep, const yaml_node_t *root, FILE *out)
{
    int r = 0;
    fputs("Experiment,Workload,Name,Status,Run,Devices,Collocation,Listeners,File,Params\n", out);
    for (size_t i = 0; i < sweep->n_combinations && r == 0; i++) {
        r = print_row(sweep, root, i, out);
        if (r == 0 && ftello(out) > RADT_TABLE_MAX)
            r = fault_set(sweep->fault, EFBIG,
                "%s: its %zu combinations make a table of more than %d MiB: give fewer or shorter "
                "values",
                sweep->path, sweep->n_combinations, RADT_TABLE_MAX >> 20);
    }
    return r;
}

static int make_table(struct sweep *sweep, char **ret_table)
{
    const yaml_node_t *root = yaml_document_get_root_node(sweep->document);
    size_t size;
    if (!scalar_of(member_of(sweep, root, "file")))
        return report_mistake(sweep, "it names no 'file'", "");
    int r = read_parameters(sweep, root);
    if (r < 0)
        return r;
    FILE *out = open_memstream(ret_table, &size);
    if (!out)
        return fault_set(sweep->fault, ENOMEM, "out of memory");
    r = print_table(sweep, root, out);
    if (fclose(out) != 0 && r == 0)
        r = fault_set(sweep->fault, ENOMEM, "out of memory");
    return r;
}

int radt_sweep_parse(
    const char *text, size_t size, const char *path, struct fault *fault, char **ret_table)
{
    yaml_parser_t parser;
    yaml_document_t document;
    *ret_table = NULL;
    if (!yaml_parser_initialize(&parser))
        return fault_set(fault, ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    int r;
    if (!yaml_parser_load(&parser, &document)) {
        r = fault_set(fault, EINVAL, "%s:%zu: %s", path, parser.problem_mark.line + 1,
            parser.problem ? parser.problem : "invalid YAML");
    } else {
        struct sweep sweep = {
            .document = &document, .path = path, .fault = fault, .n_combinations = 1};
        r = make_table(&sweep, ret_table);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    if (r < 0) {
        free(*ret_table);
        *ret_table = NULL;
    }
    return r;
}

int radt_sweep_table(const char *path, struct fault *fault, char **ret_table)
{
    char *text;
    size_t size;
    int r = file_read(path, TEXT_MAX, fault, &text, &size);
    if (r < 0)
        return r;
    r = radt_sweep_parse(text, size, path, fault, ret_table);
    free(text);
    return r;
}
