/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's id stands in the name of its cgroup, which differs by program and cgroup driver:
 *
 *     driver      docker                             podman
 *     systemd     system.slice/docker-ID.scope       machine.slice/libpod-ID.scope
 *     cgroupfs    docker/ID                          libpod_parent/libpod-ID
 *
 * containerd names them cri-containerd-ID.scope below kubepods.slice. With cgroup v1 each hierarchy
 * has a line with such a path, with v2 there is one. `docker compose` adds nothing to them. A
 * container's manager may have cgroups below that (docker in docker): the innermost counts.
 */
#include "base/container_cgroup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum { ID_DIGITS = 64 };

static bool is_id(const char *text)
{
    return strspn(text, "0123456789abcdef") == ID_DIGITS;
}

const char *container_find(const char *cgroup, char *ret_id)
{
    static const struct {
        const char *before, *program;
    } forms[] = {{"/docker-", "docker"}, {"/docker/", "docker"}, {"/libpod-", "podman"},
        {"/cri-containerd-", "containerd"}};
    const char *innermost = NULL, *program = NULL;
    bool is_of_user = strstr(cgroup, "/user.slice/") != NULL;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        size_t length = strlen(forms[i].before);
        for (const char *at = cgroup; (at = strstr(at, forms[i].before)); at++)
            if (is_id(at + length) && at + length > innermost &&
                (!is_of_user || strcmp(forms[i].program, "podman") == 0)) {
                innermost = at + length;
                program = forms[i].program;
            }
    }
    if (innermost)
        snprintf(ret_id, CONTAINER_ID_SIZE, "%s", innermost);
    return program;
}
