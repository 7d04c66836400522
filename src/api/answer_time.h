/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a request may go unanswered. collocd keeps to these bounds, which static assertions
 * check where it waits, and clients wait for somewhat longer.
 *
 *     POST /v1/tasks                150 s, most of it for the estimate of a large export
 *     GET /v1/tasks/12/wait         60 s, then the client asks again
 *     POST /v1/tasks/12/suspend     an hour: the answer comes once the memory has been copied
 */
#ifndef COLLOC_API_ANSWER_TIME_H
#define COLLOC_API_ANSWER_TIME_H

enum {
    ANSWER_MAX_S = 150,       /* chosen: for two estimates, between which cuDNN is asked */
    ANSWER_COPY_MAX_S = 3600, /* chosen: 132 GiB take 95 s, and others may be copied before */
    ANSWER_LATE_S = 20,       /* chosen: how much later an answer of a busy machine may come */
};

/*
 * How long a client is to wait for an answer.
 *
 * path: of the request, with or without a query: "/v1/tasks/12/wait?timeout_s=30"
 *
 * Returns the longest that the server may take, in seconds; ANSWER_LATE_S come on top.
 */
int answer_time_max_s(const char *path);

#endif
