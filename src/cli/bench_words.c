/* SPDX-License-Identifier: Apache-2.0 */
/* A list of words on the heap, and the program that they are for. This process becomes it: signals
 * and the exit status are the program's. */
#include "cli/bench_words.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/beside.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/python.h"

static void release_words(struct bench_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->list[i]);
    free(words->list);
}

void bench_words_append(struct bench_words *words, char *word)
{
    if (word && ARRAY_APPEND(words->list, words->n, words->capacity, word) == 0)
        return;
    words->is_cut = true;
    free(word);
}

void bench_words_add(struct bench_words *words, const char *format, ...)
{
    va_list arguments;
    char *word;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    bench_words_append(words, word);
}

void bench_words_add_option(struct bench_words *words, const char *name, const char *value)
{
    if (value)
        bench_words_add(words, "%s=%s", name, value);
}

void bench_words_add_number(struct bench_words *words, const char *name, double value)
{
    if (value > 0)
        bench_words_add(words, "%s=%.10g", name, value);
}

/* The program calls the colloc that started it. */
static void name_this_program(void)
{
    char path[PATH_MAX];
    if (beside_self(path))
        setenv("COLLOC_PROGRAM", path, 1);
}

int bench_words_become(struct bench_words *words, const char *interpreter)
{
    struct fault fault = {0};
    if (ARRAY_APPEND(words->list, words->n, words->capacity, NULL) < 0 || words->is_cut) {
        fault_set(&fault, ENOMEM, "no memory for a command of %zu words", words->n);
    } else {
        name_this_program();
        python_become(interpreter, (const char *const *)words->list, &fault);
    }
    release_words(words);
    print_error("%s", fault.text);
    return EXIT_REFUSED;
}
