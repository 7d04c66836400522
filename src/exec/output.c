#include "exec/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
 * write-only place. A FIFO without a reader is not waited for: nobody could end a task that hangs
 * there.
 */
static int open_best(const char *path, bool append)
{
    int flags = O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC | O_NONBLOCK | (append ? 0 : O_TRUNC);
    int fd = open(path, O_RDWR | flags, 0666);
    if (fd < 0 && (errno == EACCES || errno == EINVAL))
        fd = open(path, O_WRONLY | flags, 0666);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd < 0 ? -errno : fd;
}

static int open_named(const char *name, const struct attempt_spec *spec,
    const struct identity *identity, struct fault *fault)
{
    char path[PATH_MAX];
    int r = spec_output_path(spec, name, path, sizeof path);
    if (r < 0)
        return fault_set(fault, -r, "the path of the output file is too long");
    r = identity_assume(identity);
    mode_t mask = umask(spec->umask);
    int fd = r < 0 ? r : open_best(path, spec->append);
    umask(mask);
    if (identity_restore(identity) < 0)
        abort();
    return fd < 0 ? fault_set(fault, -fd, "cannot write output to %s: %s", path, strerror(-fd))
                  : fd;
}

static int open_stream(const char *folder, const char *own, const char *named,
    const struct attempt_spec *spec, const struct identity *identity, struct fault *fault)
{
    return named ? open_named(named, spec, identity, fault)
                 : open_own(folder, own, identity, fault);
}

static bool share_a_file(const struct attempt_spec *spec)
{
    return spec->stdout_path &&
           (!spec->stderr_path || strcmp(spec->stdout_path, spec->stderr_path) == 0);
}

int output_open(const char *folder, const struct attempt_spec *spec,
    const struct identity *identity, struct fault *fault, struct output *ret)
{
    ret->out = open_stream(folder, "stdout", spec->stdout_path, spec, identity, fault);
    if (ret->out < 0)
        return ret->out;
    if (share_a_file(spec))
        ret->err = ret->out;
    else
        ret->err = open_stream(folder, "stderr", spec->stderr_path, spec, identity, fault);
    return ret->err < 0 ? ret->err : 0;
}
