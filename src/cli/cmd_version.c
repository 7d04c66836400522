/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc version`: the version of this program. The daemon's is in `colloc info`: after an
 * upgrade it is the old one until it is restarted. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/print.h"

static int run(const struct invocation *invocation)
{
    if (invocation->common[COMMON_JSON].number)
        printf("{\"version\": \"%s\"}\n", COLLOC_VERSION);
    else
        printf("colloc %s\n", COLLOC_VERSION);
    return EXIT_OK;
}

const struct command command_version = {
    .name = "version",
    .usage = "",
    .summary = "print the version of this program",
    .description = "The daemon's version is in `colloc info`.",
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
