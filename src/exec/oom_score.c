/* SPDX-License-Identifier: Apache-2.0 */
/* The value in /proc, which only root may lower: a process that it raises as root stays raised. */
#include "exec/oom_score.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_NAME "/proc/self/oom_score_adj"

/* Chosen: as for services that a machine needs; they are ended when no other process is left. */
#define PROTECTED "-900"

static int get_score(void)
{
    char text[16];
    return file_read_start(FILE_NAME, text, sizeof text) > 0 ? atoi(text) : 0;
}

/* Where the kernel or a container does not allow it, the value stays. */
static void set_score(const char *text, size_t size)
{
    int fd = open(FILE_NAME, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    file_write_fd(fd, text, size);
    close(fd);
}

void oom_score_protect(void)
{
    if (geteuid() == 0 && get_score() == 0)
        set_score(PROTECTED, sizeof PROTECTED - 1);
}

void oom_score_reset(void)
{
    if (get_score() < 0)
        set_score("0", 1);
}
