/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's part of an attempt: makes its folder, starts the shim, watches it through a pidfd
 * and reads its result. Nothing here waits; exec/claim.h says how two processes agree on the state.
 */
#include "exec/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "exec/claim.h"
#include "exec/torch_order.h"
#include "exec/torch_responder.h"
#include "exec/tree.h"

#define MARK "COLLOC_ATTEMPT="

static int write_new(const char *folder, const char *name, struct span data, mode_t mode, uid_t uid,
    gid_t gid, struct fault *fault)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : file_write_fd(fd, data.at, data.size);
    if (r == 0 && (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0))
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r < 0 ? fault_set(fault, -r, "cannot write %s: %s", path, strerror(-r)) : 0;
}

static int make_folder(const char *folder, struct fault *fault)
{
    char parent[PATH_MAX];
    if (folder[0] != '/' || strlen(folder) >= PATH_MAX - 64)
        return fault_set(
            fault, EINVAL, "%s: the attempt's folder must be an absolute path", folder);
    snprintf(parent, sizeof parent, "%s", folder);
    *strrchr(parent, '/') = '\0';
    int r = *parent ? file_make_folders(parent, 0711) : 0;
    if (r == 0 && (mkdir(folder, 0711) < 0 || chmod(folder, 0711) < 0))
        r = -errno;
    return r < 0 ? fault_set(fault, -r, "cannot make folder %s: %s", folder, strerror(-r)) : 0;
}

/* Two files belong to the task's user: the script, since interpreters open it again, and that of
 * the responder, which runs as the user. All else belongs to the daemon. */
static int write_for_user(const char *folder, const char *name, struct span data, mode_t mode,
    const struct attempt_spec *spec, struct fault *fault)
{
    bool root = geteuid() == 0;
    uid_t uid = root ? spec->uid : (uid_t)-1;
    gid_t gid = root ? spec->gid : (gid_t)-1;
    return write_new(folder, name, data, mode, uid, gid, fault);
}

/* The daemon's variables and the mark that attempt_sweep looks for. */
static int encode_marked(const char *folder, const struct attempt_spec *spec, struct fault *fault,
    char **ret_data, size_t *ret_size)
{
    size_t count = 0;
    while (spec->env_added && spec->env_added[count])
        count++;
    const char **added = calloc(count + 2, sizeof *added);
    char mark[PATH_MAX + sizeof MARK];
    if (!added)
        return fault_set(fault, ENOMEM, "out of memory");
    if (count)
        memcpy(added, spec->env_added, count * sizeof *added);
    snprintf(mark, sizeof mark, MARK "%s", folder);
    added[count] = mark;
    struct attempt_spec marked = *spec;
    marked.env_added = added;
    int r = spec_encode(&marked, fault, ret_data, ret_size);
    free(added);
    return r;
}

void attempt_clean(const char *folder)
{
    static const char *const names[] = {"script", "spec", ATTEMPT_TIME_LIMIT, "claim",
        "claim.reserved", "exit", "exit.reserved", TORCH_ORDER_FILE, TORCH_ASKED_FILE, ""};
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
}

/* Reserves disk space for the shim's files: on a full disk it could neither start the task nor
 * record its end. */
static int reserve_space(const char *folder, struct fault *fault)
{
    int r = exit_record_reserve(folder);
    if (r == 0)
        r = claim_reserve(folder);
    return r < 0 ? fault_set(fault, -r,
                       "cannot reserve space for the claim and the exit record in %s: %s", folder,
                       strerror(-r))
                 : 0;
}

int attempt_create(const char *folder, const struct attempt_spec *spec, struct fault *fault)
{
    struct span text = {0};
    CLEANUP_FREE char *data = NULL;
    int r = encode_marked(folder, spec, fault, &data, &text.size);
    if (r < 0)
        return r;
    text.at = data;
    r = make_folder(folder, fault);
    if (r == 0)
        r = write_new(folder, "spec", text, 0600, (uid_t)-1, (gid_t)-1, fault);
    if (r == 0 && spec->script.size)
        r = write_for_user(folder, "script", spec->script, 0500, spec, fault);
    if (r == 0 && spec->torch)
        r = write_for_user(folder, TORCH_ASKED_FILE, (struct span){"", 0}, 0600, spec, fault);
    if (r == 0)
        r = reserve_space(folder, fault);
    if (r < 0 && r != -EEXIST)
        attempt_clean(folder);
    return r;
}

