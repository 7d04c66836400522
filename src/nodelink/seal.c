/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With a key a line is
 *
 *     KEY:5f1c...(64 hex digits):a:1763877600000000:{"v": 1, "node": "n1", ...}
 *
 * the HMAC-SHA256 of all that follows it, the end that made it, its wall time, and the text. An old
 * line is refused by its time: over a minute old, or from before this process began. One that is
 * repeated within that time is refused by its number (node_stream.h). It is not encrypted.
 */
#include "nodelink/seal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "nodelink/munge_seal.h"

static const char prefix[] = "KEY:";
static const char ends[] = {[SEAL_CONTROLLER] = 'c', [SEAL_AGENT] = 'a'};

enum {
    PREFIX_SIZE = sizeof prefix - 1,
    CODE_DIGITS = 2 * SHA256_SIZE,
    SIGNED_AT = PREFIX_SIZE + CODE_DIGITS + 1, /* in the line: what the code is of */
    FRONT_SIZE = 32,                           /* of the end and the time, at most */
    CLOCKS_DIFFER_US = 1000, /* chosen: two clocks are read one after the other, and rounded */
};

struct seal {
    struct munge_seal *munge; /* NULL: the key counts */
    enum seal_end end;
    uint8_t key[SHA256_SIZE];
    int64_t begun_monotonic_us;
};

struct seal *seal_create(const struct seal_options *options)
{
    struct seal *seal = calloc(1, sizeof *seal);
    if (!seal)
        return NULL;
    seal->end = options->end;
    seal->begun_monotonic_us = clock_monotonic_us();
    if (options->key) {
        memcpy(seal->key, options->key, sizeof seal->key);
        return seal;
    }
    seal->munge = munge_seal_create(options->munge_socket, options->user, options->user);
    if (seal->munge)
        return seal;
    free(seal);
    return NULL;
}

void seal_destroy(struct seal *seal)
{
    if (!seal)
        return;
    munge_seal_destroy(seal->munge);
    explicit_bzero(seal->key, sizeof seal->key);
    free(seal);
}

static int encode_by_key(const struct seal *seal, const char *text, size_t size, char **ret_line)
{
    uint8_t code[SHA256_SIZE];
    char *line = malloc(SIGNED_AT + FRONT_SIZE + size + 1);
    *ret_line = line;
    if (!line)
        return -ENOMEM;
    char *front = line + SIGNED_AT;
    size_t n = (size_t)snprintf(
        front, FRONT_SIZE, "%c:%" PRId64 ":", ends[seal->end], clock_wall_us());
    memcpy(front + n, text, size);
    front[n + size] = '\0';
    sha256_hmac(seal->key, front, n + size, code);
    memcpy(line, prefix, PREFIX_SIZE);
    sha256_format(code, line + PREFIX_SIZE);
    line[SIGNED_AT - 1] = ':';
    return 0;
}

/* Is the code at the front of the line that of the rest? */
static bool is_signed(const struct seal *seal, const char *line)
{
    uint8_t code[SHA256_SIZE], right[SHA256_SIZE];
    unsigned difference = 0;
    if (strncmp(line, prefix, PREFIX_SIZE) != 0 || !sha256_parse(line + PREFIX_SIZE, code) ||
        line[SIGNED_AT - 1] != ':')
        return false;
    sha256_hmac(seal->key, line + SIGNED_AT, strlen(line + SIGNED_AT), right);
    for (int i = 0; i < SHA256_SIZE; i++) /* in the same time, however much of it is right */
        difference |= (unsigned)(code[i] ^ right[i]);
    return difference == 0;
}

static int judge_time(const struct seal *seal, int64_t made_us, struct fault *fault)
{
    int64_t now_us = clock_wall_us(), age_us = now_us - made_us;
    /* Of the clock as it is now: it may have been set back since. */
    int64_t begun_us = now_us - (clock_monotonic_us() - seal->begun_monotonic_us) -
                       CLOCKS_DIFFER_US;
    bool is_future = age_us < -SEAL_TTL_S * SECOND_US;
    if (!is_future && age_us <= SEAL_TTL_S * SECOND_US && made_us >= begun_us)
        return 0;
    fault_set(fault, EPERM, "made %.0f s %s: do the clocks of the two machines differ?",
        (double)(is_future ? -age_us : age_us) / 1e6,
        is_future            ? "in the future"
        : made_us < begun_us ? "ago, before this program was started"
                             : "ago");
    return is_future ? SEAL_REWOUND : SEAL_EXPIRED;
}

static int decode_by_key(const struct seal *seal, const char *line, struct fault *fault,
    char **ret_text, size_t *ret_size)
{
    char number[FRONT_SIZE] = "";
    int64_t made_us;
    if (!is_signed(seal, line)) {
        fault_set(fault, EPERM, "not signed by the key of node-key-file");
        return SEAL_INVALID;
    }
    enum seal_end other = seal->end == SEAL_AGENT ? SEAL_CONTROLLER : SEAL_AGENT;
    const char *front = line + SIGNED_AT, *colon = *front ? strchr(front + 2, ':') : NULL;
    if (!colon || front[1] != ':' || (size_t)(colon - front - 2) >= sizeof number) {
        fault_set(fault, EPERM, "not in the form of colloc");
        return SEAL_INVALID;
    }
    memcpy(number, front + 2, (size_t)(colon - front - 2));
    if (*front != ends[other] || parse_int64(number, 0, INT64_MAX, &made_us) < 0) {
        fault_set(fault, EPERM, "not made by the other end of the link");
        return SEAL_WRONG_USER;
    }
    int r = judge_time(seal, made_us, fault);
    if (r != 0)
        return r;
    *ret_size = strlen(colon + 1);
    *ret_text = strdup(colon + 1);
    return *ret_text ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

int seal_encode(
    struct seal *seal, const char *text, size_t size, struct fault *fault, char **ret_line)
{
    if (seal->munge)
        return munge_seal_encode(seal->munge, text, size, fault, ret_line);
    int r = encode_by_key(seal, text, size, ret_line);
    return r < 0 ? fault_set(fault, -r, "out of memory") : 0;
}

int seal_decode(
    struct seal *seal, const char *line, struct fault *fault, char **ret_text, size_t *ret_size)
{
    *ret_text = NULL;
    if (seal->munge)
        return munge_seal_decode(seal->munge, line, fault, ret_text, ret_size);
    return decode_by_key(seal, line, fault, ret_text, ret_size);
}

void seal_derive_key(const struct seal *seal, uint8_t key[static SHA256_SIZE])
{
    uint8_t derived[SHA256_SIZE];
    if (seal->munge)
        return;
    sha256_hmac(seal->key, key, SHA256_SIZE, derived);
    memcpy(key, derived, sizeof derived);
}
