/* SPDX-License-Identifier: Apache-2.0 */
/* What `colloc top` shows: its state, the choice and order of tasks, and the picture. */
#ifndef COLLOC_CLI_TOP_H
#define COLLOC_CLI_TOP_H

#include <jansson.h>

#include "cli/screen.h"
#include "cli/text_graph.h"

enum top_sort { SORT_QUEUE, SORT_TIME, SORT_MEMORY, SORT_USER, SORTS };
enum top_mode { TOP_BROWSE, TOP_FILTER, TOP_CONFIRM };

struct top_gpu {
    char uuid[96];
    struct history smact;
};

struct top {
    struct screen *screen;
    json_t *gpus, *tasks; /* the daemon's last replies */
    struct top_gpu *gpu;  /* histories, found by UUID */
    size_t gpu_count;

    enum top_mode mode;
    enum top_sort sort;
    char filter[64]; /* "": all */
    char message[512];
    bool is_cut_off;      /* the last look had no answer: `message` says why */
    json_int_t to_cancel; /* in TOP_CONFIRM */

    const json_t **shown; /* tasks of the last reply, chosen and in order */
    int shown_count;
    json_int_t selected; /* a task's id; 0: none yet */
    int first;           /* the uppermost of `shown` on the screen */
    int task_rows;       /* room for tasks in the last picture */
};

/* Takes over new replies: the picture from now on. */
void top_take(struct top *top, json_t *gpus, json_t *tasks);

/*
 * Fills the GPUs' histories from a reply of GET /v1/samples, one value for each interval up to
 * `now_s` (since 1970), "not known" where there is none. `samples` may be NULL.
 */
void top_recall(struct top *top, const json_t *samples, double now_s, double interval_s);

/* Fills `shown` from the last reply, and keeps the selection within it. */
void top_choose(struct top *top);

/* The place of the selected task in `shown`; -1 without tasks. */
int top_selected(const struct top *top);

void top_draw(struct top *top);

/* Frees all but the screen. */
void top_fini(struct top *top);

#endif
