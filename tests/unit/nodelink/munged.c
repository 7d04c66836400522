/* SPDX-License-Identifier: Apache-2.0 */
/* munged stays in the foreground, so that it ends with the test and is waited for. */
#include "munged.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "/usr/sbin/munged"

static int make_folder(struct munged *munged)
{
    unsigned char key[128];
    char path[96];
    snprintf(munged->folder, sizeof munged->folder, "/tmp/munged-XXXXXX");
    if (!mkdtemp(munged->folder) || chmod(munged->folder, 0755) < 0)
        return -1;
    snprintf(munged->socket, sizeof munged->socket, "%s/socket", munged->folder);
    snprintf(path, sizeof path, "%s/key", munged->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int r = getrandom(key, sizeof key, 0) == sizeof key &&
                    write(fd, key, sizeof key) == (ssize_t)sizeof key
                ? 0
                : -1;
    close(fd);
    return r;
}

static void run(const struct munged *munged)
{
    char options[5][128];
    static const char *names[] = {"key-file", "socket", "pid-file", "log-file", "seed-file"};
    static const char *files[] = {"key", "socket", "pid", "log", "seed"};
    for (int i = 0; i < 5; i++)
        snprintf(options[i], sizeof options[i], "--%s=%s/%s", names[i], munged->folder, files[i]);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(PROGRAM, "munged", "--foreground", "--force", "--num-threads=2", options[0], options[1],
        options[2], options[3], options[4], NULL);
    _exit(127);
}

static int answers(const struct munged *munged)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, munged->socket, sizeof munged->socket);
    int r = connect(fd, (struct sockaddr *)&address, sizeof address);
    close(fd);
    return r == 0;
}

int munged_start(struct munged *munged)
{
    if (access(PROGRAM, X_OK) < 0)
        return 1;
    if (!*munged->folder && make_folder(munged) < 0)
        return -1;
    munged->pid = fork();
    if (munged->pid == 0)
        run(munged);
    for (int i = 0; i < 6000; i++) { /* a minute at most */
        if (answers(munged))
            return 0;
        if (waitpid(munged->pid, NULL, WNOHANG) == munged->pid)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    return -1;
}

void munged_stop(struct munged *munged)
{
    if (munged->pid > 0) {
        kill(munged->pid, SIGTERM);
        waitpid(munged->pid, NULL, 0);
    }
    munged->pid = 0;
}

void munged_remove(struct munged *munged)
{
    static const char *files[] = {"key", "socket", "socket.lock", "pid", "log", "seed"};
    munged_stop(munged);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", munged->folder, files[i]);
        unlink(path);
    }
    rmdir(munged->folder);
}
