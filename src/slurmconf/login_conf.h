/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc.conf, beside slurm.conf: where colloc's commands on other machines find the controller.
 * In the form of Slurm's own files:
 *
 *     Controller=ctl1:7491
 *     ControllerUser=slurm
 *     MungeSocket=/run/munge/munge.socket.2
 */
#ifndef COLLOC_SLURMCONF_LOGIN_CONF_H
#define COLLOC_SLURMCONF_LOGIN_CONF_H

#include "base/fault.h"
#include "base/text.h"

#define LOGIN_CONF_NAME "colloc.conf"

enum { LOGIN_HOST_SIZE = 300, LOGIN_USER_SIZE = 64, LOGIN_PATH_SIZE = 108 };

struct login_conf {
    char controller[LOGIN_HOST_SIZE];   /* "HOST:PORT"; "": none */
    char user[LOGIN_USER_SIZE];         /* that colloc-slurm runs as: a name or a number */
    char munge_socket[LOGIN_PATH_SIZE]; /* "": libmunge's own */
};

/*
 * Reads the file's text. Unknown keys are ignored, for later versions.
 *
 * text:     any bytes, without NUL
 * ret_conf: without a line of the user: "root"
 *
 * Returns 0; or -EINVAL (a value that is too long), -ENOMEM with a fault.
 */
int login_conf_read(struct span text, struct fault *fault, struct login_conf *ret_conf);

/* Returns the lines of the file on the heap; NULL when memory is out. */
char *login_conf_text(const struct login_conf *conf);

#endif
