/* SPDX-License-Identifier: Apache-2.0 */
/* A task description as the body of `POST /v1/tasks`. */
#ifndef COLLOC_CLI_REQUEST_H
#define COLLOC_CLI_REQUEST_H

#include <jansson.h>

#include "taskfile/description.h"

/* Bytes; as SUMMARY_TEXT_MAX of the daemon, which reads a larger summary from its file. */
#define REQUEST_SUMMARY_MAX ((size_t)4 << 20)

/*
 * Makes the request for a task, with the current folder, environment and umask. Environment
 * variables that are not UTF-8 are left out, with a warning on stderr.
 *
 * arguments:   of the script, NULL-terminated; or NULL.
 * ret_request: for the caller to release.
 *
 * Returns 0, or -errno with a fault (-EILSEQ: an argument or the folder is not UTF-8).
 */
int request_create(const struct task_description *task, const char *const *arguments,
    struct fault *fault, json_t **ret_request);

/* Adds the task options that are set, but not the summary's text. `values`: by enum task_option. */
void request_add_options(json_t *request, const struct option_value *values);

/* Adds the command line to a request, for display only. `words`: at least one; NULL-terminated. */
void request_name_command(json_t *request, const char *const *words);

#endif
