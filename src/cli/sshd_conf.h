/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of an sshd that serves one user in a task. Pure. */
#ifndef COLLOC_CLI_SSHD_CONF_H
#define COLLOC_CLI_SSHD_CONF_H

struct sshd_order {
    const char *user;               /* the only one that may log in */
    const char *host_key;           /* file */
    const char *authorized_keys;    /* file; NULL: sshd's own default */
    const char *const *environment; /* of the task, "NAME=VALUE", ended by NULL */
};

/*
 * Returns the text for free; NULL when memory is out. Logins get those variables of the task that
 * sshd does not set itself and whose values it can quote.
 */
char *sshd_conf_make(const struct sshd_order *order);

#endif
