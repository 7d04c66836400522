/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports a user's PyTorch model for `colloc estimate --pytorch`: builds the command line of
 * colloc_export.
 */
#include "cli/pytorch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/python.h"
#include "cli/values.h"
#include "model/export.h"

enum { INPUTS_MOST = 16, WORDS_MOST = INPUTS_MOST + 16, WORD_SIZE = 4096 };

/* The arguments of the command line, each from malloc. */
struct words {
    char *word[WORDS_MOST + 1];
    size_t n;
    bool failed; /* no memory, or too many arguments */
};

static void add_word(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_word(struct words *words, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (words->n == WORDS_MOST || vasprintf(&words->word[words->n], format, args) < 0)
        words->failed = true;
    else
        words->n++;
    va_end(args);
}

static void words_fini(struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->word[i]);
}

static int add_inputs(const struct pytorch_model *model, struct words *words, struct fault *fault)
{
    struct names inputs;
    if (!model->inputs)
        return 0;
    int r = names_parse("input", model->inputs, fault, &inputs);
    if (r == 0 && inputs.n > INPUTS_MOST)
        r = fault_set(fault, E2BIG, "--input: more than %d inputs", INPUTS_MOST);
    for (int i = 0; r == 0 && i < inputs.n; i++)
        add_word(words, "--input=%s", inputs.name[i]);
    names_fini(&inputs);
    return r;
}

/* Each option and its value are one argument, and the source follows "--": no value can be taken
 * for an option. */
static int make_words(const struct pytorch_model *model, struct words *words, struct fault *fault)
{
    add_word(words, "colloc_export");
    add_word(words, "--batch=%" PRId64, model->batch);
    if (model->optimizer)
        add_word(words, "--optimizer=%s", model->optimizer);
    if (model->precision)
        add_word(words, "--precision=%s", model->precision);
    if (model->sequence_length > 0)
        add_word(words, "--sequence=%" PRId64, model->sequence_length);
    if (model->classes >= 0)
        add_word(words, "--classes=%" PRId64, model->classes);
    if (model->labels)
        add_word(words, "--labels");
    if (model->kernels)
        add_word(words, "--kernels");
    if (model->with_fake)
        add_word(words, "--with-fake");
    int r = add_inputs(model, words, fault);
    add_word(words, "--");
    add_word(words, "%s", model->source);
    return r == 0 && words->failed ? fault_set(fault, ENOMEM, "out of memory") : r;
}

/* The model's code is the user's and runs as the user; only the export that it prints is used. */
int pytorch_export(
    const struct pytorch_model *model, struct fault *fault, char **ret_text, size_t *ret_size)
{
    struct words words = {0};
    int r = make_words(model, &words, fault);
    if (r == 0) {
        const struct python_program program = {.interpreter = model->interpreter,
            .words = (const char *const *)words.word,
            .limit_us = model->limit_us,
            .limit_bytes = EXPORT_SIZE_MAX};
        r = python_ask(&program, fault, ret_text, ret_size);
    }
    words_fini(&words);
    return r;
}
