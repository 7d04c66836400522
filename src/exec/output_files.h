/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a task's output: opened, as the user, by the child that becomes the task, and opened
 * again when the task has ended, to search them for the reason of its failure. */
#ifndef COLLOC_EXEC_OUTPUT_FILES_H
#define COLLOC_EXEC_OUTPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "exec/identity.h"
#include "exec/spec.h"

enum { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_STREAMS };

/* Has the file begun anew since the attempt started (output_writer.h)? */
enum output_renewal {
    OUTPUT_NOT_RENEWED,
    OUTPUT_MOVED_ONCE, /* its former content and the attempt's earlier output are in FILE.1 */
    OUTPUT_MOVED,      /* FILE.1 has the attempt's output only */
    OUTPUT_DROPPED,    /* FILE.1 does not have the attempt's output */
};

/* The file of a stream, and where this attempt's output begins in it. */
struct output_file {
    bool is_regular; /* false: it cannot be read again */
    dev_t device;
    ino_t inode;
    int64_t offset; /* where this attempt's output begins, in bytes */
    enum output_renewal renewal;
};

struct output {
    int fd[OUTPUT_STREAMS]; /* may be the same descriptor twice */
    struct output_file file[OUTPUT_STREAMS];
    bool is_default; /* standard output is the default file in the user's folder */
};

/*
 * Opens both files, close-on-exec. Files in the attempt's folder are new and belong to the user;
 * files that the user names are opened with the user's rights, so that no user reaches another's
 * files through colloc. Waits for the user's file system.
 *
 * Returns 0, or -errno with a fault.
 */
int output_open(const char *folder, const struct attempt_spec *spec,
    const struct identity *identity, struct fault *fault, struct output *ret);

/*
 * Opens a file of the calling user for reading and appending whose name other users can guess,
 * perhaps in a folder that all may write to: another user's file or link of that name is not
 * followed, waited for or emptied.
 *
 * append: false: it is emptied
 *
 * Returns a descriptor, or -errno.
 */
int output_open_default(const char *path, bool append);

/* Do both streams go to one file? */
bool output_is_shared(const struct attempt_spec *spec);

/*
 * Opens the file of a stream for reading. To be called as the user; waits for the user's file
 * system.
 *
 * file: as output_open filled it.
 *
 * Returns a descriptor; -ESTALE if another file has the name now; or another -errno.
 */
int output_open_again(const char *folder, const struct attempt_spec *spec, int stream,
    const struct output_file *file);

/*
 * Opens FILE.1, the former content of the default file of standard output (output_writer.h), for
 * reading. To be called as the user. Another user's file or link of that name is not opened.
 *
 * Returns a descriptor or -errno.
 */
int output_open_before(const struct attempt_spec *spec);

#endif
