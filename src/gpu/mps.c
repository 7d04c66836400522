/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs NVIDIA's control program: "-d" starts the daemon, commands on standard input query it. A
 * daemon is alive when its pid file names a process of that name and owner, since another process
 * may have got its pid.
 */
#include "gpu/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "base/units.h"
#include "gpu/program.h"

#define PROGRAM  "nvidia-cuda-mps-control"
#define PID_FILE PROGRAM ".pid"

/* The longest name that the daemon gives to a socket in its pipe directory. */
#define LONGEST_SOCKET "control_privileged"

/* 0, or MPS_NOT_INSTALLED. */
static int find_program(char *path, size_t size, struct fault *fault)
{
    if (program_find(PROGRAM, path, size))
        return 0;
    fault_set(fault, ENOENT, "no MPS: " PROGRAM " is not on PATH; it is part of the NVIDIA driver");
    return MPS_NOT_INSTALLED;
}

/* By the line /proc/PID/stat; the kernel keeps 15 bytes of the name. */
static bool names_live_daemon(const char *line)
{
    struct process_stat process;
    return process_parse_stat(line, &process) == 0 && !process_has_ended(&process) &&
           strncmp(process.name, PROGRAM, 15) == 0;
}

/* Line and owner by one descriptor: of one process, even if its number is used again meanwhile. */
static bool is_control_daemon(pid_t pid, uid_t owner)
{
    char path[64], line[1024] = "";
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, line, sizeof line - 1);
    bool ours = fstat(fd, &status) == 0 && status.st_uid == owner;
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    return ours && names_live_daemon(line);
}

/* Closes `fd`, which may be -errno. */
static pid_t read_pid(int fd, uid_t owner)
{
    char text[16] = "";
    int64_t pid;
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (parse_int64(text, 1, INT_MAX, &pid) < 0 || !is_control_daemon((pid_t)pid, owner))
        return 0;
    return (pid_t)pid;
}

/* All users can write to the directory: links are not followed, and a FIFO does not block. */
#define PID_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

pid_t mps_find(const char *pipe_dir, uid_t owner)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" PID_FILE, pipe_dir) >= (int)sizeof path)
        return 0;
    return read_pid(open(path, PID_FLAGS), owner);
}

/* For kernels before 5.6, without openat2: opens folder by folder, following no link. */
static int open_by_steps(int folder, char *path)
{
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    for (char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        *slash = '\0';
        int next = openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(at);
        at = next;
    }
    int fd = at < 0 ? -1 : openat(at, path, PID_FLAGS);
    if (at >= 0)
        close(at);
    return fd;
}

