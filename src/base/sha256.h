/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), and message authentication with it (HMAC, RFC 2104). */
#ifndef COLLOC_BASE_SHA256_H
#define COLLOC_BASE_SHA256_H

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_HEX_SIZE = 65 };

/* A digest of a text that comes in parts: sha256_begin, then parts, then sha256_end. */
struct sha256 {
    struct sha256_ctx state;
};

/* The digest of a text in pieces: begin, add each piece, end. */
void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t size);
void sha256_end(struct sha256 *hash, uint8_t ret_digest[static SHA256_SIZE]);

/* Writes a digest, a code or a key in lower-case hex, with a NUL. */
void sha256_format(const uint8_t digest[static SHA256_SIZE], char ret_hex[static SHA256_HEX_SIZE]);

/* Reads what sha256_format writes, from the front of a text. Returns false when it is not that. */
bool sha256_parse(const char *hex, uint8_t ret_digest[static SHA256_SIZE]);

/* The digest of a whole text in lower-case hex, with a NUL. */
void sha256_hex(const void *data, size_t size, char ret_hex[static SHA256_HEX_SIZE]);

/* The code that proves to each holder of the key that a holder of it wrote the text. */
void sha256_hmac(const uint8_t key[static SHA256_SIZE], const void *data, size_t size,
    uint8_t ret_code[static SHA256_SIZE]);

#endif
