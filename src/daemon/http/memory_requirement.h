/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory requirement of a submission: declared, or estimated from its model summary. A small
 * summary is estimated at once, a larger one, or one in a file, by a helper process.
 */
#ifndef COLLOC_DAEMON_HTTP_MEMORY_REQUIREMENT_H
#define COLLOC_DAEMON_HTTP_MEMORY_REQUIREMENT_H

#include "estimator/estimator.h"

struct http;
struct submission;

enum {
    SUMMARY_TEXT_MAX = 4 << 20, /* bytes in a request; chosen: far above any printed network */
    SUMMARY_AT_ONCE = 32 << 10, /* bytes, and */
    LAYERS_AT_ONCE = 1000,      /* chosen: these take some ms, about as long as a fork */
    REQUIREMENT_NAME_SIZE = 32, /* of an estimator */
    REQUIREMENT_WARNING_SIZE = 200,
};

/* An estimate as a helper process returns it, without pointers. */
struct requirement_answer {
    bool is_known; /* `estimate` has bytes */
    char estimator[REQUIREMENT_NAME_SIZE];
    struct estimate estimate; /* `estimator` is not set */
    bool has_subject;         /* the network and the batch are known: */
    uint64_t fingerprint;
    int64_t batch;
    int n_warnings;
    char warnings[MODEL_WARNINGS_MAX][REQUIREMENT_WARNING_SIZE];
};

enum { REQUIREMENT_LATER = 1 };

/*
 * Sets the task's memory requirement, declared or estimated, in the event, detail and warnings.
 * Where submission->answer is set, that is the estimate.
 *
 * Returns 0; REQUIREMENT_LATER: the summary is for a helper (requirement_begin); or a fault for the
 * user.
 */
int submission_set_requirement(
    const struct http *http, struct submission *submission, struct fault *fault);

/*
 * Lets a helper estimate; `on_done` gets the submission, with submission->answer set if r is 0.
 * Returns 0, on_done will be called, perhaps from within; or -ENOMEM.
 */
int requirement_begin(struct http *http, struct submission *submission,
    void (*on_done)(struct submission *submission, int r, const struct fault *fault));

#endif
