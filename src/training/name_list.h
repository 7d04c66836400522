/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names for messages. */
#ifndef COLLOC_TRAINING_NAME_LIST_H
#define COLLOC_TRAINING_NAME_LIST_H

enum { NAME_LIST_MAX_SIZE = 256 };

/* Joins a NULL-terminated list as "a, b, c", truncated to the buffer. Returns `buffer`. */
const char *name_list_join(const char *const *names, char buffer[NAME_LIST_MAX_SIZE]);

#endif
