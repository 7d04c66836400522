/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this room share. cmocka wants these includes in this order. */
#ifndef COLLOC_TEST_UNIT_H
#define COLLOC_TEST_UNIT_H

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
