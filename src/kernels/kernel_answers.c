/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in the order of arrival, and a table with open addressing that finds a question in it. An
 * estimate looks up each convolution of a network, some hundred times, so this takes 0.1 us.
 */
#include "kernels/kernel_answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

enum { SLOTS_MIN = 256 };

/* cuDNN counts 9.19.0 as 91900, and 8.9.7 as 8907 (cudnn_version.h). */
enum { CUDNN_NINE = 10000, MAJOR_NINE = 10000, MAJOR_EIGHT = 1000, MINOR = 100 };

void kernel_origin_text(const struct kernel_origin *origin, char *text, size_t size)
{
    int64_t version = origin->cudnn, major = version >= CUDNN_NINE ? MAJOR_NINE : MAJOR_EIGHT;
    snprintf(text, size, "cuDNN %d.%d.%d on %s, driver %s", (int)(version / major),
        (int)(version % major / MINOR), (int)(version % MINOR), origin->gpu, origin->driver);
}

bool kernel_origin_equal(const struct kernel_origin *a, const struct kernel_origin *b)
{
    return strcmp(a->gpu, b->gpu) == 0 && strcmp(a->driver, b->driver) == 0 && a->cudnn == b->cudnn;
}

/* Returns the slot of the question, or the empty one where it belongs. There is an empty one. */
static uint32_t *find_slot(
    const struct kernel_answers *answers, const struct conv_question *question)
{
    size_t at = (size_t)hash_bytes(HASH_START, question, sizeof *question) & (answers->n_slots - 1);
    while (answers->slots[at] &&
           !conv_question_equal(&answers->answers[answers->slots[at] - 1].question, question))
        at = (at + 1) & (answers->n_slots - 1);
    return &answers->slots[at];
}

static void fill_slots(struct kernel_answers *answers)
{
    memset(answers->slots, 0, answers->n_slots * sizeof *answers->slots);
    for (size_t i = 0; i < answers->count; i++)
        *find_slot(answers, &answers->answers[i].question) = (uint32_t)i + 1;
}

/* Half of the slots stay empty. */
static int reserve_slots(struct kernel_answers *answers)
{
    size_t wanted = answers->n_slots ? answers->n_slots : SLOTS_MIN;
    while (wanted < 2 * (answers->count + 1))
        wanted *= 2;
    if (wanted == answers->n_slots)
        return 0;
    uint32_t *slots = realloc(answers->slots, wanted * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    answers->slots = slots;
    answers->n_slots = wanted;
    fill_slots(answers);
    return 0;
}

static void drop_older_half(struct kernel_answers *answers)
{
    size_t dropped = answers->count / 2;
    answers->count -= dropped;
    memmove(
        answers->answers, answers->answers + dropped, answers->count * sizeof *answers->answers);
    fill_slots(answers);
}

int kernel_answers_put(
    struct kernel_answers *answers, const struct conv_question *question, int64_t bytes)
{
    if (answers->count >= KERNEL_ANSWERS_MAX)
        drop_older_half(answers);
    if (reserve_slots(answers) < 0)
        return -ENOMEM;
    uint32_t *slot = find_slot(answers, question);
    if (*slot) {
        answers->answers[*slot - 1].bytes = bytes;
        return 0;
    }
    int r = ARRAY_APPEND(answers->answers, answers->count, answers->capacity,
        (struct kernel_answer){*question, bytes});
    if (r == 0)
        *slot = (uint32_t)answers->count;
    return r;
}

bool kernel_answers_find(
    const struct kernel_answers *answers, const struct conv_question *question, int64_t *ret_bytes)
{
    if (!answers || answers->count == 0)
        return false;
    uint32_t slot = *find_slot(answers, question);
    if (slot)
        *ret_bytes = answers->answers[slot - 1].bytes;
    return slot != 0;
}

void kernel_answers_clear(struct kernel_answers *answers)
{
    free(answers->answers);
    free(answers->slots);
    *answers = (struct kernel_answers){.origin = answers->origin};
}
