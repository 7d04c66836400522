/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks Slurm, and changes jobs, by its program scontrol. libslurm differs from one version of Slurm
 * to the next, and a program is built for one of them; the installed scontrol always fits. It is
 * called seldom: when the agent starts, and when a job has failed.
 */
#include "daemon/node/slurm_client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_EXECUTED = 127 }; /* an exit status, as of a shell */

/* After _Fork: libuv's handler of fork would close descriptors of a helper process, which has none
 * of libuv's left. The program ends with the helper process: a request to slurmctld must not arrive
 * after its caller has given up. */
_Noreturn static void become_program(const char *const *argv, int output, int errors, pid_t parent)
{
    int input = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (input < 0 || getppid() != parent || dup2(input, STDIN_FILENO) < 0 ||
        dup2(errors, STDERR_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
        _exit(NOT_EXECUTED);
    execvp(argv[0], (char *const *)argv);
    _exit(NOT_EXECUTED);
}

/* Runs it with standard error to the file `errors`. Returns as slurm_client_run does. */
static int run_program(const char *const *argv, int errors, char *ret_text, size_t size)
{
    int ends[2], status = 0;
    size_t used = 0;
    char rest[4096];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t self = getpid(), pid = _Fork();
    if (pid == 0)
        become_program(argv, ends[1], errors, self);
    int r = pid < 0 ? -errno : 0;
    close(ends[1]);
    for (ssize_t n = 1; r == 0 && n > 0;) { /* also beyond the room: so that the program ends */
        bool is_full = used == size - 1;
        n = is_full ? read(ends[0], rest, sizeof rest)
                    : read(ends[0], ret_text + used, size - 1 - used);
        used += n > 0 && !is_full ? (size_t)n : 0;
    }
    ret_text[used] = '\0';
    close(ends[0]);
    if (r < 0)
        return r;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_EXECUTED)
        return -ENOENT;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int slurm_client_run(const char *const *argv, char *ret_text, size_t size)
{
    int errors = memfd_create("errors", MFD_CLOEXEC);
    if (errors < 0)
        return -errno;
    int r = run_program(argv, errors, ret_text, size);
    if (r > 0) {
        size_t used = strlen(ret_text);
        ssize_t n = pread(errors, ret_text + used, size - 1 - used, 0);
        ret_text[used + (n > 0 ? (size_t)n : 0)] = '\0';
    }
    close(errors);
    return r;
}

bool slurm_client_field(
    const char *text, const char *key, const char *end, char *ret_value, size_t size)
{
    size_t key_size = strlen(key);
    for (const char *at = text; (at = strstr(at, key)); at += key_size) {
        const char *value = at + key_size;
        if (at > text && !isspace((unsigned char)at[-1]))
            continue;
        value += strspn(value, " ");
        if (*value != '=')
            continue;
        value++;
        value += strspn(value, " ");
        const char *stop = end ? strstr(value, end) : NULL;
        size_t n = stop ? (size_t)(stop - value) : strcspn(value, end ? "\n" : " \n");
        if (n >= size)
            return false;
        memcpy(ret_value, value, n);
        ret_value[n] = '\0';
        return true;
    }
    return false;
}
