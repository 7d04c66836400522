/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /containers/ID/json of Docker's Engine API, by HTTP/1.0, whose answer ends with the
 * connection. A container's processes are mostly root's: who started it, dockerd does not say. The
 * home folder that is mounted in it tells whose it is, or that of the compose file. `docker
 * compose` leaves labels (those of its version 2.x and of docker-compose 1.29):
 *
 *     com.docker.compose.project              train
 *     com.docker.compose.project.working_dir  /home/ada/train
 */
#include "cli/docker_api.h"

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/foreign_text.h"

#define DOCKER_SOCKET "/var/run/docker.sock"
#define UNIX_PREFIX   "unix://"
#define HOME          "/home/"

#define COMPOSE_PROJECT "com.docker.compose.project"
#define COMPOSE_FOLDER  COMPOSE_PROJECT ".working_dir"

enum { ANSWER_MAX = 1 << 20 }; /* bytes; chosen: a container's description has some 10 KiB */

/* ---- the answer ---- */

/* "ada" of "/home/ada/data", if there is such a user. */
static bool find_user(const char *source, char user[DOCKER_USER_SIZE])
{
    if (strncmp(source, HOME, strlen(HOME)) != 0)
        return false;
    const char *name = source + strlen(HOME);
    size_t size = strcspn(name, "/");
    if (size == 0 || size >= DOCKER_USER_SIZE)
        return false;
    snprintf(user, DOCKER_USER_SIZE, "%.*s", (int)size, name);
    return getpwnam(user) != NULL;
}

static void read_description(const json_t *description, struct docker_container *ret)
{
    const json_t *labels = json_object_get(json_object_get(description, "Config"), "Labels");
    const json_t *mount;
    size_t i;
    const char *project = json_string_value(json_object_get(labels, COMPOSE_PROJECT));
    const char *folder = json_string_value(json_object_get(labels, COMPOSE_FOLDER));
    const char *image = json_string_value(
        json_object_get(json_object_get(description, "Config"), "Image"));
    foreign_text_copy(image ? image : "?", ret->image, sizeof ret->image);
    foreign_text_copy(project ? project : "", ret->project, sizeof ret->project);
    json_array_foreach(json_object_get(description, "Mounts"), i, mount) {
        const char *source = json_string_value(json_object_get(mount, "Source"));
        if (source && find_user(source, ret->user))
            return;
    }
    if (!folder || !find_user(folder, ret->user))
        *ret->user = '\0';
}

int docker_answer_parse(struct span answer, struct docker_container *ret_container)
{
    static const char end_of_head[] = "\r\n\r\n";
    const char *body = memmem(answer.at, answer.size, end_of_head, strlen(end_of_head));
    bool is_answer = span_starts(answer, "HTTP/1.") && answer.size > strlen("HTTP/1.0 200") && body;
    *ret_container = (struct docker_container){0};
    if (!is_answer)
        return -EBADMSG;
    const char *status = answer.at + strlen("HTTP/1.0 ");
    if (strncmp(status, "200", 3) != 0)
        return strncmp(status, "404", 3) == 0 ? -ENOENT : -EBADMSG;
    body += strlen(end_of_head);
    json_t *description = json_loadb(body, (size_t)(answer.at + answer.size - body), 0, NULL);
    if (!json_is_object(description)) {
        json_decref(description);
        return -EBADMSG;
    }
    read_description(description, ret_container);
    json_decref(description);
    return 0;
}

/* ---- the request ---- */

/* Returns a socket whose calls take a second at most, or -errno. */
static int connect_dockerd(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = 1};
    const char *host = getenv("DOCKER_HOST");
    bool is_named = host && strncmp(host, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
    const char *path = is_named ? host + strlen(UNIX_PREFIX) : DOCKER_SOCKET;
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

/* Reads until the end, into `answer`. Returns how many bytes, or -errno. */
static ssize_t read_all(int fd, char *answer)
{
    int64_t end_us = clock_monotonic_us() + SECOND_US;
    size_t size = 0;
    ssize_t n;
    while ((n = recv(fd, answer + size, ANSWER_MAX - size, 0)) > 0) {
        size += (size_t)n;
        if (size == ANSWER_MAX || clock_monotonic_us() > end_us)
            return -ETIMEDOUT;
    }
    return n < 0 ? -errno : (ssize_t)size;
}

static int ask_daemon(int fd, const char *id, char *answer, struct docker_container *ret_container)
{
    char request[192];
    int size = snprintf(
        request, sizeof request, "GET /containers/%.64s/json HTTP/1.0\r\nHost: docker\r\n\r\n", id);
    if (send(fd, request, (size_t)size, MSG_NOSIGNAL) != size)
        return -EIO;
    ssize_t n = read_all(fd, answer);
    return n < 0 ? (int)n : docker_answer_parse((struct span){answer, (size_t)n}, ret_container);
}

int docker_container_read(const char *id, struct docker_container *ret_container)
{
    int fd = connect_dockerd();
    if (fd < 0)
        return fd;
    char *answer = malloc(ANSWER_MAX);
    int r = answer ? ask_daemon(fd, id, answer, ret_container) : -ENOMEM;
    free(answer);
    close(fd);
    return r;
}

pid_t docker_find_daemon(void)
{
    struct ucred peer = {.pid = -1};
    socklen_t size = sizeof peer;
    int fd = connect_dockerd();
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        peer.pid = -1;
    if (fd >= 0)
        close(fd);
    return peer.pid;
}
