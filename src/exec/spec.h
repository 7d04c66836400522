/* SPDX-License-Identifier: Apache-2.0 */
/* What to run: the daemon writes it into the attempt folder, the shim reads it there. */
#ifndef COLLOC_EXEC_SPEC_H
#define COLLOC_EXEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/text.h"

struct attempt_spec {
    int64_t task_id;
    uid_t uid; /* of the submitter: used when the daemon is root, else the task runs as the daemon's
                  user */
    gid_t gid;
    const char *cwd; /* absolute */
    mode_t umask;
    int64_t open_files; /* the soft limit; 0: the shim's own */

    /*
     * The kept script; run by its own "#!" line or by /bin/bash, with `argv` as its arguments.
     * Without one (size 0), argv[0] is a program, looked up on the PATH of `env`. No text of a user
     * ever goes through a shell of ours.
     */
    struct span script;
    const char *const *argv; /* ends in NULL; may be NULL beside a script */

    const char *const *env;       /* "KEY=VALUE" as submitted, ends in NULL; may be NULL */
    const char *const *env_added; /* the daemon's own, which win over the user's; may be NULL */

    /*
     * Where output goes. NULL: `stdout` and `stderr` in the attempt folder. Paths may hold %j (the
     * task's id; %% is a per cent sign) and are relative to cwd; they are opened as the user.
     * stdout_path alone takes both.
     */
    const char *stdout_path;
    const char *stderr_path;
    bool stdout_is_default; /* the user did not name it: where it cannot be written, `stdout` in the
                               attempt folder takes the output, and says why */
    int64_t kept_max_bytes; /* of each file in the attempt folder (exec/output_cap.h); 0: no cap */
    bool append; /* to user-named files, as a second attempt should; otherwise they are emptied
                    first */

    const char *cgroup; /* that the task runs in: an absolute path (exec/cgroup.h); NULL: none */

    int64_t grace_us;      /* between the polite signal and SIGKILL */
    int64_t time_limit_us; /* kept by the shim, also while no daemon runs; 0: none */
};

/* A spec read back, with the memory it points into. has_script says what script.size said when it
 * was written. */
struct spec_file {
    struct attempt_spec spec;
    bool has_script;
    char *data;
    const char **argv;
    const char **env;
};

/* Its file is no larger. */
#define SPEC_LIMIT ((size_t)16 << 20)

/* The spec as bytes (without the script) for the caller to free. 0, -EINVAL with the reason in the
 * fault, -ENOMEM. */
int spec_encode(
    const struct attempt_spec *spec, struct fault *fault, char **ret_data, size_t *ret_size);

/* Takes over `data` (as from file_read: one byte more than size may be written), also when it
 * fails. 0 or -EBADMSG. */
int spec_decode(char *data, size_t size, struct fault *fault, struct spec_file *ret_file);

void spec_file_fini(struct spec_file *file);

/* `path` with %j filled in, made absolute with the spec's cwd. 0 or -ENAMETOOLONG. */
int spec_output_path(const struct attempt_spec *spec, const char *path, char *buffer, size_t size);

#endif
