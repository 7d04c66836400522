/* SPDX-License-Identifier: Apache-2.0 */
/* How people name tasks: 12, 12_7 and 12_[3-9] of an array. */
#ifndef COLLOC_CLI_TASK_WORDS_H
#define COLLOC_CLI_TASK_WORDS_H

#include <jansson.h>
#include <stdint.h>

#include "api/client.h"

/*
 * Expands words to the ids of paths: "12_[3-5]" to 12_3, 12_4 and 12_5.
 *
 * ret_ids: an array of texts, for the caller to release
 *
 * Returns EXIT_OK, or EXIT_USAGE having printed which word is none.
 */
int task_words_expand(const char *const *words, int count, json_t **ret_ids);

/* Finds the id of "12" or "12_7". Returns EXIT_OK; or another code, having printed why. */
int task_word_find(struct client *client, const char *word, int64_t *ret_id);

/*
 * Finds the tasks that words name; of an array (12) all its tasks.
 *
 * ret_tasks: objects {"id": 15, "shown": "12_1"}, for the caller to release: those that were found;
 *            NULL if a word is none
 *
 * Returns EXIT_OK; or another code, having printed why: that of the first error.
 */
int task_words_find_all(
    struct client *client, const char *const *words, int count, json_t **ret_tasks);

/* Writes the id as people name it: "12", "12_7", or "12_[3-9%2]" of a folded entry. Returns
 * `text`. */
const char *task_id_text(const json_t *task, char *text, size_t size);

#endif
