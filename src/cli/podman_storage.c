/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no daemon that could be asked: podman keeps its containers in files, since 4.4 those of
 * `podman run --rm` in another one, in a folder for each storage driver:
 *
 *     /var/lib/containers/storage/overlay-containers/containers.json             root's
 *     /home/ada/.local/share/containers/storage/vfs-containers/volatile-containers.json
 *
 * Each is a list; the image stands in a text of JSON within it:
 *
 *     [{"id": "b50c77...", "metadata": "{\"image-name\": \"localhost/lab/train:1\", ...}"}, ...]
 *
 * A home may hang or be a trap, so a child process reads the files as the user.
 */
#include "cli/podman_storage.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/child_answer.h"
#include "base/file.h"
#include "base/json_member.h"
#include "cli/foreign_text.h"

enum { FILE_MAX = 1 << 24 }; /* bytes; chosen: some ten thousand containers */

/* ---- a file ---- */

static bool read_image(const json_t *container, char *ret_image)
{
    json_t *metadata = json_loads(member_text(container, "metadata", ""), 0, NULL);
    const char *image = member_text(metadata, "image-name", "");
    bool is_known = *image != '\0';
    foreign_text_copy(image, ret_image, PODMAN_IMAGE_SIZE);
    json_decref(metadata);
    return is_known;
}

int podman_image_parse(struct span file, const char *id, char *ret_image)
{
    json_t *list = json_loadb(file.at, file.size, 0, NULL), *container;
    size_t i;
    bool found = false;
    json_array_foreach(list, i, container) {
        if (!found && strncmp(member_text(container, "id", ""), id, strlen(id)) == 0)
            found = read_image(container, ret_image);
    }
    json_decref(list);
    return found ? 0 : -ENOENT;
}

/* ---- a storage ---- */

static int search_storage(const char *storage, const char *id, char *ret_image)
{
    static const char *const names[] = {"overlay-containers/containers.json",
        "overlay-containers/volatile-containers.json", "vfs-containers/containers.json",
        "vfs-containers/volatile-containers.json"};
    int r = -ENOENT;
    for (size_t i = 0; i < ARRAY_SIZE(names) && r < 0; i++) {
        char path[PATH_MAX], *text;
        struct fault fault;
        size_t size;
        snprintf(path, sizeof path, "%s/%s", storage, names[i]);
        if (file_read(path, FILE_MAX, &fault, &text, &size) < 0)
            continue;
        r = podman_image_parse((struct span){text, size}, id, ret_image);
        free(text);
    }
    return r;
}

static int search_as(const struct passwd *user, const char *id, char *ret_image)
{
    char storage[PATH_MAX];
    if (geteuid() == 0 && search_storage("/var/lib/containers/storage", id, ret_image) == 0)
        return 0;
    bool is_root = geteuid() == 0 && user->pw_uid != 0;
    if (is_root && (setgroups(0, NULL) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
        return -EPERM;
    snprintf(storage, sizeof storage, "%s/.local/share/containers/storage", user->pw_dir);
    return search_storage(storage, id, ret_image);
}

/* ---- the child ---- */

struct search {
    const struct passwd *user;
    const char *id;
};

static int search_in_child(void *context, int fd)
{
    const struct search *search = context;
    char image[PODMAN_IMAGE_SIZE];
    bool found = search_as(search->user, search->id, image) == 0;
    return found && write(fd, image, strlen(image)) > 0 ? 0 : 1;
}

int podman_image_read(uid_t uid, const char *id, int64_t *left_us, char *ret_image)
{
    int64_t begun_us = clock_monotonic_us();
    struct child_answer child;
    struct search search = {getpwuid(uid), id};
    *ret_image = '\0';
    if (!search.user || (geteuid() != 0 && geteuid() != uid) ||
        child_answer_start(&child, search_in_child, &search) < 0)
        return -ENOENT;
    int limit_ms = (int)(*left_us / 2 / MS_US);
    ssize_t n = child_answer_read(&child, limit_ms, ret_image, PODMAN_IMAGE_SIZE - 1);
    child_answer_end(&child, CHILD_GIVEN_UP);
    int64_t took_us = clock_monotonic_us() - begun_us;
    *left_us -= took_us < *left_us ? took_us : *left_us;
    ret_image[n > 0 && n < PODMAN_IMAGE_SIZE ? n : 0] = '\0';
    return *ret_image ? 0 : -ENOENT;
}
