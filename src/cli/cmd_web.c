/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc web`: prints the address of a login to the daemon's web page.
 *
 * Over the Unix socket the daemon knows the user from the kernel. It answers with a token that is
 * good once, and a browser that shows it becomes that user (src/service/web_server.h). So no
 * password exists.
 * By default the page is for this machine only; the text says how to reach it from another one by
 * ssh.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_member.h"
#include "cli/print.h"
#include "cli/session_once.h"

enum { WEB_PRINT_URL };

static const struct option_spec options[] = {
    [WEB_PRINT_URL] = FLAG_OPTION(
        "print-url", .help = "print nothing but the address, for scripts"),
};

/* "7480" of "http://127.0.0.1:7480/login?..."; "" when there is none. */
static void find_port(const char *url, char *port, size_t size)
{
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    *port = '\0';
    for (const char *at = path; at && at > host; at--) {
        if (*at != ':')
            continue;
        snprintf(port, size, "%.*s", (int)(path - at - 1), at + 1);
        break;
    }
}

static void print_address(const char *url)
{
    char port[16], machine[256] = "HOST";
    find_port(url, port, sizeof port);
    gethostname(machine, sizeof machine - 1);
    printf("%s\n\n"
           "Open this address in a browser on this machine: it is good once, for five minutes.\n"
           "From another machine, first run there: ssh -L %s:127.0.0.1:%s %s\n",
        url, port, port, machine);
}

static int run(const struct invocation *invocation)
{
    json_t *reply;
    int code = session_post(invocation, "/v1/web", json_object(), &reply);
    if (code != EXIT_OK)
        return code;
    const char *url = member_text(reply, "url", "");
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else if (invocation->values[WEB_PRINT_URL].set)
        printf("%s\n", url);
    else
        print_address(url);
    json_decref(reply);
    return EXIT_OK;
}

const struct command command_web = {
    .name = "web",
    .usage = "[OPTION...]",
    .summary = "print the address of the daemon's web page, with a login",
    .description = "The page shows the GPUs, the queue, each task over time, and the history. It "
                   "shows its user what `colloc queue`, `colloc show` and `colloc logs` show, and "
                   "changes nothing.\n\n"
                   "The daemon serves it at 127.0.0.1 from the first call on, or where its setting "
                   "web says. The address has a token that is good once, for five minutes; the "
                   "browser that opens it stays logged in for twelve hours.",
    COMMAND_OPTIONS(options),
    .max_operands = 0,
    .run = run,
};
