/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Docker is asked by its own program: what it prints is the same for each dockerd, rootless or
 * another's, that it may be set to.
 */
#include "cli/docker_run.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beside.h"
#include "base/child_answer.h"
#include "cli/docker_api.h"

enum { ANSWER_LIMIT_MS = 30000 }; /* chosen: dockerd may just be starting */

bool docker_find(const char *name, char program[PATH_MAX])
{
    const char *at = getenv("PATH");
    char self[PATH_MAX] = "", real[PATH_MAX];
    bool knows_self = beside_self(self);
    for (size_t size; at && *at; at += size + (at[size] == ':')) {
        size = strcspn(at, ":");
        int n = snprintf(program, PATH_MAX, "%.*s/%s", (int)size, at, name);
        if (n < PATH_MAX && access(program, X_OK) == 0 && realpath(program, real) &&
            !(knows_self && strcmp(real, self) == 0))
            return true;
    }
    return false;
}

struct docker_call {
    const char *program, *const *argv;
    bool is_quiet;
};

static int call_docker(void *context, int fd)
{
    const struct docker_call *call = context;
    int null = call->is_quiet ? open("/dev/null", O_WRONLY) : -1;
    dup2(fd, STDOUT_FILENO);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    execv(call->program, (char *const *)(uintptr_t)call->argv);
    return 127;
}

bool docker_read_output(
    const char *program, const char *const *argv, bool is_quiet, char *text, size_t size)
{
    struct docker_call call = {program, argv, is_quiet};
    struct child_answer child;
    if (child_answer_start(&child, call_docker, &call) < 0)
        return false;
    ssize_t n = child_answer_read(&child, ANSWER_LIMIT_MS, text, size - 1);
    int status = child_answer_end(&child, n < 0 ? CHILD_KILLED : CHILD_AWAITED);
    bool is_whole = n > 0 && (size_t)n < size && status == 0;
    text[is_whole ? n : 0] = '\0';
    return is_whole;
}

/* Is dockerd in this process's cgroup, the task's? A user cannot make another one there. */
static bool is_in_task(pid_t dockerd)
{
    char of_dockerd[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE];
    return getenv("COLLOC_CGROUP") && dockerd > 0 && cgroup_find_of(dockerd, of_dockerd) &&
           cgroup_find_of(getpid(), own) && strcmp(of_dockerd, own) == 0;
}

/* dockerd answers "systemd [name=seccomp,profile=default name=rootless]", a user's without systemd
 * "none [...]". */
enum docker_place docker_find_place(const char *program, char *ret_parent)
{
    static const char *const argv[] = {
        "docker", "info", "--format", "{{.CgroupDriver}} {{.SecurityOptions}}", NULL};
    const char *cgroup = getenv("COLLOC_CGROUP");
    char answer[1024];
    struct stat of_cgroup;
    if (!docker_read_output(program, argv, false, answer, sizeof answer))
        return DOCKER_PLACE_SILENT;
    bool by_systemd = strncmp(answer, "systemd ", strlen("systemd ")) == 0;
    bool by_files = strncmp(answer, "cgroupfs ", strlen("cgroupfs ")) == 0;
    if ((!by_systemd && !by_files) || strstr(answer, "name=rootless"))
        return !by_systemd && is_in_task(docker_find_daemon()) ? DOCKER_PLACE_INSIDE
                                                               : DOCKER_PLACE_ROOTLESS;
    if (!cgroup || stat(cgroup, &of_cgroup) < 0 || of_cgroup.st_uid != 0)
        return DOCKER_PLACE_NONE;
    bool found = by_systemd ? cgroup_slice_of(cgroup, ret_parent, CGROUP_PATH_SIZE)
                            : cgroup_find_name(cgroup, ret_parent);
    return found ? DOCKER_PLACE_TASK : DOCKER_PLACE_NONE;
}

const char *docker_place_text(enum docker_place place)
{
    switch (place) {
    case DOCKER_PLACE_SILENT:
        return "dockerd does not answer";
    case DOCKER_PLACE_ROOTLESS:
        return "this dockerd is a user's (rootless) and runs outside the task, or uses systemd";
    case DOCKER_PLACE_NONE:
        return "this task has no cgroup of root's, which docker needs";
    case DOCKER_PLACE_TASK:
    case DOCKER_PLACE_INSIDE:
        break;
    }
    return "";
}
