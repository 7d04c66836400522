/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs trainings in conda environments by `conda run`, which also sets the variables that an
 * environment's activation sets. colloc creates no environment: that downloads packages for
 * minutes, and is a separate command (`conda env create -f conda.yaml`).
 */
#include "bench/conda_environment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "base/array.h"
#include "base/file.h"
#include "base/text.h"
#include "bench/program_output.h"
#include "gpu/program.h"

enum { TEXT_MAX = 1 << 20 };

const char *conda_find(void)
{
    static const char *const programs[] = {"conda", "mamba", "micromamba"};
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
        if (program_find(programs[i], path, sizeof path))
            return programs[i];
    return NULL;
}

/* ---- conda.yaml ---- */

/* Returns a copy of the document's "name", or NULL. */
static char *name_in(yaml_document_t *document)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key),
                          *value = yaml_document_get_node(document, pair->value);
        if (key->type == YAML_SCALAR_NODE && value->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value, "name") == 0)
            return strdup((const char *)value->data.scalar.value);
    }
    return NULL;
}

static char *parse_name(const char *text, size_t size)
{
    yaml_parser_t parser;
    yaml_document_t document;
    char *name = NULL;
    if (!yaml_parser_initialize(&parser))
        return NULL;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    if (yaml_parser_load(&parser, &document)) {
        name = name_in(&document);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return name;
}

int conda_environment_name(const char *folder, struct fault *fault, char **ret_name)
{
    char path[PATH_MAX], *text;
    size_t size;
    snprintf(path, sizeof path, "%s%sconda.yaml", folder ? folder : "", folder ? "/" : "");
    int r = file_read(path, TEXT_MAX, fault, &text, &size);
    if (r < 0)
        return fault_prefix(fault, r, "--conda needs a conda.yaml beside the script");
    *ret_name = parse_name(text, size);
    free(text);
    if (*ret_name && **ret_name && **ret_name != '-')
        return 0;
    free(*ret_name);
    *ret_name = NULL;
    return fault_set(fault, EINVAL, "%s: it names no environment: add a line 'name: NAME'", path);
}

/* ---- commands ---- */

char **conda_command(const char *program, const char *name, char **argv)
{
    /* conda stores the output until the end without that option; the others have no such option */
    const char *const words[] = {
        program, "run", strcmp(program, "conda") == 0 ? "--no-capture-output" : NULL, "-n", name};
    size_t n = 0, length = 0;
    while (argv[length])
        length++;
    char **all = calloc(ARRAY_SIZE(words) + length + 1, sizeof *all);
    bool is_complete = all != NULL;
    for (size_t i = 0; is_complete && i < ARRAY_SIZE(words); i++)
        if (words[i])
            is_complete = (all[n++] = strdup(words[i])) != NULL;
    if (!is_complete) {
        for (size_t i = 0; all && i < n; i++)
            free(all[i]);
        free(all);
        return NULL;
    }
    memcpy(all + n, argv, length * sizeof *all);
    free(argv);
    return all;
}

/* Is this name the first word of a line? */
static bool lists_name(const char *text, const char *name)
{
    struct span rest = span_of(text), line;
    size_t size = strlen(name);
    while (span_next_line(&rest, &line)) {
        line = span_trim(line);
        bool begins = line.size >= size && memcmp(line.at, name, size) == 0;
        if (begins && (line.size == size || strchr(" \t", line.at[size])))
            return true;
    }
    return false;
}

int conda_environment_check(const char *program, const char *name, struct fault *fault)
{
    const char *const argv[] = {program, "env", "list", NULL};
    char *text;
    int status, r = program_output_read(argv, fault, &text, &status);
    if (r == 0 && status != 0)
        r = fault_set(fault, EIO, "%s env list: exit status %d: %.200s", program, status, text);
    else if (r == 0 && !lists_name(text, name))
        r = fault_set(fault, ENOENT,
            "%s has no environment '%.60s': create it with `%s env create -f conda.yaml`", program,
            name, program);
    free(text);
    return r;
}
