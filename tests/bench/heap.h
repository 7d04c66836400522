/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the program has had at once from malloc and its kin, since it was last asked to
 * forget. */
#ifndef COLLOC_TESTS_HEAP_H
#define COLLOC_TESTS_HEAP_H

#include <stddef.h>

/* From here on: what is held now is not counted. */
void heap_forget(void);

/* The most bytes since then, as the allocator rounds them. */
size_t heap_most(void);

#endif