static int read_spec(const char *folder, struct fault *fault, struct spec_file *ret_file)
{
    char path[PATH_MAX], *data;
    size_t size;
    snprintf(path, sizeof path, "%s/spec", folder);
    int r = file_read(path, SPEC_LIMIT, fault, &data, &size);
    return r < 0 ? r : spec_decode(data, size, fault, ret_file);
}

int64_t attempt_warn(const char *folder, const struct attempt_watch *watch, struct fault *fault)
{
    struct spec_file file;
    int r = read_spec(folder, fault, &file);
    if (r < 0)
        return r;
    const struct attempt_spec *spec = &file.spec;
    int64_t wait_us = spec->warning_us < spec->grace_us ? spec->warning_us : spec->grace_us;
    int count = 0;
    if (spec->warning_signal && spec->warns_script_only)
        count = tree_signal_child_handlers(watch->shim, spec->warning_signal);
    else if (spec->warning_signal)
        count = tree_signal_handlers(watch->shim, spec->warning_signal);
    spec_file_fini(&file);
    if (count < 0)
        return fault_set(fault, -count, "the processes of %s cannot be listed", folder);
    return count ? wait_us : 0;
}

int attempt_has_variable(
    const char *folder, const char *variable, struct fault *fault, bool *ret_has)
{
    struct spec_file file;
    *ret_has = false;
    int r = read_spec(folder, fault, &file);
    if (r < 0)
        return r;
    for (const char *const *entry = file.spec.env; *entry && !*ret_has; entry++)
        *ret_has = strcmp(*entry, variable) == 0;
    spec_file_fini(&file);
    return 0;
}

bool attempt_keeps_other_limit(const char *folder, int64_t limit_us)
{
    struct spec_file file;
    struct fault fault;
    int r = read_spec(folder, &fault, &file);
    if (r < 0)
        return r != -ENOENT;
    bool keeps = !file.reads_time_limit && file.spec.time_limit_us != limit_us;
    spec_file_fini(&file);
    return keeps;
}

/* The shim starts with every signal blocked, so that no moment is left in which a signal could end
 * it unrecorded. */
static int prepare_spawn(posix_spawnattr_t *how, posix_spawn_file_actions_t *files)
{
    sigset_t all;
    sigfillset(&all);
    int errnum = posix_spawnattr_init(how);
    if (errnum)
        return -errnum;
    posix_spawnattr_setsigmask(how, &all);
    posix_spawnattr_setsigdefault(how, &all);
    posix_spawnattr_setflags(
        how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(files);
    errnum = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    if (!errnum)
        errnum = posix_spawn_file_actions_adddup2(files, STDIN_FILENO, STDOUT_FILENO);
    if (!errnum)
        errnum = posix_spawn_file_actions_adddup2(files, STDIN_FILENO, STDERR_FILENO);
    if (!errnum)
        errnum = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
    return -errnum;
}

static char *path_variable(void)
{
    const char *path = getenv("PATH");
    char *variable = NULL;
    return path && asprintf(&variable, "PATH=%s", path) >= 0 ? variable : NULL;
}

int attempt_spawn(
    const char *shim_path, const char *folder, struct fault *fault, struct attempt_watch *ret_watch)
{
    const char *const argv[] = {"colloc-shim", folder, NULL};
    char *env[] = {path_variable(), NULL}; /* on which the shim finds MPS's control program */
    posix_spawnattr_t how;
    posix_spawn_file_actions_t files;
    int spare = open(
        "/dev/null", O_RDONLY | O_CLOEXEC); /* so that the pidfd finds a free descriptor */
    if (spare < 0) {
        free(env[0]);
        return fault_set(fault, errno, "cannot start %s: %s", shim_path, strerror(errno));
    }
    int r = prepare_spawn(&how, &files);
    if (r == 0) {
        r = -posix_spawn(
            &ret_watch->shim, shim_path, &files, &how, (char *const *)(uintptr_t)argv, env);
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&how);
    }
    close(spare);
    free(env[0]);
    if (r < 0)
        return fault_set(fault, -r, "cannot start %s: %s", shim_path, strerror(-r));
    ret_watch->pidfd = (int)syscall(
        SYS_pidfd_open, ret_watch->shim, 0); /* not reaped yet: the pid is still its own */
    if (ret_watch->pidfd < 0) {
        r = fault_set(fault, errno, "cannot watch the shim: %s", strerror(errno));
        kill(ret_watch->shim,
            SIGKILL); /* an attempt that is not watched must not run; its task dies with the shim */
        waitpid(ret_watch->shim, NULL, 0);
    }
    return r;
}

