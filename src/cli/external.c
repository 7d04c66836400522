/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes external processes. The daemon reports what the kernel shows to every user without
 * delay: the program's name, the uid and the time of the start. Two things are added here, as the
 * user: the user's name, since a name service may be slow, and the command line. Only the kernel
 * decides whether this user may read it (hidepid), and reading it may block on a process that
 * hangs. If the process with this pid has another start time than reported, it is another process.
 */
#include "cli/external.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_cgroup.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/docker_api.h"
#include "cli/podman_storage.h"
#include "cli/task_view.h"

/* Seconds. Chosen: more than the rounding of start times and the time since the daemon's
 * reading. */
#define AGE_TOLERANCE_S 3.0

static bool is_same_process(pid_t pid, double started_at)
{
    struct process_facts facts;
    if (process_read(pid, &facts) < 0)
        return false;
    double start = (double)(clock_wall_us() - facts.age_us) / (double)SECOND_US;
    return fabs(start - started_at) < AGE_TOLERANCE_S;
}

/* Returns the arguments with blanks between; NULL if this user cannot read them. */
static json_t *read_command(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    ssize_t n = file_read_start(path, text, sizeof text);
    while (n > 0 && text[n - 1] == '\0')
        n--;
    if (n <= 0)
        return NULL;
    for (ssize_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = ' ';
    text[n] = '\0';
    text_make_printable(text, ' ');
    return json_string(text);
}

static json_t *user_name(double uid)
{
    const struct passwd *user = uid >= 0 ? getpwuid((uid_t)uid) : NULL;
    char number[32];
    if (user)
        return json_string(user->pw_name);
    snprintf(number, sizeof number, "%.0f", uid);
    return uid >= 0 ? json_string(number) : NULL;
}

/* Adds the image, and whose files it has. Returns false where dockerd does not answer. */
static bool name_image(json_t *process, const char *id)
{
    struct docker_container container;
    int r = docker_container_read(id, &container);
    if (r == 0)
        json_object_set_new(process, "image", json_string(container.image));
    if (r == 0 && *container.project)
        json_object_set_new(process, "compose_project", json_string(container.project));
    if (r == 0 && *container.user)
        json_object_set_new(process, "files_of", json_string(container.user));
    return r == 0 || r == -ENOENT;
}

/* What may not answer is not waited for at each process. */
struct patience {
    bool asks_docker;  /* false: dockerd has not answered */
    int64_t podman_us; /* left for podman's storages */
};

static void name_podman_image(json_t *process, const char *id, struct patience *patience)
{
    char image[PODMAN_IMAGE_SIZE];
    uid_t uid = (uid_t)member_number(process, "uid", -1);
    if (podman_image_read(uid, id, &patience->podman_us, image) == 0)
        json_object_set_new(process, "image", json_string(image));
}

/* "docker container 4f2c1ab83c1d"; NULL: the process is in none. */
static json_t *read_container(json_t *process, pid_t pid, struct patience *patience)
{
    char path[64], text[4096], id[CONTAINER_ID_SIZE];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    ssize_t n = file_read_start(path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *program = container_find(text, id);
    if (program && patience->asks_docker && strcmp(program, "docker") == 0)
        patience->asks_docker = name_image(process, id);
    else if (program && strcmp(program, "podman") == 0)
        name_podman_image(process, id, patience);
    return program ? json_sprintf("%s container %s", program, id) : NULL;
}

static void name_process(json_t *process, struct patience *patience)
{
    pid_t pid = (pid_t)member_number(process, "pid", 0);
    json_t *user = user_name(member_number(process, "uid", -1)), *command = NULL, *container = NULL;
    if (pid > 0 && is_same_process(pid, member_number(process, "started_at", -1e9))) {
        command = read_command(pid);
        container = read_container(process, pid, patience);
    }
    json_object_set_new(process, "container", container ? container : json_null());
    json_object_set_new(process, "user", user ? user : json_null());
    json_object_set_new(process, "command", command ? command : json_null());
}

void external_name(json_t *reply)
{
    size_t i, k;
    json_t *gpu, *process;
    struct patience patience = {true, PODMAN_SEARCHES_US};
    json_array_foreach(json_object_get(reply, "gpus"), i, gpu) {
        json_array_foreach(json_object_get(gpu, "foreign_processes"), k, process) {
            name_process(process, &patience);
        }
    }
}

/* "11.4 GiB left behind by task 12 (pid 4711), held by pid 4720 (ada: python): end that" */
static const char *left_text(const json_t *process, const json_t *left, char *text)
{
    char memory[CELL_SIZE], of[CELL_SIZE] = "an ended process", held[EXTERNAL_TEXT_SIZE / 2];
    const json_t *holder = json_object_get(left, "holder");
    double task = member_number(left, "task", 0), pid = member_number(holder, "pid", 0);
    if (task > 0)
        snprintf(of, sizeof of, "task %.0f", task);
    snprintf(held, sizeof held, "; `colloc doctor` names the holder");
    if (pid > 0)
        snprintf(held, sizeof held, ", held by pid %.0f (%s: %s): end that process", pid,
            member_text(holder, "user", "?"), member_text(holder, "name", "ended"));
    snprintf(text, EXTERNAL_TEXT_SIZE, "%s left behind by %s (pid %.0f)%s",
        mib_text(json_object_get(process, "mem_used_mib"), memory), of,
        member_number(process, "pid", 0), held);
    return text;
}

/* "ada: python train.py (pid 4711) 11.4 GiB, 3:04 old"; "pid 4711 (ended)" where it has no name. */
const char *external_text(const json_t *process, char text[EXTERNAL_TEXT_SIZE])
{
    enum { COMMAND_SHOWN = 60 };
    const json_t *left = json_object_get(process, "left_behind");
    if (json_is_object(left))
        return left_text(process, left, text);
    char memory[CELL_SIZE], age[CELL_SIZE], command[COMMAND_SHOWN + 4];
    const char *name = member_text(process, "name", NULL);
    double pid = member_number(process, "pid", 0),
           started_at = member_number(process, "started_at", NAN);
    if (!name) {
        snprintf(text, EXTERNAL_TEXT_SIZE, "pid %.0f (ended)", pid);
        return text;
    }
    const char *line = member_text(process, "command", name);
    if (!span_copy(span_of(line), command, COMMAND_SHOWN)) {
        text_mend(command);
        strcat(command, "...");
    }
    json_t *age_s = json_real(fmax(0, (double)time(NULL) - started_at));
    const char *container = member_text(process, "container", "");
    const char *image = member_text(process, "image", ""),
               *of = member_text(process, "files_of", ""),
               *project = member_text(process, "compose_project", "");
    snprintf(text, EXTERNAL_TEXT_SIZE, "%s%s%s: %s (pid %.0f%s%s%s%.60s%s%.40s) %s, %s old",
        member_text(process, "user", "?"), *of ? " with files of " : "", of, command, pid,
        *container ? ", " : "", container, *image ? " of " : "", image,
        *project ? ", compose project " : "", project,
        mib_text(json_object_get(process, "mem_used_mib"), memory), seconds_text(age_s, age));
    json_decref(age_s);
    return text;
}
