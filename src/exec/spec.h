/* SPDX-License-Identifier: Apache-2.0 */
/* The spec of an attempt: what to run. The daemon writes it to the attempt's folder, the shim reads
 * it there. */
#ifndef COLLOC_EXEC_SPEC_H
#define COLLOC_EXEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/text.h"
#include "exec/cgroup.h"
#include "exec/profiler.h"

struct attempt_spec {
    int64_t task_id;
    uid_t uid; /* of the user that submitted; if the daemon is not root, the task runs as the
                  daemon's user */
    gid_t gid;
    int64_t array_id; /* 0: of no array */
    int64_t array_index;
    const char *name; /* NULL: "task" */
    const char *cwd;  /* absolute */
    mode_t umask;
    int64_t open_files; /* soft limit of open files; 0: that of the shim */

    /*
     * The submitted script, with `argv` as its arguments. It is run by the interpreter of its #!
     * line, else by /bin/bash. Without a script (size 0), argv[0] is a program, searched on the
     * PATH of `env`. Colloc passes no text of a user to a shell.
     */
    struct span script;
    const char *const *argv; /* ends in NULL; may be NULL beside a script */

    const char *metric_from;  /* where its metric is read (metric_reader.h); or NULL */
    const char *metric_rule;  /* the stop rule of its array, with `metric_from` */
    const char *step_pattern; /* of a line of its output that marks a step; or NULL */
    const char *track;        /* places to which its metrics are sent (tracker.h); or NULL */
    enum profiler profiler;   /* the program runs under it; the profile is colloc-%j in cwd, with
                                the profiler's ending */

    const char
        *torch; /* its first order to PyTorch's profiler (torch_order.h), which later ones can
                          follow; NULL: the profiler takes none */
    const char *torch_sockets; /* the folder for its sockets (torch_responder.h), with `torch` */

    const char *const *env;       /* "KEY=VALUE" as submitted, ends in NULL; may be NULL */
    const char *const *env_added; /* of the daemon: these override `env`; may be NULL */

    /*
     * The files of the output. NULL: `stdout` and `stderr` in the attempt's folder. In a path, %j
     * is the task's id, %A its array's (without one the task's), %a its index in the array, %x its
     * name and %% a per cent sign; a width fills numbers with zeros (%4j). It is relative to cwd,
     * and opened as the user. With stdout_path alone, both streams go there.
     */
    const char *stdout_path;
    const char *stderr_path;
    bool stdout_is_default; /* the user did not name it: if it cannot be opened, the output goes to
                               `stdout` in the attempt's folder, with a line that says why */
    int64_t
        kept_max_bytes; /* of each file in the attempt's folder (exec/output_cap.h); 0: no cap */
    int64_t output_max_bytes; /* of the default file in the user's folder, and the one before it
                                 (exec/output_writer.h); 0: no limit */
    bool append;              /* to files that the user named, for a second attempt; false: they are
                               emptied first */

    const char *cgroup;          /* of the task: an absolute path (exec/cgroup.h); NULL: none */
    struct cgroup_limits limits; /* of its cgroup */
    const char *near_cpus;       /* on which it runs (exec/near_cpus.h); NULL: on all */
    const char *gpu_minors;      /* of its GPUs, "0,2": its cgroup can open no others
                                    (exec/device_filter.h); NULL: it can */

    int64_t grace_us;       /* between SIGTERM and SIGKILL */
    int64_t time_limit_us;  /* the shim keeps it, also while no daemon runs; 0: none */
    int warning_signal;     /* --signal, to processes that handle it; 0: none */
    int64_t warning_us;     /* how long before */
    bool warns_script_only; /* only the main process gets it */
};

/* A decoded spec, with the memory that it points into. */
struct spec_file {
    struct attempt_spec spec;
    bool has_script; /* script.size was not 0 when it was encoded; the script itself is not here */
    bool reads_time_limit; /* the shim of the version that encoded it reads ATTEMPT_TIME_LIMIT */
    char *data;
    const char **argv;
    const char **env;
};

/* Bytes. Chosen: larger than any environment that execve accepts. */
#define SPEC_LIMIT ((size_t)16 << 20)

/*
 * Encodes the spec without its script.
 *
 * ret_data: for the caller to free.
 *
 * Returns 0, or with a fault: -EINVAL (the spec is incomplete or inconsistent) or -ENOMEM.
 */
int spec_encode(
    const struct attempt_spec *spec, struct fault *fault, char **ret_data, size_t *ret_size);

/*
 * Decodes a spec; any bytes are allowed.
 *
 * data: `size` bytes and one more that may be written (as file_read returns them); owned by this
 *       function, also if it fails.
 *
 * Returns 0, and spec_file_fini must follow; -EBADMSG with a fault; or -ENOMEM.
 */
int spec_decode(char *data, size_t size, struct fault *fault, struct spec_file *ret_file);

/* Releases the text that the fields point into. */
void spec_file_fini(struct spec_file *file);

/*
 * Expands %j, %A, %a and %x in a path and makes it absolute with the spec's cwd.
 *
 * size: of `buffer`.
 *
 * Returns 0 or -ENAMETOOLONG.
 */
int spec_output_path(const struct attempt_spec *spec, const char *path, char *buffer, size_t size);

#endif
