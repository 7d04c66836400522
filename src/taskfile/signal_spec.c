/* SPDX-License-Identifier: Apache-2.0 */
/* Parses --signal, "B:USR1@120": which processes get it, the signal, and how many seconds before
 * the time limit. */
#include "taskfile/signal_spec.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

#define BEFORE_DEFAULT_S 60 /* as sbatch's --signal */
#define BEFORE_MAX_S     86400

static int find_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"ABRT", SIGABRT},
        {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
        {"CONT", SIGCONT}, {"TSTP", SIGTSTP}, {"URG", SIGURG}, {"WINCH", SIGWINCH}};
    int64_t number;
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    return parse_int64(name, 1, 31, &number) == 0 ? (int)number : 0;
}

int signal_spec_parse(const char *text, struct fault *fault, struct signal_spec *ret_spec)
{
    char name[16] = "";
    int64_t seconds = BEFORE_DEFAULT_S;
    bool script_only = strncmp(text, "B:", 2) == 0;
    const char *at = text + (script_only ? 2 : 0);
    struct span word = {at, strcspn(at, "@")};
    int signal = span_copy(word, name, sizeof name) ? find_signal(name) : 0;
    bool has_time = at[word.size] == '@';
    bool is_bad_time = has_time && parse_int64(at + word.size + 1, 1, BEFORE_MAX_S, &seconds) < 0;
    if (signal == 0 || signal == SIGKILL || signal == SIGSTOP || is_bad_time)
        return fault_set(fault, EINVAL,
            "signal=%.40s: must be a signal and the seconds before the time limit, such as USR1@120 "
            "(at most %d); a process can handle neither KILL nor STOP",
            text, BEFORE_MAX_S);
    *ret_spec = (struct signal_spec){signal, seconds * SECOND_US, script_only};
    return 0;
}
