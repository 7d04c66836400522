/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names in messages. */
#ifndef COLLOC_TRAINING_NAMES_H
#define COLLOC_TRAINING_NAMES_H

enum { NAMES_MAX_SIZE = 256 };

/* "a, b, c" of a NULL-terminated list, cut where it is too long. Returns `buffer`. */
const char *names_join(const char *const *names, char buffer[NAMES_MAX_SIZE]);

#endif
