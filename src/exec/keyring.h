/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel keyrings: each task gets a new session keyring, as a login does.
 *
 * A process possesses the keys of its session keyring, whichever user it runs as. A service manager
 * gives
 * the daemon one session keyring, and children inherit it: without a new one, a key that one user's
 * task adds could be read and revoked by every other user's task.
 */
#ifndef COLLOC_EXEC_KEYRING_H
#define COLLOC_EXEC_KEYRING_H

/*
 * Replaces this process's session keyring with a new, empty one. To be called as root: the new
 * keyring then counts against root's quota, which a user cannot use up to keep the shared one.
 *
 * Returns 0, also if the kernel or a sandbox refuses keyrings to all processes (keyring_probe); or
 * -errno: the process still has the shared keyring and must not become another user.
 */
int keyring_join_new(void);

/*
 * Links the user's own keyring into the session's, so that the user's keys are found as after a
 * login. To be called as the user. Best effort: without the link keys are only harder to find.
 */
void keyring_link_user(void);

/* Are there keyrings? Returns 0; or -ENOSYS or -EPERM: no process here has keys, so none need to be
 * separated. */
int keyring_probe(void);

#endif
