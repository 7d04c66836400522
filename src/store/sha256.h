/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): the keys of stored texts. */
#ifndef COLLOC_STORE_SHA256_H
#define COLLOC_STORE_SHA256_H

#include <stddef.h>

/* The digest in lower-case hex, with a NUL. */
void sha256_hex(const void *data, size_t size, char ret_hex[static 65]);

#endif
