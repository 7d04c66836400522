/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/PID/environ, which may hang (exec/limited_visit.h), with a time limit. */
#ifndef COLLOC_EXEC_ENVIRON_READ_H
#define COLLOC_EXEC_ENVIRON_READ_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads the environment that a process was started with, in a child process with VISIT_READ_MS of
 * time. May be called from any thread.
 *
 * ret_text: `ret_size` bytes of NUL-terminated entries, and a NUL; the caller frees it; NULL after
 *           an error. The size is 0 for a process that was started without any variable (`env -i`)
 *
 * Returns 0; -ETIMEDOUT: it could not be read in time, or showed no variables until then although
 * there are some (process_await_environ); -ESRCH: no such process, or it has ended; -EFBIG: longer
 * than execve(2) allows; or another -errno, such as -EACCES: it is hidden.
 */
int environ_read(pid_t pid, char **ret_text, size_t *ret_size);

#endif
