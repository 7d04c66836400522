/* SPDX-License-Identifier: Apache-2.0 */
/* An assertion of several components' tests. cmocka wants these includes in this order. */
#ifndef COLLOC_TESTS_ASSERT_HAS_H
#define COLLOC_TESTS_ASSERT_HAS_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("\"%s\" does not have \"%s\"", (text), (part));                               \
    } while (0)

#endif
