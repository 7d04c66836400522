/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the kinds that a task names with the name of a GPU. A kind names a GPU when each of its
 * words is a word of the GPU's name. Words are divided by anything that is neither a letter nor a
 * digit, so that users need not know how NVIDIA writes the name: "A100-80GB" is "NVIDIA
 * A100-SXM4-80GB" and "NVIDIA A100 80GB PCIe"; "A10" is neither of them, and "L40" is no L40S.
 *
 * A list for single GPUs (`--gpu-ids=0,2`) has their UUIDs instead, each behind an '@': indices
 * change when a GPU fails or is added.
 */
#include "core/kind_match.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct word {
    const char *at;
    size_t size; /* 0: there is none left */
};

/* The next word before `end`; `*at` is set behind it. */
static struct word next_word(const char **at, const char *end)
{
    while (*at < end && !isalnum((unsigned char)**at))
        (*at)++;
    struct word word = {*at, 0};
    while (*at < end && isalnum((unsigned char)**at))
        (*at)++;
    word.size = (size_t)(*at - word.at);
    return word;
}

static bool has_word(const char *name, struct word wanted)
{
    const char *end = name + strlen(name);
    struct word word;
    while ((word = next_word(&name, end)).size)
        if (word.size == wanted.size && strncasecmp(word.at, wanted.at, word.size) == 0)
            return true;
    return false;
}

/* Are all words of one kind, of which there must be one, in the name? */
static bool is_of_kind(const char *kind, const char *end, const char *name)
{
    struct word word = next_word(&kind, end);
    bool is_found = word.size > 0;
    for (; word.size && is_found; word = next_word(&kind, end))
        is_found = has_word(name, word);
    return is_found;
}

bool kind_match_any(const char *kinds, const char *name)
{
    if (!kinds || !*kinds)
        return true;
    for (const char *end = kinds; *kinds; kinds = *end ? end + 1 : end) {
        end = kinds + strcspn(kinds, ",");
        if (is_of_kind(kinds, end, name))
            return true;
    }
    return false;
}

bool kind_names_gpus(const char *kinds)
{
    return kinds && *kinds == '@';
}

bool kind_match_gpu(const char *kinds, const char *name, const char *uuid)
{
    if (!kind_names_gpus(kinds))
        return kind_match_any(kinds, name);
    size_t size = strlen(uuid);
    for (const char *end = kinds; *kinds; kinds = *end ? end + 1 : end) {
        end = kinds + strcspn(kinds, ",");
        if (*kinds == '@' && (size_t)(end - kinds) == size + 1 &&
            strncmp(kinds + 1, uuid, size) == 0)
            return true;
    }
    return false;
}

bool kind_match_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}