/* A shim writes the record before the kernel drops its lock: without a record, it was killed. */
static int probe_result(const char *folder, struct fault *fault, struct attempt_exit *ret_exit)
{
    int r = exit_record_read(folder, fault, ret_exit);
    if (r == 0)
        return ATTEMPT_ENDED;
    if (r != -ENOENT && r != -EBADMSG)
        return r;
    *ret_exit = (struct attempt_exit){.exit_code = -1, .failure.class = FAILURE_LOST};
    snprintf(ret_exit->failure.evidence, sizeof ret_exit->failure.evidence,
        "the task's shim left no exit record: it was killed, or the machine went down");
    return ATTEMPT_LOST;
}

int attempt_probe(const char *folder, struct fault *fault, struct attempt_watch *ret_watch,
    struct attempt_exit *ret_exit)
{
    int r = claim_probe(folder, &ret_watch->shim, &ret_watch->pidfd);
    switch (r) {
    case CLAIM_FENCED:
        return ATTEMPT_NEVER_STARTED;
    case CLAIM_HELD:
        return ATTEMPT_RUNNING;
    case CLAIM_LEFT:
        return probe_result(folder, fault, ret_exit);
    case -ENOENT:
        return ATTEMPT_NO_FOLDER;
    default:
        return fault_set(fault, -r, "cannot read the claim in %s: %s", folder, strerror(-r));
    }
}

int attempt_terminate(const struct attempt_watch *watch, enum attempt_ask ask)
{
    siginfo_t info = {.si_signo = SIGTERM, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = ask;
    return syscall(SYS_pidfd_send_signal, watch->pidfd, SIGTERM, &info, 0) < 0 ? -errno : 0;
}

int attempt_signal_shim(const struct attempt_watch *watch, int signal)
{
    return syscall(SYS_pidfd_send_signal, watch->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

void attempt_unwatch(struct attempt_watch *watch)
{
    siginfo_t info;
    if (watch->pidfd < 0)
        return;
    waitid((idtype_t)P_PIDFD, (id_t)watch->pidfd, &info, WEXITED | WNOHANG);
    close(watch->pidfd);
    watch->pidfd = -1;
}

#define STOP_PASSES_MAX 3 /* chosen: each may take seconds (tree_signal_marked) */

static void remove_sockets(const char *folder)
{
    struct spec_file file;
    struct fault unused;
    if (read_spec(folder, &unused, &file) < 0)
        return;
    torch_responder_clean(&file.spec);
    spec_file_fini(&file);
}

/* The processes are stopped first, until a pass finds no new ones: a stopped process cannot fork a
 * child that is missed. */
int attempt_sweep(const char *folder, uid_t uid)
{
    char mark[PATH_MAX + sizeof MARK];
    snprintf(mark, sizeof mark, MARK "%s", folder);
    uid_t owner = geteuid() == 0 ? uid : geteuid();
    size_t unknown;
    for (int pass = 0, found = 0, before = -1; found > before && pass < STOP_PASSES_MAX; pass++) {
        before = found;
        found = tree_signal_marked(mark, owner, SIGSTOP, &unknown);
    }
    int killed = tree_signal_marked(mark, owner, SIGKILL, &unknown);
    remove_sockets(folder);
    return killed >= 0 && unknown > 0 ? -ETIMEDOUT : killed;
}
