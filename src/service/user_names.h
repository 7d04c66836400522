/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users. A name may come from a service on the network (LDAP through NSS), so the loop
 * never looks one up: helper processes do (user_helper.h), with a time limit. Answers are stored
 * for some minutes. Where no answer comes in time, the number is shown.
 */
#ifndef COLLOC_SERVICE_USER_NAMES_H
#define COLLOC_SERVICE_USER_NAMES_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

enum {
    NAME_MAX_BYTES = 64,   /* with its NUL; a longer name is shown as its number */
    NAMES_LIMIT_MS = 2000, /* of one round; chosen: as long as a person waits for a list */
    NAMES_PER_ROUND = 64,  /* chosen */
    NAMES_KEPT = 4096,     /* chosen: 400 KiB */
};

enum name_state {
    NAME_ASKED, /* not answered yet */
    NAME_KNOWN,
    NAME_NONE,      /* there is no such user */
    NAME_NO_ANSWER, /* in time; looked up again in ten seconds */
};

struct name {
    enum name_state state;
    uid_t uid;
    gid_t gid;                 /* of a known user, from the user database */
    char name[NAME_MAX_BYTES]; /* of a known user; otherwise the number as text, or the question */
};

struct names;

/*
 * on_change: called when a user is found in the database, or not; may be NULL.
 * Returns NULL when memory is out.
 */
struct names *names_create(
    uv_loop_t *loop, void (*on_change)(void *context, const struct name *name), void *context);

/* Ends all questions with the known answers. NULL is fine. */
void names_close(struct names *names);

/* Releases it once the loop has run for the last time. NULL is fine. */
void names_destroy(struct names *names);

/* Returns the known answer about this user, valid until the loop's next turn. Never waits: an
 * unknown name, or one that was looked up long ago, is looked up for the next call. */
const struct name *names_of_uid(struct names *names, uid_t uid);

/* Returns whether the user database is known to lack this user. Looks nothing up. */
bool names_is_unlisted(const struct names *names, uid_t uid);

/* Users that the database is known to lack count as one. No user has this id. */
#define NAMES_UNLISTED_UID ((uid_t)-2)

/* Returns the id of which a user's share is: its own, or that of all unlisted users. */
static inline uid_t names_counted_uid(const struct names *names, uid_t uid)
{
    return names_is_unlisted(names, uid) ? NAMES_UNLISTED_UID : uid;
}

/* Called once, perhaps from within names_ask_*: the name's state is never NAME_ASKED. */
typedef void names_on_answer(void *context, const struct name *name);

/* Look up a user by number, or by name. When memory is out the answer is NAME_NO_ANSWER. */
void names_ask_uid(struct names *names, uid_t uid, names_on_answer *on_answer, void *context);
void names_ask_name(
    struct names *names, const char *name, names_on_answer *on_answer, void *context);

#endif
