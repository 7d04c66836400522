#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"

/* collocd beside this very program. */
static void exec_beside(char **words)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "collocd");
    if (n <= 0)
        return;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "collocd");
    execv(path, words);
}

static int run(const struct invocation *invocation)
{
    char **words = calloc((size_t)invocation->operand_count + 2, sizeof *words);
    if (!words)
        return EXIT_REFUSED;
    if (invocation->common[COMMON_SOCKET].set)
        setenv("COLLOC_SOCKET", invocation->common[COMMON_SOCKET].text, 1);
    words[0] = strdup("collocd");
    memcpy(words + 1, invocation->operands, (size_t)invocation->operand_count * sizeof *words);
    exec_beside(words);
    execv(COLLOCD_PATH, words);
    execvp("collocd", words);
    complain("cannot run collocd (%s): it is not beside colloc, not at %s and not on PATH",
        strerror(errno), COLLOCD_PATH);
    free(words[0]);
    free(words);
    return EXIT_REFUSED;
}

const struct command command_serve = {
    .name = "serve",
    .usage = "[COLLOCD-OPTION...]",
    .summary = "run the daemon, collocd, here and now",
    .description =
        "Runs collocd in the foreground with the words that follow. On a server it is better started by the "
        "system: `systemctl enable --now collocd`.",
    .operand = OPERAND_NONE,
    .max_operands = -1,
    .takes_words = true,
    .run = run,
};
