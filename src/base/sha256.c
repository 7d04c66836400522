/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 and HMAC by Nettle, which uses the processor's own instructions for them where there are
 * any: the checksum of an event's row is a part of each submission. All that is here is the form of
 * digests as text.
 */
#include "base/sha256.h"

#include <nettle/hmac.h>
#include <string.h>

void sha256_begin(struct sha256 *hash)
{
    sha256_init(&hash->state);
}

void sha256_add(struct sha256 *hash, const void *data, size_t size)
{
    sha256_update(&hash->state, size, data);
}

void sha256_end(struct sha256 *hash, uint8_t ret_digest[static SHA256_SIZE])
{
    sha256_digest(&hash->state, SHA256_SIZE, ret_digest);
}

static const char digits[] = "0123456789abcdef";

void sha256_format(const uint8_t digest[static SHA256_SIZE], char ret_hex[static SHA256_HEX_SIZE])
{
    for (int i = 0; i < 2 * SHA256_SIZE; i++)
        ret_hex[i] = digits[digest[i / 2] >> (4 - 4 * (i % 2)) & 15];
    ret_hex[2 * SHA256_SIZE] = '\0';
}

bool sha256_parse(const char *hex, uint8_t ret_digest[static SHA256_SIZE])
{
    memset(ret_digest, 0, SHA256_SIZE);
    for (int i = 0; i < 2 * SHA256_SIZE; i++) {
        const char *digit = hex[i] ? strchr(digits, hex[i]) : NULL;
        if (!digit)
            return false;
        ret_digest[i / 2] = (uint8_t)(ret_digest[i / 2] << 4 | (digit - digits));
    }
    return true;
}

void sha256_hex(const void *data, size_t size, char ret_hex[static SHA256_HEX_SIZE])
{
    struct sha256 hash;
    uint8_t digest[SHA256_SIZE];
    sha256_begin(&hash);
    if (size > 0)
        sha256_add(&hash, data, size);
    sha256_end(&hash, digest);
    sha256_format(digest, ret_hex);
}

void sha256_hmac(const uint8_t key[static SHA256_SIZE], const void *data, size_t size,
    uint8_t ret_code[static SHA256_SIZE])
{
    struct hmac_sha256_ctx hmac;
    hmac_sha256_set_key(&hmac, SHA256_SIZE, key);
    if (size > 0)
        hmac_sha256_update(&hmac, size, data);
    hmac_sha256_digest(&hmac, SHA256_SIZE, ret_code);
}
