/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings of names in the setting operators that no user has: they are probably misspelt. It is no
 * error, because a directory of users may not answer. */
#ifndef COLLOC_DAEMON_OPERATORS_H
#define COLLOC_DAEMON_OPERATORS_H

#include "daemon/config.h"
#include "service/user_names.h"

/* For `collocd --check`: waits for the user database. */
void operators_check(const struct config *config);

/* While the loop runs: `names` looks the users up, in the background. */
void operators_check_later(const struct config *config, struct names *names);

#endif
