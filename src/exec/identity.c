/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets this process act as a user. identity_assume changes the effective ids and the groups, which
 * can be restored; identity_become changes all ids.
 */
#include "exec/identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec/keyring.h"
#include "exec/oom_score.h"

static int load_groups(struct identity *identity, const char *user)
{
    int room = 32;
    for (;;) {
        gid_t *groups = reallocarray(identity->groups, (size_t)room, sizeof *groups);
        if (!groups)
            return -ENOMEM;
        identity->groups = groups;
        identity->group_count = room;
        if (getgrouplist(user, identity->gid, groups, &identity->group_count) >= 0)
            return 0;
        room = identity->group_count > room ? identity->group_count : room * 2;
    }
}

int identity_init(struct identity *identity, uid_t uid, gid_t gid)
{
    *identity = (struct identity){.is_root = geteuid() == 0, .uid = uid, .gid = gid};
    if (!identity->is_root)
        return 0;
    const struct passwd *user = getpwuid(uid);
    if (user)
        return load_groups(identity, user->pw_name);
    identity->groups = malloc(sizeof gid);
    if (!identity->groups)
        return -ENOMEM;
    identity->groups[0] = gid;
    identity->group_count = 1;
    return 0;
}

int identity_assume(const struct identity *identity)
{
    if (!identity->is_root)
        return 0;
    if (setgroups((size_t)identity->group_count, identity->groups) < 0 ||
        setegid(identity->gid) < 0 || seteuid(identity->uid) < 0)
        return -errno;
    return 0;
}

int identity_restore(const struct identity *identity)
{
    if (!identity->is_root)
        return 0;
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
        return -errno;
    return 0;
}

int identity_become(const struct identity *identity)
{
    oom_score_reset();
    if (!identity->is_root)
        return 0;
    int r = keyring_join_new();
    if (r < 0)
        return r;
    if (setgroups((size_t)identity->group_count, identity->groups) < 0 ||
        setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
        setresuid(identity->uid, identity->uid, identity->uid) < 0)
        return -errno;
    keyring_link_user();
    return 0;
}
