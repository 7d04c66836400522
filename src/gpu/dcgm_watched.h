/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs and MIG instances whose activity DCGM is asked for, under all of their names: the
 * caller's number, the UUID, what `dcgmi dmon -i` takes, and the entity of which the rows are.
 *
 *     number  key           name  entity
 *     0       GPU-c011..    1     GPU 1
 *     1       GPU-5e1f../2  0/2   instance 3
 */
#ifndef COLLOC_GPU_DCGM_WATCHED_H
#define COLLOC_GPU_DCGM_WATCHED_H

#include "gpu/dcgm_table.h"
#include "gpu/gpu.h"

struct dcgm_watched {
    char uuid[sizeof(((struct gpu_info *)0)->uuid)]; /* of the card; "": nothing is watched */
    bool is_instance;
    unsigned gpu_instance; /* NVML's number */
    char key[112];         /* as colloc-dcgm takes it: the UUID, or UUID/gpu_instance */

    bool is_listed; /* DCGM has it */
    struct dcgm_entity entity;
    char name[24]; /* as `dmon -i` takes it: "0", "0/2" */
    struct dcgm_row row;
    bool begun; /* the stream's first row has come */
    bool has_row;
    int64_t row_us;
};

struct dcgm_watched_list {
    struct dcgm_watched at[DCGM_WATCHED_MAX]; /* by the caller's number */
    size_t count;                             /* the largest number in use, plus 1 */
};

void dcgm_watched_add_gpu(struct dcgm_watched_list *list, size_t i, const char *uuid);
void dcgm_watched_add_instance(
    struct dcgm_watched_list *list, size_t i, const char *card_uuid, unsigned gpu_instance);

bool dcgm_watched_has_instances(const struct dcgm_watched_list *list);

/* Returns whether DCGM does not list an instance. */
bool dcgm_watched_lacks_instance(const struct dcgm_watched_list *list);

/* Writes the keys, each once, into `ret_keys` (DCGM_WATCHED_MAX; borrowed). Returns how many. */
size_t dcgm_watched_keys(const struct dcgm_watched_list *list, const char **ret_keys);

/* Writes the names of what DCGM lists, each once: "0,1/2". Returns false when it lists none. */
enum { DCGM_WATCHED_NAMES_SIZE = DCGM_WATCHED_MAX * sizeof(((struct dcgm_watched *)0)->name) };
bool dcgm_watched_join_names(
    const struct dcgm_watched_list *list, char ret_names[DCGM_WATCHED_NAMES_SIZE]);

/* Nothing is listed and no row has come. The last rows stay. */
void dcgm_watched_begin_stream(struct dcgm_watched_list *list);

/* Note that DCGM lists a GPU, an instance, or either of them by its key. */
void dcgm_watched_note_gpu(struct dcgm_watched_list *list, struct span uuid, unsigned number);
void dcgm_watched_note_instance(
    struct dcgm_watched_list *list, const char *card_uuid, const struct dcgm_instance *found);
void dcgm_watched_note_entity(
    struct dcgm_watched_list *list, struct span key, const struct dcgm_entity *entity);

/* Keeps the row of an entity, but for the first of a stream, a mean over no time that may be 0. */
void dcgm_watched_take_row(
    struct dcgm_watched_list *list, const struct dcgm_row *row, int64_t now_us);

#endif
