/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the output files of a task, in the child and with the user's rights. A file in the user's
 * folder is opened in another way depending on whether the user named it or its name is the
 * default, which others can guess.
 */
#include "exec/output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/named_file.h"

static int open_own(
    const char *folder, const char *name, const struct identity *identity, struct fault *fault)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || (identity->is_root && fchown(fd, identity->uid, identity->gid) < 0)) {
        int r = fault_set(fault, errno, "cannot make %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return r;
    }
    return fd;
}

/*
 * Readable where that is allowed, so that the log can be looked through; a user may name a
 * write-only place. A FIFO without a reader is not waited for: a task that hangs there
 * could not be ended.
 */
static int open_best(const char *path, bool append)
{
    int flags = O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC | O_NONBLOCK | (append ? 0 : O_TRUNC);
    int fd = named_file_open(path, O_RDWR | flags, 0666);
    if (fd == -EACCES || fd == -EINVAL)
        fd = named_file_open(path, O_WRONLY | flags, 0666);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

/* Returns a descriptor of a regular file of this user, or -errno; -EEXIST: it is another's. */
static int open_guessable(const char *path, int flags)
{
    struct stat status;
    int fd = open(path, flags | O_NOCTTY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -errno;
    int errnum = 0;
    if (fstat(fd, &status) < 0)
        errnum = errno;
    else if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
        errnum = EEXIST;
    if (errnum)
        close(fd);
    return errnum ? -errnum : fd;
}

int output_open_default(const char *path, bool append)
{
    int fd = open_guessable(path, O_RDWR | O_APPEND | O_CREAT);
    if (fd < 0)
        return fd;
    if (!append && ftruncate(fd, 0) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

int output_open_before(const struct attempt_spec *spec)
{
    char path[PATH_MAX], before[PATH_MAX + 2];
    int r = spec_output_path(spec, spec->stdout_path, path, sizeof path);
    if (r < 0)
        return r;
    snprintf(before, sizeof before, "%s.1", path);
    return open_guessable(before, O_RDONLY);
}

static int open_named(const char *name, const struct attempt_spec *spec, bool is_default,
    const struct identity *identity, struct fault *fault)
{
    char path[PATH_MAX];
    int r = spec_output_path(spec, name, path, sizeof path);
    if (r < 0)
        return fault_set(fault, -r, "the path of the output file is too long");
    r = identity_assume(identity);
    mode_t mask = umask(spec->umask);
    int fd = r < 0        ? r
             : is_default ? output_open_default(path, spec->append)
                          : open_best(path, spec->append);
    umask(mask);
    if (identity_restore(identity) < 0)
        abort();
    return fd < 0 ? fault_set(fault, -fd, "cannot write output to %s: %s", path,
                        is_default ? strerror(-fd) : named_file_error(-fd))
                  : fd;
}

/* Where the task's folder does not take the output, the attempt folder does, with the reason. */
static int open_kept(
    const char *folder, const struct identity *identity, const char *why, struct fault *fault)
{
    int fd = open_own(folder, "stdout", identity, fault);
    if (fd >= 0)
        dprintf(fd, "colloc: the output is kept here: %s\n", why);
    return fd;
}

static int open_stdout(const char *folder, const struct attempt_spec *spec,
    const struct identity *identity, bool *ret_is_kept, struct fault *fault)
{
    struct fault why = {0};
    if (!spec->stdout_path)
        return open_own(folder, "stdout", identity, fault);
    if (!spec->stdout_is_default)
        return open_named(spec->stdout_path, spec, false, identity, fault);
    int fd = open_named(spec->stdout_path, spec, true, identity, &why);
    *ret_is_kept = fd < 0;
    return fd < 0 ? open_kept(folder, identity, why.text, fault) : fd;
}

static int open_stderr(const char *folder, const struct attempt_spec *spec,
    const struct identity *identity, struct fault *fault)
{
    return spec->stderr_path ? open_named(spec->stderr_path, spec, false, identity, fault)
                             : open_own(folder, "stderr", identity, fault);
}

bool output_is_shared(const struct attempt_spec *spec)
{
    return spec->stdout_path &&
           (!spec->stderr_path || strcmp(spec->stdout_path, spec->stderr_path) == 0);
}

static struct output_file describe_file(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return (struct output_file){.is_regular = false};
    return (struct output_file){.is_regular = true,
        .device = status.st_dev,
        .inode = status.st_ino,
        .offset = status.st_size};
}

int output_open(const char *folder, const struct attempt_spec *spec,
    const struct identity *identity, struct fault *fault, struct output *ret)
{
    bool is_kept = !spec->stdout_path;
    int out = open_stdout(folder, spec, identity, &is_kept, fault);
    if (out < 0)
        return out;
    int err = output_is_shared(spec) ? out : open_stderr(folder, spec, identity, fault);
    if (err < 0)
        return err;
    *ret = (struct output){.fd = {out, err},
        .file = {describe_file(out), describe_file(err)},
        .is_default = spec->stdout_is_default && !is_kept};
    return 0;
}

static int open_if_same(const char *path, const struct output_file *file)
{
    int fd = named_file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    struct output_file found = describe_file(fd);
    if (found.is_regular && found.device == file->device && found.inode == file->inode)
        return fd;
    close(fd);
    return -ESTALE;
}

int output_open_again(
    const char *folder, const struct attempt_spec *spec, int stream, const struct output_file *file)
{
    bool is_stdout = stream == OUTPUT_STDOUT || output_is_shared(spec);
    const char *named = is_stdout ? spec->stdout_path : spec->stderr_path;
    char path[PATH_MAX];
    if (named) {
        int r = spec_output_path(spec, named, path, sizeof path);
        r = r < 0 ? r : open_if_same(path, file);
        if (r >= 0 || !is_stdout || !spec->stdout_is_default)
            return r;
    }
    snprintf(path, sizeof path, "%s/%s", folder, is_stdout ? "stdout" : "stderr");
    return open_if_same(path, file);
}
