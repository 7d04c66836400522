/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What proves to an end of the link that a line is from the other end: munge (munge_seal.h), or a
 * key that the controller and all agents have in a file, for clusters without munge.
 *
 * Each call with munge waits for munged on this machine: call it in a thread. A seal is used by one
 * thread at a time.
 */
#ifndef COLLOC_NODELINK_SEAL_H
#define COLLOC_NODELINK_SEAL_H

#include <sys/types.h>

#include "base/fault.h"
#include "base/sha256.h"

struct seal;

/* The ends of the link: what one has sealed, only the other opens. */
enum seal_end { SEAL_CONTROLLER, SEAL_AGENT };

struct seal_options {
    enum seal_end end;        /* this end */
    const uint8_t *key;       /* SHA256_SIZE bytes, copied; NULL: munge */
    const char *munge_socket; /* NULL or "": libmunge's own */
    uid_t user;               /* with munge: that the other end runs as, and that may read */
};

/* Returns NULL when memory is out. */
struct seal *seal_create(const struct seal_options *options);

/* NULL is fine. */
void seal_destroy(struct seal *seal);

/*
 * Seals a text.
 *
 * text:     `size` bytes without a line end
 * ret_line: without its line end; the caller frees it
 *
 * Returns 0; -EAGAIN: munged does not answer; or another -errno; with a fault.
 */
int seal_encode(
    struct seal *seal, const char *text, size_t size, struct fault *fault, char **ret_line);

/*
 * Opens a line.
 *
 * ret_text: `ret_size` bytes and a NUL; the caller frees it; NULL unless 0 is returned
 *
 * Returns 0; an enum seal_answer (munge_seal.h), with a sentence in `fault`; -EAGAIN (munged does
 * not answer) or -ENOMEM.
 */
int seal_decode(
    struct seal *seal, const char *line, struct fault *fault, char **ret_text, size_t *ret_size);

/* Makes the key of a session (report_session.h) out of what went through the link: munge has
 * encrypted that; otherwise it is public, and the two ends derive the key from it and theirs. */
void seal_derive_key(const struct seal *seal, uint8_t key[static SHA256_SIZE]);

#endif
