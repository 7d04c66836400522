/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locals that release what they hold when their block ends, whichever way it is left.
 *
 *     CLEANUP_FREE char *text = NULL;
 *     CLEANUP(network_fini) struct network network = {0};
 *
 * A function that holds two things can then return at its first error. The variable has to be
 * initialised where it is declared; of JSON there is jansson's json_auto_t. gcc and clang call the
 * function with the variable's address, so each x_fini serves as it is.
 */
#ifndef COLLOC_BASE_CLEANUP_H
#define COLLOC_BASE_CLEANUP_H

#include <stdlib.h>
#include <string.h>

#define CLEANUP(release) __attribute__((cleanup(release)))
#define CLEANUP_FREE     CLEANUP(cleanup_free)

/* Frees what the pointer at `variable` points to. */
static inline void cleanup_free(void *variable)
{
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    free(memory);
}

/* Makes cleanup_NAME of a function NAME that takes a pointer, of the given type, and accepts NULL.
 */
#define CLEANUP_DEFINE(type, name)                                                                 \
    static inline void cleanup_##name(type *variable)                                              \
    {                                                                                              \
        name(*variable);                                                                           \
    }

/* The value of a pointer that is handed on: the variable is NULL afterwards. */
#define TAKE(variable)                                                                             \
    __extension__({                                                                                \
        __typeof__(variable) taken = (variable);                                                   \
        (variable) = NULL;                                                                         \
        taken;                                                                                     \
    })

#endif
