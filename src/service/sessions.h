/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logins of the web page. A user that the kernel has identified gets a token; a browser that shows
 * the token gets a session. Both are random, bound to the user, and expire; a token is good once.
 *
 * Contract:
 *   1. Memory is bounded: a user's oldest token or session makes room for a new one.
 *   2. Comparing takes the same time whatever is compared.
 */
#ifndef COLLOC_SERVICE_SESSIONS_H
#define COLLOC_SERVICE_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SESSION_SECRET_SIZE = 65,   /* 256 bits in hex, and NUL */
    SESSION_TOKEN_S = 300,      /* a token is good for so long; chosen: to copy it */
    SESSION_LIFE_S = 12 * 3600, /* a session likewise; chosen: a working day */
    SESSIONS_PER_USER = 16,     /* of each kind */
    SESSIONS_MAX = 1024         /* of all users and kinds together */
};

struct sessions;

/* Returns NULL when memory is out. */
struct sessions *sessions_create(void);
void sessions_destroy(struct sessions *sessions);

/*
 * Makes a token.
 *
 * now_us: clock_monotonic_us, as below
 *
 * Returns 0, -EAGAIN (too many logins of all users), or -errno of the system's random numbers.
 */
int sessions_make_token(struct sessions *sessions, uid_t uid, gid_t gid, int64_t now_us,
    char ret_token[SESSION_SECRET_SIZE]);

/* Exchanges a token for a session. Returns 0, -EACCES for a token that is not good (any more), or
 * as above. */
int sessions_redeem(struct sessions *sessions, const char *token, int64_t now_us,
    char ret_session[SESSION_SECRET_SIZE]);

/* Finds the user of a session. Returns false for an invalid or ended session. */
bool sessions_find(const struct sessions *sessions, const char *session, int64_t now_us,
    uid_t *ret_uid, gid_t *ret_gid);

/* Ends a session. An invalid or ended session has no effect. */
void sessions_end(struct sessions *sessions, const char *session, int64_t now_us);

#endif
