/* SPDX-License-Identifier: Apache-2.0 */
/* Options as words, and the program that they are for. This process becomes it: signals and the
 * exit status are the program's. */
#include "cli/bench_words.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/beside.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/python.h"

void bench_words_add_option(struct word_list *words, const char *name, const char *value)
{
    if (value)
        word_list_add(words, "%s=%s", name, value);
}

void bench_words_add_number(struct word_list *words, const char *name, double value)
{
    if (value > 0)
        word_list_add(words, "%s=%.10g", name, value);
}

/* The program calls the colloc that started it. */
static void name_this_program(void)
{
    char path[PATH_MAX];
    if (beside_self(path))
        setenv("COLLOC_PROGRAM", path, 1);
}

int bench_words_become(struct word_list *words, const char *interpreter)
{
    struct fault fault = {0};
    if (!word_list_end(words)) {
        fault_set(&fault, ENOMEM, "no memory for a command of %zu words", words->n);
    } else {
        name_this_program();
        python_become(interpreter, (const char *const *)words->words, &fault);
    }
    word_list_fini(words);
    print_error("%s", fault.text);
    return EXIT_REFUSED;
}
