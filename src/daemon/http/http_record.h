/* SPDX-License-Identifier: Apache-2.0 */
/* Records of tasks in answers: found by the id in the path, and with what the requesting user may
 * see. */
#ifndef COLLOC_DAEMON_HTTP_HTTP_RECORD_H
#define COLLOC_DAEMON_HTTP_HTTP_RECORD_H

#include "daemon/array_tasks.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/http_state.h"

/* Returns the uid in the record of a task. */
uint32_t http_record_owner(const json_t *record);

/* Returns the part of a record that the requesting user may see: only the owner and root see the
 * command line and the evidence, a line of the task's log. Takes over the record. Returns NULL when
 * memory is out. */
json_t *http_record_for(const struct api_request *request, json_t *record);

/* Returns what users other than the task's owner may see of a record. Takes over the record.
 * Returns NULL for NULL, and when memory is out. */
json_t *http_record_public(json_t *record);

/* Replies {"task": ...} with the part that the user may see, and a "note" unless that is "". Takes
 * over the record. */
void http_reply_task_noted(
    struct api_request *request, int status, json_t *record, const char *note);
void http_reply_task(struct api_request *request, json_t *record);

/*
 * Finds the task that 12 or 12_7 names.
 *
 * id, index_text: 12; and "7", the index in array 12, or "": `id` is the task's own
 * array:          as of array_tasks_read
 *
 * Returns the task; 0: array 12 has no such index.
 */
uint64_t http_find_task_id(
    const struct http *http, uint64_t id, const char *index_text, struct array_tasks *array);

/* Returns the task that the path names, in the same way. */
uint64_t http_request_task_id(const struct http *http, const struct api_request *request);

/* Says that there is no such task. `index_text`: as of http_find_task_id. */
void http_set_no_task(struct fault *fault, uint64_t id, const char *index_text);

/* Answers that there is no such task; 0: none of the array has the index that the path names. */
void http_reply_no_task(struct api_request *request, uint64_t id);

/* Returns the record of a task, live or ended, which the caller releases; NULL after having
 * answered that there is none, or that the log cannot be read. */
json_t *http_find_record(struct http *http, struct api_request *request, uint64_t id);

#endif
