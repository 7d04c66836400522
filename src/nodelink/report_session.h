/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports signed by a key of their connection instead of by munge, which is ten times as fast:
 *
 *     agent  -->  controller     the first report, in a munge credential
 *     agent  <--  controller     an answer with a key, in a munge credential
 *     agent  -->  controller     all further reports, each with its number and a code by the key
 *
 * The key is random and made by the controller for this connection. It travels inside a munge
 * credential that only the agent's user can read. Reports are numbered from 1 on without gaps, so a
 * report that is repeated, left out or moved is noticed, and none is of use on another connection.
 * They are not encrypted. A line is
 *
 *     HMAC:5f1c...(64 hex digits):81:{"v": 1, "node": "n1", ...}
 *
 * with the HMAC-SHA256 of all that follows it: the number, and the report.
 */
#ifndef COLLOC_NODELINK_REPORT_SESSION_H
#define COLLOC_NODELINK_REPORT_SESSION_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/sha256.h"

enum { SESSION_KEY_SIZE = 65 }; /* as text: hex, with a NUL */

/* One end. Start with {0}: there is no key yet. */
struct report_session {
    bool has_key;
    uint8_t key[SHA256_SIZE];
    int64_t count; /* of reports that were sealed or opened */
};

/* Is it a line of a session, rather than a munge credential? */
bool report_session_is_line(const char *line);

/* Makes a new random key. Returns 0, or -EAGAIN: the kernel has no randomness yet. */
int report_session_begin(struct report_session *session);

/* Writes the key as text, for the other end. */
void report_session_key(
    const struct report_session *session, char ret_key[static SESSION_KEY_SIZE]);

/* Takes the key of the other end. Returns 0, or -EINVAL: it is not one. */
int report_session_take_key(struct report_session *session, const char *key);

/*
 * Signs the next report.
 *
 * text:     `size` bytes without a line end
 * ret_line: without its line end; the caller frees it
 *
 * Returns 0 or -ENOMEM.
 */
int report_session_seal(
    struct report_session *session, const char *text, size_t size, char **ret_line);

/*
 * Checks a line.
 *
 * ret_text: the report, within `line`
 *
 * Returns 0; or -EPERM with a fault: it is not signed by the key, or not the next one.
 */
int report_session_open(
    struct report_session *session, const char *line, struct fault *fault, const char **ret_text);

#endif
