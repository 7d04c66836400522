/* SPDX-License-Identifier: Apache-2.0 */
/* The state of `colloc top`: replies of the daemon, the list of tasks, and the drawing. */
#ifndef COLLOC_CLI_TOP_H
#define COLLOC_CLI_TOP_H

#include <jansson.h>

#include "cli/screen.h"
#include "cli/text_graph.h"

enum top_sort { SORT_QUEUE, SORT_TIME, SORT_MEMORY, SORT_USER, SORTS };
enum top_mode { TOP_BROWSE, TOP_FILTER, TOP_CONFIRM, TOP_PAGE };

struct top_gpu {
    char uuid[96];
    struct history smact;
};

struct top {
    struct screen *screen;
    json_t *gpus, *tasks; /* the daemon's last replies */
    struct top_gpu *gpu;  /* histories, found by UUID */
    size_t gpu_count, gpu_capacity;

    enum top_mode mode;
    enum top_sort sort;
    char filter[64]; /* "": all */
    char message[512];
    bool is_cut_off;      /* the last request had no answer: `message` says why */
    json_int_t to_cancel; /* in TOP_CONFIRM */

    json_int_t page_task; /* in TOP_PAGE */
    char *page;           /* its lines; NULL: none yet */
    int page_first;       /* the first line on the screen */

    const json_t **shown; /* the tasks that match the filter, sorted */
    int shown_count;
    json_int_t selected; /* a task's id; 0: none yet */
    int first;           /* index in `shown` of the first task on the screen */
    int task_rows;       /* lines for tasks in the last frame */
};

/* Replaces the replies by new ones, of which it takes ownership. */
void top_take(struct top *top, json_t *gpus, json_t *tasks);

/*
 * Fills the GPUs' graphs from a reply of GET /v1/samples: one value for each interval up to now,
 * unknown where there is no sample.
 *
 * samples: may be NULL.
 * now_s:   seconds since 1970.
 */
void top_recall(struct top *top, const json_t *samples, double now_s, double interval_s);

/* Filters and sorts the tasks of the last reply into `shown`, and selects one of them. */
void top_choose(struct top *top);

/* Returns the index of the selected task in `shown`; -1 without tasks. */
int top_selected(const struct top *top);

/* Makes the lines of the page from a TASK object and the answer of GET /v1/tasks/ID/series, which
 * may be NULL. */
void top_page_take(struct top *top, const json_t *task, const json_t *series);

/* Draws the lines that fit, above the line of keys. */
void top_page_draw(struct top *top);

/* Draws the whole screen from the state. */
void top_draw(struct top *top);

/* Frees all but the screen. */
void top_fini(struct top *top);

#endif
