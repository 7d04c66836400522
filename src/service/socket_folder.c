/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and checks the folder of the socket. Only the last folder of the path matters: those above
 * it are the administrator's. */
#include "service/socket_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

int socket_folder_make(const char *socket_path, mode_t mode, struct fault *fault)
{
    char folder[SOCKET_PATH_MAX];
    struct stat status;
    snprintf(folder, sizeof folder, "%s", socket_path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return 0;
    *slash = '\0';
    int r = file_make_folders(folder, mode);
    if (r == 0 && stat(folder, &status) < 0)
        r = -errno;
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", folder, strerror(-r));
    bool ours = status.st_uid == 0 || status.st_uid == geteuid();
    if (!ours || ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX)))
        return fault_set(fault, EPERM,
            "%s: other users may write to it: name another folder for the socket", folder);
    return 0;
}
