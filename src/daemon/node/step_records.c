/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of the node on disk, for the next agent: STATE/steps/PID-BORN, named by slurmstepd's
 * process and the clock tick of its start, with the request that began the step.
 *
 *     steps/4711-123456    start job=12 step=-5 uid=1000 gid=1000 gpus=0,3 sharing=mps pinned=1
 *
 * So an agent that is restarted knows which user's a job is, and which GPUs it has: without cgroups
 * it otherwise could not tell the processes of a job from those that claim to be. A record is not
 * synced: a step does not outlive the machine. One that a kill has cut short has no line end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "daemon/node/node_state.h"
#include "daemon/node/step_request.h"

enum { PATH_SIZE = 600 };

static void write_folder(const struct node *node, char *path)
{
    snprintf(path, PATH_SIZE, "%.500s/steps", node->parts.config->state_dir);
}

static void write_path(const struct node *node, const char *name, char *path)
{
    snprintf(path, PATH_SIZE, "%.500s/steps/%.64s", node->parts.config->state_dir, name);
}

/* Returns 0, or -errno: the process has ended. */
static int write_name(pid_t stepd, char *name, size_t size)
{
    struct process_stat stat;
    int r = process_read_stat(stepd, &stat);
    if (r == 0)
        snprintf(name, size, "%d-%llu", (int)stepd, stat.start_ticks);
    return r;
}

/* ---- writing ---- */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = file_write_fd(fd, text, strlen(text));
    close(fd);
    return r;
}

void step_record_save(struct node_step *step)
{
    const struct step_request request = {.job = step->job,
        .array_job = step->array_job,
        .array_task = step->array_task,
        .step = step->step,
        .uid = step->uid,
        .gid = step->gid,
        .gpus = step->gpus,
        .sharing = step->is_mps ? STEP_SHARING_MPS : STEP_SHARING_STREAMS,
        .is_pinned = step->is_pinned};
    char folder[PATH_SIZE], path[PATH_SIZE], text[STEP_REQUEST_MAX];
    write_folder(step->node, folder);
    int r = file_make_folders(folder, 0700);
    if (r == 0 && !*step->record)
        r = write_name(step->stepd, step->record, sizeof step->record);
    if (r == 0)
        r = step_request_write(&request, text, sizeof text);
    write_path(step->node, step->record, path);
    if (r == 0)
        r = write_file(path, text);
    if (r < 0)
        log_warning("job %u: %s: %s: an agent that is started later will not know this step",
            step->job, folder, strerror(-r));
}

void step_record_remove(const struct node_step *step)
{
    char path[PATH_SIZE];
    write_path(step->node, step->record, path);
    if (*step->record)
        unlink(path);
}

/* ---- reading ---- */

/* Returns the process; 0: the name is of none that is still there. */
static pid_t find_stepd(const char *name)
{
    char own[NODE_STEP_RECORD_SIZE];
    char digits[16];
    int64_t pid;
    snprintf(digits, sizeof digits, "%.*s", (int)strcspn(name, "-"), name);
    if (parse_int64(digits, 1, INT32_MAX, &pid) < 0)
        return 0;
    return write_name((pid_t)pid, own, sizeof own) == 0 && strcmp(own, name) == 0 ? (pid_t)pid : 0;
}

/* Returns false when it is damaged. */
static bool read_request(const char *path, struct step_request *ret_request)
{
    char text[STEP_REQUEST_MAX];
    ssize_t n = file_read_start(path, text, sizeof text);
    char *end = n > 0 ? strchr(text, '\n') : NULL;
    if (!end)
        return false;
    *end = '\0';
    return step_request_parse(text, NULL, ret_request) == 0 && ret_request->kind == STEP_STARTS;
}

/* Other processes may have been on its GPUs meanwhile: which is not known. */
static bool load_step(
    struct node *node, const char *name, const char *path, step_record_visit *visit)
{
    struct step_request request;
    pid_t stepd = find_stepd(name);
    if (!stepd || !read_request(path, &request))
        return false;
    const struct node_step step = {.job = request.job,
        .array_job = request.array_job,
        .array_task = request.array_task,
        .step = request.step,
        .uid = request.uid,
        .gid = request.gid,
        .stepd = stepd,
        .gpus = request.gpus,
        .is_mps = request.sharing == STEP_SHARING_MPS,
        .is_pinned = request.is_pinned,
        .is_of_before = true,
        .was_shared = true};
    log_debug("job %u: a step that began under an earlier agent", step.job);
    return visit(node, &step);
}

void step_records_read(struct node *node, step_record_visit *visit)
{
    char folder[PATH_SIZE], path[PATH_SIZE];
    write_folder(node, folder);
    DIR *stream = opendir(folder);
    if (!stream)
        return;
    const struct dirent *entry;
    while ((entry = readdir(stream))) {
        write_path(node, entry->d_name, path);
        if (entry->d_name[0] != '.' && !load_step(node, entry->d_name, path, visit))
            unlink(path);
    }
    closedir(stream);
}
