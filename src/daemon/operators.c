/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The setting operators is compared with users by name: a misspelt name matches no user. A daemon
 * looks the names up after it is ready, and when a reload changes the setting: a directory of users
 * that does not answer delays nothing.
 */
#include "daemon/operators.h"

#include <pwd.h>

#include "base/log.h"

static void warn_of(const char *name)
{
    log_warning("operators: there is no user '%s'", name);
}

void operators_check(const struct config *config)
{
    const char *at = config->operators;
    char name[sizeof config->operators];
    while (config_next_name(&at, name, sizeof name))
        if (!getpwnam(name))
            warn_of(name);
}

static void on_answer(void *context, const struct name *name)
{
    if (name->state == NAME_NONE)
        warn_of(name->name);
}

void operators_check_later(const struct config *config, struct names *names)
{
    const char *at = config->operators;
    char name[sizeof config->operators];
    while (config_next_name(&at, name, sizeof name))
        names_ask_name(names, name, on_answer, NULL);
}
