/* SPDX-License-Identifier: Apache-2.0 */
/* Words are added without a check each; the end says whether one is missing. */
#include "cli/word_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

void word_list_append(struct word_list *list, char *word)
{
    if (word && ARRAY_APPEND(list->words, list->n, list->capacity, word) == 0)
        return;
    list->is_cut = true;
    free(word);
}

void word_list_add(struct word_list *list, const char *format, ...)
{
    va_list arguments;
    char *word;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    word_list_append(list, word);
}

bool word_list_end(struct word_list *list)
{
    return ARRAY_APPEND(list->words, list->n, list->capacity, NULL) == 0 && !list->is_cut;
}

void word_list_fini(struct word_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->words[i]);
    free(list->words);
}
