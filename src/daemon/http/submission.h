/* SPDX-License-Identifier: Apache-2.0 */
/* A submission: from the request's body to the event SUBMIT. */
#ifndef COLLOC_DAEMON_HTTP_SUBMISSION_H
#define COLLOC_DAEMON_HTTP_SUBMISSION_H

#include "daemon/http/http_state.h"
#include "taskfile/array_spec.h"
#include "taskfile/description.h"

#define SUBMISSION_TEXT_MAX   4096              /* of names and paths */
#define SUBMISSION_SCRIPT_MAX ((size_t)4 << 20) /* as Slurm's max_script_size is by default */

struct submission {
    struct submission *next;
    struct http *http;
    struct api_request *request;
    char user[NAME_MAX_BYTES]; /* the submitter's name, or number */
    struct event event;
    struct option_value options[TASK_OPTION_MAX]; /* by enum task_option */
    struct dependency after[DEPENDENCIES_MAX];    /* what the event points to */
    struct array_spec array;                      /* count 0: a single task */
    struct array_element *elements;               /* of the array: what the event points to */
    json_t *detail;     /* for the log; blobs' keys are filled in when it is written */
    const char *script; /* in the request's body */
    size_t script_size;
    char *environment; /* "A=1\0B=2\0" */
    size_t environment_size;
    int64_t text_bytes; /* of script, environment and summary */
    json_t *warnings;
};

/* Reads the request's body into the rest. Returns 0, or a fault for the user. */
int submission_read(const struct http *http, struct submission *submission, struct fault *fault);
void submission_free(struct submission *submission);

/* Adds a line to the reply's warnings. */
void submission_warn(struct submission *submission, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Declared or estimated from a model summary: the task's memory requirement, into the event, the
 * detail and the warnings. Returns 0 or a fault for the user. (memory_requirement.c) */
int submission_estimate_need(const struct http *http, const json_t *body,
    struct submission *submission, struct fault *fault);

#endif
