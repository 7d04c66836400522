/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens and sessions are entries of one table. Their secrets are 256 random bits of the kernel:
 * guessing one is hopeless, and a lookup compares all entries in full, so that its time says
 * nothing of how much was right.
 */
#include "service/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

struct entry {
    bool is_used, is_session;
    uid_t uid;
    gid_t gid;
    int64_t expires_us;
    char secret[SESSION_SECRET_SIZE];
};

struct sessions {
    struct entry entries[SESSIONS_MAX];
};

struct sessions *sessions_create(void)
{
    return calloc(1, sizeof(struct sessions));
}

void sessions_destroy(struct sessions *sessions)
{
    if (!sessions)
        return;
    explicit_bzero(sessions, sizeof *sessions);
    free(sessions);
}

static bool is_good(const struct entry *entry, int64_t now_us)
{
    return entry->is_used && now_us < entry->expires_us;
}

/* Both are SESSION_SECRET_SIZE long. */
static bool are_equal(const char *a, const char *b)
{
    unsigned char difference = 0;
    for (size_t i = 0; i < SESSION_SECRET_SIZE; i++)
        difference |= (unsigned char)(a[i] ^ b[i]);
    return difference == 0;
}

static struct entry *find_entry(
    const struct sessions *sessions, const char *secret, bool is_session, int64_t now_us)
{
    char padded[SESSION_SECRET_SIZE] = "";
    const struct entry *found = NULL;
    if (strlen(secret) != SESSION_SECRET_SIZE - 1)
        return NULL;
    memcpy(padded, secret, SESSION_SECRET_SIZE - 1);
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        const struct entry *entry = &sessions->entries[i];
        if (are_equal(entry->secret, padded) && is_good(entry, now_us) &&
            entry->is_session == is_session)
            found = entry;
    }
    return (struct entry *)(uintptr_t)found;
}

/* A place for one more entry of the user: a free or expired one, or the user's oldest where the
 * user has enough. NULL: others have them all. */
static struct entry *find_place(
    struct sessions *sessions, uid_t uid, bool is_session, int64_t now_us)
{
    struct entry *free_one = NULL, *oldest = NULL;
    int own = 0;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct entry *entry = &sessions->entries[i];
        if (!is_good(entry, now_us)) {
            free_one = free_one ? free_one : entry;
        } else if (entry->uid == uid && entry->is_session == is_session) {
            own++;
            oldest = !oldest || entry->expires_us < oldest->expires_us ? entry : oldest;
        }
    }
    return own >= SESSIONS_PER_USER ? oldest : free_one;
}

/* Writes 256 random bits in hex. Returns 0 or -EIO. */
static int make_secret(char ret_text[SESSION_SECRET_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[(SESSION_SECRET_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[SESSION_SECRET_SIZE - 1] = '\0';
    return 0;
}

static int add_entry(struct sessions *sessions, uid_t uid, gid_t gid, bool is_session,
    int64_t now_us, char ret_secret[SESSION_SECRET_SIZE])
{
    int64_t life_s = is_session ? SESSION_LIFE_S : SESSION_TOKEN_S;
    struct entry *entry = find_place(sessions, uid, is_session, now_us);
    if (!entry)
        return -EAGAIN;
    int r = make_secret(ret_secret);
    if (r < 0)
        return r;
    *entry = (struct entry){.is_used = true,
        .is_session = is_session,
        .uid = uid,
        .gid = gid,
        .expires_us = now_us + life_s * SECOND_US};
    memcpy(entry->secret, ret_secret, SESSION_SECRET_SIZE);
    return 0;
}

int sessions_make_token(struct sessions *sessions, uid_t uid, gid_t gid, int64_t now_us,
    char ret_token[SESSION_SECRET_SIZE])
{
    return add_entry(sessions, uid, gid, false, now_us, ret_token);
}

int sessions_redeem(struct sessions *sessions, const char *token, int64_t now_us,
    char ret_session[SESSION_SECRET_SIZE])
{
    struct entry *entry = find_entry(sessions, token, false, now_us);
    if (!entry)
        return -EACCES;
    uid_t uid = entry->uid;
    gid_t gid = entry->gid;
    explicit_bzero(entry, sizeof *entry);
    return add_entry(sessions, uid, gid, true, now_us, ret_session);
}

bool sessions_find(const struct sessions *sessions, const char *session, int64_t now_us,
    uid_t *ret_uid, gid_t *ret_gid)
{
    const struct entry *entry = find_entry(sessions, session, true, now_us);
    if (!entry)
        return false;
    *ret_uid = entry->uid;
    *ret_gid = entry->gid;
    return true;
}

void sessions_end(struct sessions *sessions, const char *session, int64_t now_us)
{
    struct entry *entry = find_entry(sessions, session, true, now_us);
    if (entry)
        explicit_bzero(entry, sizeof *entry);
}
