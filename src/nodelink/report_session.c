/* SPDX-License-Identifier: Apache-2.0 */
/* Signs and checks an agent's reports by the key of their connection. Codes are compared in a time
 * that does not depend on how much of them is right. */
#include "nodelink/report_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char prefix[] = "HMAC:";

enum { CODE_DIGITS = 2 * SHA256_SIZE, NUMBER_SIZE = 24 };

static bool is_same_code(const uint8_t *a, const uint8_t *b)
{
    unsigned difference = 0;
    for (int i = 0; i < SHA256_SIZE; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

bool report_session_is_line(const char *line)
{
    return strncmp(line, prefix, strlen(prefix)) == 0;
}

int report_session_begin(struct report_session *session)
{
    *session = (struct report_session){0};
    if (getrandom(session->key, sizeof session->key, GRND_NONBLOCK) != sizeof session->key)
        return -EAGAIN;
    session->has_key = true;
    return 0;
}

void report_session_key(const struct report_session *session, char ret_key[static SESSION_KEY_SIZE])
{
    sha256_format(session->key, ret_key);
}

int report_session_take_key(struct report_session *session, const char *key)
{
    *session = (struct report_session){0};
    session->has_key = strlen(key) == CODE_DIGITS && sha256_parse(key, session->key);
    return session->has_key ? 0 : -EINVAL;
}

int report_session_seal(
    struct report_session *session, const char *text, size_t size, char **ret_line)
{
    char number[NUMBER_SIZE];
    uint8_t code[SHA256_SIZE];
    size_t n = (size_t)snprintf(number, sizeof number, "%" PRId64 ":", session->count + 1);
    size_t front = strlen(prefix) + CODE_DIGITS + 1;
    char *line = malloc(front + n + size + 1);
    *ret_line = line;
    if (!line)
        return -ENOMEM;
    memcpy(line + front, number, n);
    memcpy(line + front + n, text, size);
    line[front + n + size] = '\0';
    sha256_hmac(session->key, line + front, n + size, code);
    memcpy(line, prefix, strlen(prefix));
    sha256_format(code, line + strlen(prefix));
    line[front - 1] = ':';
    session->count++;
    return 0;
}

int report_session_open(
    struct report_session *session, const char *line, struct fault *fault, const char **ret_text)
{
    char number[NUMBER_SIZE];
    uint8_t code[SHA256_SIZE], right[SHA256_SIZE];
    const char *rest = line + strlen(prefix) + CODE_DIGITS + 1;
    *ret_text = NULL;
    if (!session->has_key || !report_session_is_line(line) ||
        !sha256_parse(line + strlen(prefix), code) || rest[-1] != ':')
        return fault_set(fault, EPERM, "not signed by the key of this connection");
    sha256_hmac(session->key, rest, strlen(rest), right);
    if (!is_same_code(code, right))
        return fault_set(fault, EPERM, "not signed by the key of this connection");
    int n = snprintf(number, sizeof number, "%" PRId64 ":", session->count + 1);
    if (strncmp(rest, number, (size_t)n) != 0)
        return fault_set(fault, EPERM, "not the next report of this connection: repeated or lost");
    session->count++;
    *ret_text = rest + n;
    return 0;
}
