/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sshd gives a login a new environment, without the task's GPUs: SetEnv brings the task's variables
 * there. Only the first SetEnv line counts, so there is one, with each variable in quotes; a value
 * with a quote, a backslash or a control character cannot be quoted, and is left out.
 */
#include "cli/sshd_conf.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What sshd, the login shell or this connection sets. */
static bool is_of_login(const char *entry)
{
    static const char *const names[] = {"HOME=", "USER=", "LOGNAME=", "SHELL=", "PWD=", "OLDPWD=",
        "SHLVL=", "TERM=", "MAIL=", "_=", "SSH_", "DISPLAY=", "XAUTHORITY="};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool can_be_set(const char *entry)
{
    const char *value = strchr(entry, '=');
    bool is_plain = value && value > entry && strlen(entry) < 4096;
    for (const char *at = entry; is_plain && *at; at++)
        is_plain = (unsigned char)*at >= ' ' && *at != 0x7f && *at != '"' && *at != '\\';
    return is_plain && !is_of_login(entry);
}

char *sshd_conf_make(const struct sshd_order *order)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out,
        "HostKey \"%s\"\nAllowUsers %s\nPidFile none\nUsePAM no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPrintMotd no\n"
        "Subsystem sftp internal-sftp\n",
        order->host_key, order->user);
    if (order->authorized_keys)
        fprintf(out, "AuthorizedKeysFile \"%s\"\n", order->authorized_keys);
    fputs("SetEnv", out);
    for (const char *const *entry = order->environment; *entry; entry++)
        if (can_be_set(*entry))
            fprintf(out, " \"%s\"", *entry);
    fputs(" COLLOC_SSH=1\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
