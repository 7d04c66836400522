/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs that are recorded, and one look at them all. */
#ifndef COLLOC_RECORDER_LOOK_H
#define COLLOC_RECORDER_LOOK_H

#include "exec/kin.h"
#include "recorder/recorder.h"

struct looker {
    struct gpu_set *set; /* NULL: no GPUs to be had */
    size_t *index;       /* in the set, beside recording->gpu */
    struct gpu_sample sample;
    int64_t began_us;
    struct kin kin;
    FILE *csv;
    struct recording *recording;
};

/* That there are no GPUs is told in the recording. 0 or a fault. */
int looker_open(struct looker *looker, const struct recorder_settings *settings,
    struct recording *recording, struct fault *fault);

/* `root`: the command's processes descend from it. 0: there is no command yet. */
void looker_look(struct looker *looker, pid_t root);

/* Before the first look and before the last one. */
void looker_ask_all(struct looker *looker);

void looker_close(struct looker *looker);

#endif
