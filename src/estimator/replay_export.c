/* The exporter's clock played through the rules of the caching allocator: each tick one storage comes or goes. */
#include <errno.h>
#include <stdlib.h>

#include "estimator/allocator.h"
#include "estimator/replay.h"
#include "estimator/workspace.h"

enum { NOTHING = 0 }; /* of a tick; otherwise the tensor's number from 1, negative where it goes */

struct player {
    struct allocator allocator;
    double batch, live;
    const struct workspace_shares *shares;
    int error;
    struct footprint footprint;
};

static double at_batch(struct linear_size size, double batch)
{
    return (double)size.fixed + (double)size.per_sample * batch;
}

static int take(struct player *player, double bytes)
{
    if (player->error < 0 || bytes <= 0)
        return -1;
    int handle = bytes < (double)ALLOCATOR_REQUEST_MAX ? allocator_take(&player->allocator, (int64_t)bytes) : -ERANGE;
    if (handle < 0)
        player->error = handle;
    return handle < 0 ? -1 : handle;
}

static void come(struct player *player, const struct export_tensor *tensor, int *ret_handle)
{
    double bytes = at_batch(tensor->bytes, player->batch);
    *ret_handle = take(player, bytes);
    player->live += bytes;
    if (player->live > player->footprint.live)
        player->footprint.live = player->live;
    if (bytes > player->footprint.largest_map)
        player->footprint.largest_map = bytes;
}

static void go(struct player *player, const struct export_tensor *tensor, int handle)
{
    allocator_release(&player->allocator, handle);
    player->live -= at_batch(tensor->bytes, player->batch);
}

static void run_conv(struct player *player, const struct export_conv *conv)
{
    struct convolution shape = {.input = at_batch(conv->input, player->batch),
                                .output = at_batch(conv->output, player->batch),
                                .weight = (double)conv->weight,
                                .dense = conv->dense,
                                .pointwise = conv->pointwise,
                                .backward = conv->backward};
    double bytes = workspace_of(&shape, player->shares);
    allocator_release(&player->allocator, take(player, bytes));
    if (bytes > player->footprint.largest_workspace)
        player->footprint.largest_workspace = bytes;
}

static int32_t *make_schedule(const struct export *export)
{
    int32_t *schedule = calloc((size_t) export->ticks + 1, sizeof *schedule);
    for (size_t i = 0; schedule && i < export->n_tensors; i++) {
        schedule[export->tensors[i].first] = (int32_t)i + 1;
        if (export->tensors[i].last >= 0)
            schedule[export->tensors[i].last] = -((int32_t)i + 1);
    }
    return schedule;
}

static void play(struct player *player, const struct export *export, const int32_t *schedule, int *handles)
{
    size_t conv = 0;
    for (int64_t tick = 0; tick < export->ticks && player->error == 0; tick++) {
        int32_t what = schedule[tick];
        if (what > NOTHING)
            come(player, &export->tensors[what - 1], &handles[what - 1]);
        else if (what < NOTHING)
            go(player, &export->tensors[-what - 1], handles[-what - 1]);
        for (; conv < export->n_convs && export->convs[conv].tick <= tick; conv++)
            run_conv(player, &export->convs[conv]);
    }
}

int replay_export(const struct export *export, double batch, const struct gpu_traits *gpu,
                  const struct workspace_shares *shares, struct fault *fault, struct footprint *ret_footprint)
{
    struct player player = {.batch = batch, .shares = shares};
    int32_t *schedule = make_schedule(export);
    int *handles = malloc(export->n_tensors * sizeof *handles);
    allocator_init(&player.allocator);
    for (size_t i = 0; handles && i < export->n_tensors; i++)
        handles[i] = -1;
    player.error = schedule && handles ? 0 : -ENOMEM;
    for (int i = 0; export->multiplies && i < 2; i++) /* of the thread that runs forward, and of autograd's */
        take(&player, (double)gpu->workspace_bytes);
    if (player.error == 0)
        play(&player, export, schedule, handles);
    player.footprint.reserved = (double)player.allocator.reserved;
    *ret_footprint = player.footprint;
    allocator_fini(&player.allocator);
    free(schedule);
    free(handles);
    if (player.error < 0)
        return player.error == -ENOMEM
                   ? fault_set(fault, ENOMEM, "out of memory")
                   : fault_set(fault, -player.error,
                               "at a batch of %.0f the export's tensors are more than any GPU holds", batch);
    return 0;
}
