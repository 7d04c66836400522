/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session keyrings by direct system calls, since three calls need no library (libkeyutils). See
 * keyrings(7), session-keyring(7), and pam_keyinit(8) for what a login does.
 */
#include "exec/keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel has no keyrings, or a sandbox (as a container's seccomp filter) refuses them. */
static int is_refused(int errnum)
{
    return errnum == ENOSYS || errnum == EPERM;
}

int keyring_probe(void)
{
    long r = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    return r < 0 && is_refused(errno) ? -errno : 0;
}

int keyring_join_new(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
        return 0;
    return is_refused(errno) ? 0 : -errno;
}

void keyring_link_user(void)
{
    (void)syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING);
}