pid_t mps_find_below(int folder, const char *pipe_dir, uid_t owner)
{
    struct open_how how = {
        .flags = PID_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" PID_FILE, pipe_dir) >= (int)sizeof path)
        return 0;
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* the seccomp filter of a container refuses
                                                        * calls that it does not know */
        fd = open_by_steps(folder, path);
    return read_pid(fd, owner);
}

static int make_open_folder(const char *path, struct fault *fault)
{
    struct stat status;
    int r = file_make_folders(path, 0755);
    if (r < 0)
        return fault_set(fault, -r, "cannot make the MPS directory %s: %s", path, strerror(-r));
    if (lstat(path, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return fault_set(fault, EPERM, "the MPS directory %s is not a directory of our own", path);
    if (chmod(path, 01777) < 0)
        return fault_set(
            fault, errno, "cannot open the MPS directory %s to users: %s", path, strerror(errno));
    return 0;
}

/* Removes only files of a control daemon, so that a wrong directory loses nothing of value. */
static bool is_leftover(int folder, const char *name)
{
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
        return true;
    return strcmp(name, PID_FILE) == 0 || strcmp(name, "control_lock") == 0;
}

static void remove_leftovers(const char *pipe_dir)
{
    DIR *folder = opendir(pipe_dir);
    struct dirent *entry;
    if (!folder)
        return;
    while ((entry = readdir(folder))) {
        if (is_leftover(dirfd(folder), entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
}

static char *join_uuids(const char *const *uuids, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs("CUDA_VISIBLE_DEVICES=", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", uuids[i]);
    fclose(out);
    return text;
}

static char *format_assignment(const char *name, const char *value)
{
    char *text = NULL;
    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

/* Runs the control program with an argument, or with commands on its standard input. `own`: entries
 * of its environment in place of our settings of MPS, ended by NULL. */
static int run_control_program(const char *program, const char *argument, const char *commands,
    int64_t limit_us, char *const *own, char *output, size_t size, struct fault *fault)
{
    static const char *const ours[] = {"CUDA_MPS_", "CUDA_VISIBLE_DEVICES=", NULL};
    char *argv[] = {(char *)PROGRAM, (char *)argument, NULL};
    char **environment = environment_make(ours, false, own);
    int status = 0;
    if (!environment)
        return fault_set(fault, ENOMEM, "no memory to start %s", program);
    struct program run = {
        .path = program,
        .argv = argv,
        .envp = environment,
        .input = commands,
        .limit_us = limit_us,
    };
    int r = program_run(&run, output, size, &status, fault);
    free(environment);
    if (r == 0 && status != 0)
        return fault_set(fault, EIO, "%s ended with status %d: %.200s", program, status, output);
    return r;
}

static int check_length(const char *pipe_dir, struct fault *fault)
{
    const size_t length_max = sizeof(((struct sockaddr_un *)NULL)->sun_path) -
                              sizeof("/" LONGEST_SOCKET);
    if (strlen(pipe_dir) > length_max)
        return fault_set(fault, ENAMETOOLONG,
            "the MPS pipe directory %s is longer than the %zu bytes sockets allow", pipe_dir,
            length_max);
    return 0;
}

static int start_daemon(const char *program, const char *pipe_dir, const char *log_dir,
    const char *const *uuids, size_t count, struct fault *fault)
{
    char *own[] = {format_assignment("CUDA_MPS_PIPE_DIRECTORY", pipe_dir),
        format_assignment("CUDA_MPS_LOG_DIRECTORY", log_dir), join_uuids(uuids, count), NULL};
    char output[256];
    int r;
    if (!own[0] || !own[1] || !own[2])
        r = fault_set(fault, ENOMEM, "no memory to start %s", program);
    else
        r = run_control_program(
            program, "-d", NULL, MPS_START_LIMIT_US, own, output, sizeof output, fault);
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        free(own[i]);
    return r;
}

int mps_start(const char *pipe_dir, const char *log_dir, const char *const *uuids, size_t count,
    struct fault *fault)
{
    char program[PATH_MAX];
    int r = find_program(program, sizeof program, fault);
    if (r != 0)
        return r;
    r = check_length(pipe_dir, fault);
    if (r == 0)
        r = make_open_folder(pipe_dir, fault);
    if (r == 0)
        r = make_open_folder(log_dir, fault);
    if (r < 0)
        return r;
    if (mps_find(pipe_dir, geteuid()))
        return MPS_ALREADY_ALIVE;
    remove_leftovers(pipe_dir);
    return start_daemon(program, pipe_dir, log_dir, uuids, count, fault);
}

/* Sends commands to the control daemon. Returns 0 with its answer in `output`, MPS_NOT_INSTALLED,
 * or -errno. */
static int query_daemon(const char *pipe_dir, const char *commands, int64_t limit_us, char *output,
    size_t size, struct fault *fault)
{
    char program[PATH_MAX];
    int r = find_program(program, sizeof program, fault);
    if (r != 0)
        return r;
    char *own[] = {format_assignment("CUDA_MPS_PIPE_DIRECTORY", pipe_dir), NULL};
    if (!own[0])
        return fault_set(fault, ENOMEM, "no memory to start %s", program);
    r = run_control_program(program, NULL, commands, limit_us, own, output, size, fault);
    free(own[0]);
    return r;
}

int mps_stop(const char *pipe_dir, struct fault *fault)
{
    char output[256];
    pid_t daemon = mps_find(pipe_dir, geteuid());
    if (daemon == 0)
        return 0;
    int r = query_daemon(pipe_dir, "quit\n", MPS_STOP_LIMIT_US, output, sizeof output, fault);
    if (r != 0 && r != -ETIMEDOUT)
        return r;
    return process_wait_gone(daemon, r == -ETIMEDOUT ? 0 : MPS_STOP_LIMIT_US) < 0 ? MPS_STILL_ENDING
                                                                                  : 0;
}

/* Returns the next line that is a process id, or 0 after the last. */
static pid_t next_pid(const char **at)
{
    while (**at) {
        char line[32];
        int64_t pid;
        size_t length = strcspn(*at, "\n");
        bool fits = span_copy(span_trim((struct span){*at, length}), line, sizeof line);
        *at += length + ((*at)[length] == '\n');
        if (fits && parse_int64(line, 1, INT_MAX, &pid) == 0)
            return (pid_t)pid;
    }
    return 0;
}

static int list_clients_of(const char *pipe_dir, pid_t server, struct mps_client *list,
    size_t capacity, struct fault *fault)
{
    char command[64], clients[4096];
    size_t n = 0;
    snprintf(command, sizeof command, "get_client_list %d\n", (int)server);
    int r = query_daemon(pipe_dir, command, MPS_QUERY_LIMIT_US, clients, sizeof clients, fault);
    const char *at = clients;
    for (pid_t pid; r == 0 && n < capacity && (pid = next_pid(&at));)
        list[n++] = (struct mps_client){server, pid};
    return r == 0 ? (int)n : r < 0 ? r : -ENOENT;
}

int mps_list_clients(
    const char *pipe_dir, struct mps_client *list, size_t capacity, struct fault *fault)
{
    char servers[1024];
    size_t n = 0;
    int r = query_daemon(
        pipe_dir, "get_server_list\n", MPS_QUERY_LIMIT_US, servers, sizeof servers, fault);
    if (r != 0)
        return r < 0 ? r : -ENOENT;
    const char *at = servers;
    for (pid_t server; n < capacity && (server = next_pid(&at));) {
        r = list_clients_of(pipe_dir, server, list + n, capacity - n, fault);
        if (r < 0)
            return r;
        n += (size_t)r;
    }
    return (int)n;
}

/* The answer is a CUDA result: 0 is success. */
int mps_terminate_client(const char *pipe_dir, const struct mps_client *client, struct fault *fault)
{
    char command[64], answer[256];
    snprintf(
        command, sizeof command, "terminate_client %d %d\n", (int)client->server, (int)client->pid);
    int r = query_daemon(pipe_dir, command, MPS_QUERY_LIMIT_US, answer, sizeof answer, fault);
    if (r == 0 && strcmp(answer, "0") != 0)
        r = fault_set(
            fault, EIO, "MPS does not terminate client %d: %.100s", (int)client->pid, answer);
    return r > 0 ? -ENOENT : r;
}
