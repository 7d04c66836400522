/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the socket of a daemon for the client. A socket that another user could have created is
 * never used, unless it is named explicitly. */
#include "api/client_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int use_path(const char *path, char *ret_path, size_t size, struct fault *fault)
{
    if (strlen(path) >= size)
        return fault_set(fault, ENAMETOOLONG,
            "%s: too long for a socket's path (at most %zu bytes)", path, size - 1);
    strcpy(ret_path, path);
    return 0;
}

static bool is_trusted_owner(const char *path, uid_t owner)
{
    return owner == 0 || owner == geteuid() || strcmp(path, SLURM_SOCKET_USUAL) == 0;
}

/* Can only trusted users create a socket in its folder? */
static bool is_safe_place(const char *path)
{
    struct stat status;
    char folder[256];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return stat(folder, &status) == 0 && is_trusted_owner(path, status.st_uid) &&
           !(status.st_mode & S_IWOTH);
}

static bool accepts_connection(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path || !is_safe_place(path) ||
        stat(path, &status) < 0 || !S_ISSOCK(status.st_mode))
        return false;
    if (!is_trusted_owner(path, status.st_uid))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    strcpy(address.sun_path, path);
    bool ok = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return ok;
}

int client_find_socket(const char *wanted, char *ret_path, size_t size, struct fault *fault)
{
    if (!wanted || !*wanted)
        wanted = getenv("COLLOC_SOCKET");
    if (wanted && *wanted)
        return use_path(wanted, ret_path, size, fault);

    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char places[4][256] = {"/run/colloc/collocd.sock"};
    size_t n = 1;
    if (runtime && *runtime)
        snprintf(places[n++], sizeof places[0], "%s/colloc/collocd.sock", runtime);
    snprintf(places[n++], sizeof places[0], "/tmp/colloc-%u/collocd.sock", (unsigned)geteuid());
    snprintf(places[n], sizeof places[0], "%s", SLURM_SOCKET_USUAL);
    for (size_t i = 0; i <= n; i++)
        if (accepts_connection(places[i]))
            return use_path(places[i], ret_path, size, fault);
    return fault_set(fault, ECONNREFUSED,
        "cannot reach collocd at %s%s%s or %s: is it running? start it with `systemctl start "
        "collocd`, or for yourself with `colloc serve`, or name its socket with --socket or "
        "COLLOC_SOCKET",
        places[0], n > 2 ? ", " : "", n > 2 ? places[1] : "", places[n - 1]);
}
