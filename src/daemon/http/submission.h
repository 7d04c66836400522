/* SPDX-License-Identifier: Apache-2.0 */
/* A submission: from the request's body to the event SUBMIT. */
#ifndef COLLOC_DAEMON_HTTP_SUBMISSION_H
#define COLLOC_DAEMON_HTTP_SUBMISSION_H

#include "daemon/http/http_state.h"
#include "taskfile/array_spec.h"
#include "taskfile/description.h"

#define SUBMISSION_TEXT_MAX   4096              /* of names and paths */
#define SUBMISSION_SCRIPT_MAX ((size_t)4 << 20) /* as Slurm's max_script_size is by default */

struct requirement_answer;

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
    char *gpu_ids;      /* "@GPU-...,@GPU-...": what the event points to; NULL: any GPUs */
    const char *script; /* in the request's body */
    size_t script_size;
    char *environment; /* "A=1\0B=2\0" */
    size_t environment_size;
    int64_t text_bytes; /* of script, environment, arguments, summary and the other texts */
    json_t *warnings;

    struct requirement_answer *answer; /* a helper's estimate; NULL: none is needed, or not yet */
    int64_t estimate_began_us;         /* on the monotonic clock: by a helper */
    bool has_asked;                    /* cuDNN, about the convolutions, or why not: */
    char why_not_asked[KERNELS_WHY_SIZE];
    void (*on_estimated)(struct submission *submission, int r, const struct fault *fault);
};

/*
 * Reads the request's body into the rest. Returns 0; REQUIREMENT_LATER: a helper has to estimate,
 * and then it is read anew; or a fault for the user.
 */
int submission_read(const struct http *http, struct submission *submission, struct fault *fault);

/* Forgets the fields read, except the helper's estimate. */
void submission_unread(struct submission *submission);
void submission_free(struct submission *submission);

/* Adds a line to the reply's warnings. */
void submission_warn(struct submission *submission, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
