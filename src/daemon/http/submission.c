/* SPDX-License-Identifier: Apache-2.0 */
/* What a submission holds, released or begun anew; the warnings of its reply. */
#include "daemon/http/submission.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void release_read(struct submission *submission)
{
    json_decref(submission->detail);
    json_decref(submission->warnings);
    free(submission->environment);
    free(submission->gpu_ids);
    option_values_fini(submission->options, TASK_OPTION_MAX);
    array_spec_fini(&submission->array);
    free(submission->elements);
}

void submission_unread(struct submission *submission)
{
    struct submission blank = {.next = submission->next,
        .http = submission->http,
        .request = submission->request,
        .answer = submission->answer,
        .has_asked = submission->has_asked};
    memcpy(blank.user, submission->user, sizeof blank.user);
    memcpy(blank.why_not_asked, submission->why_not_asked, sizeof blank.why_not_asked);
    release_read(submission);
    *submission = blank;
}

void submission_free(struct submission *submission)
{
    if (!submission)
        return;
    release_read(submission);
    free(submission->answer);
    free(submission);
}

void submission_warn(struct submission *submission, const char *format, ...)
{
    char text[SUBMISSION_TEXT_MAX + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_t *line = json_string(text);
    if (line)
        json_array_append_new(submission->warnings, line);
}
