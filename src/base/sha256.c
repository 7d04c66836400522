/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256, and HMAC by it. FIPS 180-4, section 6.2: the text is padded to blocks of 64 bytes, each
 * of which is mixed into a state of eight words in 64 rounds. Eight rounds are written out, since
 * then the compiler keeps the state in registers.
 *
 * HMAC (RFC 2104) hashes twice, so that a text cannot be prolonged by one who knows its digest:
 * hash(key ^ 0x5c.., hash(key ^ 0x36.., text)).
 */
#include "base/sha256.h"

#include <string.h>

enum { BLOCK = SHA256_BLOCK };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
 */
static const uint32_t constants[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
    0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3,
    0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354,
    0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
    0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
    0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void expand_block(const uint8_t *block, uint32_t schedule[64])
{
    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = schedule[i - 15], b = schedule[i - 2];
        schedule[i] = schedule[i - 16] + schedule[i - 7] +
                      (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
                      (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
}

/*
 * One round of FIPS 180-4, 6.2.2. Its variables a to h are the entries of `s` from `a` on, round
 * and round: instead of moving all of them along, the next round begins one entry earlier.
 */
static inline void mix_word(uint32_t s[8], unsigned a, uint32_t word)
{
#define S(n) s[(a + (n)) % 8]
    uint32_t choice = (S(4) & S(5)) ^ (~S(4) & S(6));
    uint32_t majority = (S(0) & S(1)) ^ (S(0) & S(2)) ^ (S(1) & S(2));
    uint32_t sum = S(7) +
                   (rotate_right(S(4), 6) ^ rotate_right(S(4), 11) ^ rotate_right(S(4), 25)) +
                   choice + word;
    S(3) += sum;
    S(7) = sum + (rotate_right(S(0), 2) ^ rotate_right(S(0), 13) ^ rotate_right(S(0), 22)) +
           majority;
#undef S
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t schedule[64], s[8];
    expand_block(block, schedule);
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i += 8) {
        mix_word(s, 0, constants[i] + schedule[i]);
        mix_word(s, 7, constants[i + 1] + schedule[i + 1]);
        mix_word(s, 6, constants[i + 2] + schedule[i + 2]);
        mix_word(s, 5, constants[i + 3] + schedule[i + 3]);
        mix_word(s, 4, constants[i + 4] + schedule[i + 4]);
        mix_word(s, 3, constants[i + 5] + schedule[i + 5]);
        mix_word(s, 2, constants[i + 6] + schedule[i + 6]);
        mix_word(s, 1, constants[i + 7] + schedule[i + 7]);
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_begin(struct sha256 *hash)
{
    *hash = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *data, size_t size)
{
    const uint8_t *at = data;
    size_t used = hash->size % BLOCK;
    hash->size += size;
    if (used > 0) {
        size_t n = size < BLOCK - used ? size : BLOCK - used;
        memcpy(hash->rest + used, at, n);
        at += n;
        size -= n;
        if (used + n < BLOCK)
            return;
        add_block(hash->state, hash->rest);
    }
    for (; size >= BLOCK; size -= BLOCK, at += BLOCK)
        add_block(hash->state, at);
    if (size > 0)
        memcpy(hash->rest, at, size);
}

/* The rest, a one bit, zeros, and the length in bits at the end of the last block. */
void sha256_end(struct sha256 *hash, uint8_t ret_digest[static SHA256_SIZE])
{
    uint8_t last[2 * BLOCK] = {0};
    size_t left = hash->size % BLOCK, end = left < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    memcpy(last, hash->rest, left);
    last[left] = 0x80;
    for (int i = 0; i < 8; i++)
        last[end - 1 - (size_t)i] = (uint8_t)(hash->size * 8 >> 8 * i);
    for (size_t i = 0; i < end; i += BLOCK)
        add_block(hash->state, last + i);
    for (int i = 0; i < SHA256_SIZE; i++)
        ret_digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
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

/* Begins a digest with the key, of which each byte is changed by `pad`. */
static void begin_with_key(struct sha256 *hash, const uint8_t key[static SHA256_SIZE], uint8_t pad)
{
    uint8_t block[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        block[i] = (uint8_t)((i < SHA256_SIZE ? key[i] : 0) ^ pad);
    sha256_begin(hash);
    sha256_add(hash, block, sizeof block);
}

void sha256_hmac(const uint8_t key[static SHA256_SIZE], const void *data, size_t size,
    uint8_t ret_code[static SHA256_SIZE])
{
    struct sha256 hash;
    begin_with_key(&hash, key, 0x36);
    if (size > 0)
        sha256_add(&hash, data, size);
    sha256_end(&hash, ret_code);
    begin_with_key(&hash, key, 0x5c);
    sha256_add(&hash, ret_code, SHA256_SIZE);
    sha256_end(&hash, ret_code);
}
