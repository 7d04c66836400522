/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and parses colloc.conf, which says where the controller is. Slurm copies its folder to the
 * login nodes, and so this file, too. */
#include "slurmconf/login_conf.h"

#include <errno.h>
#include <stdio.h>

#include "base/array.h"
#include "slurmconf/conf_text.h"

int login_conf_read(struct span text, struct fault *fault, struct login_conf *ret_conf)
{
    *ret_conf = (struct login_conf){.user = "root"};
    const struct {
        const char *key;
        char *value;
        size_t size;
    } fields[] = {
        {"Controller", ret_conf->controller, sizeof ret_conf->controller},
        {"ControllerUser", ret_conf->user, sizeof ret_conf->user},
        {"MungeSocket", ret_conf->munge_socket, sizeof ret_conf->munge_socket},
    };
    struct conf_text conf;
    int r = conf_text_parse(text, &conf) < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
    for (size_t i = 0; i < conf.count && r == 0; i++)
        for (size_t k = 0; k < ARRAY_SIZE(fields) && r == 0; k++) {
            struct span value;
            if (conf_find(conf.lines[i].text, fields[k].key, &value) &&
                !span_copy(value, fields[k].value, fields[k].size))
                r = fault_set(fault, EINVAL, "%s: not a text of less than %zu bytes", fields[k].key,
                    fields[k].size);
        }
    conf_text_fini(&conf);
    return r;
}

char *login_conf_text(const struct login_conf *conf)
{
    char *text;
    bool has_socket = *conf->munge_socket;
    if (asprintf(&text,
            "# Where colloc's commands on login nodes ask (docs/slurm-controller.md).\n"
            "Controller=%s\nControllerUser=%s\n%s%s%s",
            conf->controller, conf->user, has_socket ? "MungeSocket=" : "", conf->munge_socket,
            has_socket ? "\n" : "") < 0)
        return NULL;
    return text;
}
