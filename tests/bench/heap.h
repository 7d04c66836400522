/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of the heap (malloc, calloc, realloc) since the program last reset it. */
#ifndef COLLOC_TESTS_HEAP_H
#define COLLOC_TESTS_HEAP_H

#include <stddef.h>

/* From here on: what is held now is not counted. */
void heap_forget(void);

/* The most bytes since then, as the allocator rounds them. */
size_t heap_most(void);

#endif
