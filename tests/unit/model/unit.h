/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this room share: reading a summary of tests/data/summaries, or a text given
 * here. */
#ifndef COLLOC_TESTS_MODEL_UNIT_H
#define COLLOC_TESTS_MODEL_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/model.h"

/* The parsed text; fails the test with the fault's words when there is one. */
static inline struct model *parse_bytes(const char *text, size_t size)
{
    struct model *model = NULL;
    struct fault fault = {""};
    if (model_parse(text, size, &fault, &model) < 0)
        fail_msg("%s", fault.text);
    return model;
}

static inline struct model *parse_text(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static inline struct model *parse_path(const char *path)
{
    char *text;
    size_t size;
    struct fault fault = {""};
    if (file_read(path, MODEL_SIZE_MAX, &fault, &text, &size) < 0)
        fail_msg("%s", fault.text);
    struct model *model = parse_bytes(text, size);
    free(text);
    return model;
}

static inline struct model *parse_sample(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", getenv("TEST_DATA"), name);
    return parse_path(path);
}

/* That parsing fails with this errno and that the fault's words hold `words`. */
static inline void assert_fault(const char *text, size_t size, int errnum, const char *words)
{
    struct model *model = NULL;
    struct fault fault = {""};
    assert_int_equal(model_parse(text, size, &fault, &model), -errnum);
    if (!strstr(fault.text, words))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
}

/* That one of the warnings holds `words`. */
static inline void assert_warning(const struct model *model, const char *words)
{
    for (size_t i = 0; i < model_warnings(model); i++)
        if (strstr(model->warnings[i], words))
            return;
    fail_msg("no warning says \"%s\"", words);
}

/* The first layer of this name, or of this type where the form gives no names. */
static inline const struct layer *layer_called(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->n_layers; i++)
        if (span_is(model->layers[i].name, name) || span_is(model->layers[i].type, name))
            return &model->layers[i];
    fail_msg("no layer is called %s", name);
    return NULL;
}

#endif
