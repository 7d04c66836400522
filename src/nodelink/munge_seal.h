/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts signed and encrypted by munge (libmunge, munge(7)), which Slurm's own daemons trust: the
 * reader knows which user of the cluster wrote a text, only the intended user can read it, and each
 * credential is accepted once.
 *
 * Each call waits for munged on this machine, some seconds where it does not answer: call it in a
 * thread. A seal is used by one thread at a time.
 */
#ifndef COLLOC_NODELINK_MUNGE_SEAL_H
#define COLLOC_NODELINK_MUNGE_SEAL_H

#include <stddef.h>
#include <sys/types.h>

#include "base/fault.h"

struct munge_seal;

/* Named answers of munge_seal_decode: why a credential is refused. */
enum seal_answer {
    SEAL_INVALID = 1, /* not a credential of this cluster's munge, or not for this user */
    SEAL_EXPIRED,     /* older than SEAL_TTL_S: late, or the clocks differ */
    SEAL_REWOUND,     /* from the future: the clocks differ */
    SEAL_REPLAYED,    /* accepted before */
    SEAL_WRONG_USER,  /* of another user */
};

#define SEAL_ANY_WRITER ((uid_t)-1) /* for munge_seal_decode_from */

/* The user that munge says a text is from. */
struct seal_writer {
    uid_t uid;
    gid_t gid;
};

enum { SEAL_TTL_S = 60 }; /* chosen: NTP keeps clocks closer by far */

/*
 * Creates a seal.
 *
 * socket: munged's; NULL or "": the one that libmunge was built for
 * reader: the user that may read what is encoded
 * writer: the user that what is decoded must come from; or SEAL_ANY_WRITER
 *
 * Returns NULL when memory is out.
 */
struct munge_seal *munge_seal_create(const char *socket, uid_t reader, uid_t writer);

/* NULL is fine. */
void munge_seal_destroy(struct munge_seal *seal);

/*
 * Signs and encrypts.
 *
 * ret_credential: a line of text without its line end; the caller frees it
 *
 * Returns 0; -EAGAIN: munged does not answer; or another -errno; with a fault.
 */
int munge_seal_encode(struct munge_seal *seal, const char *text, size_t size, struct fault *fault,
    char **ret_credential);

/*
 * Checks and decrypts.
 *
 * ret_text: `ret_size` bytes and a NUL; the caller frees it; NULL unless 0 is returned
 *
 * Returns 0; a seal_answer, with a sentence in `fault`; or -EAGAIN (munged does not answer),
 * -ENOMEM.
 */
int munge_seal_decode(struct munge_seal *seal, const char *credential, struct fault *fault,
    char **ret_text, size_t *ret_size);

/* The same. `ret_writer`: the user that wrote it, when 0 is returned. */
int munge_seal_decode_from(struct munge_seal *seal, const char *credential, struct fault *fault,
    struct seal_writer *ret_writer, char **ret_text, size_t *ret_size);

#endif
