/* SPDX-License-Identifier: Apache-2.0 */
/* Replays an export through the rules of the caching allocator: at each tick of the exporter's
 * clock one storage is allocated or freed.
 *
 * With cudnn.benchmark PyTorch allocates the largest workspace of all kernels of a convolution when
 * it first runs one of that shape, tries them, and empties its cache (Conv_v8.cpp). Then it runs
 * the fastest. Where the export has both sizes, so does the replay; else it empties the cache. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimator/physics/allocator.h"
#include "estimator/physics/allocator_replay.h"
#include "estimator/physics/workspace.h"

enum { MORE_ITERATIONS = 2 }; /* chosen: after these and the export's two, the peak is steady */

enum { NOTHING = 0 }; /* at a tick; else the tensor's number from 1, negative if it is freed */

struct player {
    struct allocator allocator;
    const struct export_replay *how;
    double batch, live;
    int *handles; /* by tensor */
    size_t next_conv, next_hold;
    size_t n_convs_run; /* so far; the export's first iteration is the one that tries kernels */
    int error;
    struct footprint footprint;
};

static int take_block(struct player *player, double bytes)
{
    if (player->error < 0 || bytes <= 0)
        return -1;
    int handle = allocator_take(&player->allocator, allocator_request(bytes));
    if (handle < 0)
        player->error = handle;
    return handle < 0 ? -1 : handle;
}

static void free_tensor(struct player *player, const struct export *export, size_t tensor)
{
    int *handle = &player->handles[tensor];
    if (*handle < 0)
        return;
    allocator_release(&player->allocator, *handle);
    player->live -= linear_size_at(export->tensors[tensor].bytes, player->batch);
    *handle = -1;
}

static void allocate_tensor(struct player *player, const struct export *export, size_t tensor)
{
    double bytes = linear_size_at(export->tensors[tensor].bytes, player->batch);
    free_tensor(player, export, tensor);
    player->handles[tensor] = take_block(player, bytes);
    player->live += bytes;
    if (player->live > player->footprint.live)
        player->footprint.live = player->live;
    if (bytes > player->footprint.largest_map)
        player->footprint.largest_map = bytes;
}

/* Returns the workspace of a convolution: as cuDNN answered, as measured by the exporter, or by
 * rule. */
static double scratch_of(const struct player *player, const struct export *export, size_t i)
{
    const struct export_conv *conv = &export->convs[i];
    if (player->how->workspaces)
        return player->how->workspaces[i];
    static const enum conv_pass passes[] = {[EXPORT_FORWARD] = CONV_FORWARD,
        [EXPORT_INPUT_GRADIENT] = CONV_INPUT_GRADIENT,
        [EXPORT_WEIGHT_GRADIENT] = CONV_WEIGHT_GRADIENT};
    struct convolution shape = {.input = linear_size_at(conv->input, player->batch),
        .output = linear_size_at(conv->output, player->batch),
        .weight = (double)conv->weight,
        .in_channels = (double)conv->inputs,
        .out_channels = (double)conv->outputs,
        .in_positions = (double)conv->in_positions,
        .out_positions = (double)conv->out_positions,
        .taps = (double)conv->taps,
        .groups = (double)conv->groups,
        .half = conv->half,
        .pass = passes[conv->pass]};
    return player->how->use_measured && conv->workspace.known ? (double)conv->workspace.value
                                                              : workspace_of(&shape);
}

/* `bytes`: of the largest workspace; 0: not known. */
static void try_kernels(struct player *player, double bytes)
{
    int handle = take_block(player, bytes);
    if (handle >= 0)
        allocator_release(&player->allocator, handle);
    allocator_empty_cache(&player->allocator);
}

static void run_conv(struct player *player, const struct export *export, size_t i)
{
    const struct export_conv *conv = &export->convs[i];
    bool is_first = player->n_convs_run++ < export->n_step_convs;
    if (is_first && player->how->use_measured && conv->tried.known)
        try_kernels(player, (double)conv->tried.value);
    else if (player->how->tries && player->how->tries[i] && is_first)
        try_kernels(player, 0);
    double bytes = scratch_of(player, export, i) * workspace_variant(player->how->variant, i);
    allocator_replay_workspace(&player->allocator, bytes, &player->footprint, &player->error);
}

/* Makes the list of allocations and releases, by tick. */
static int32_t *make_schedule(const struct export *export)
{
    int32_t *schedule = calloc((size_t) export->ticks + 1, sizeof *schedule);
    for (size_t i = 0; schedule && i < export->n_tensors; i++) {
        schedule[export->tensors[i].first] = (int32_t)i + 1;
        if (export->tensors[i].last >= 0)
            schedule[export->tensors[i].last] = -((int32_t)i + 1);
    }
    for (size_t i = 0; schedule && i < export->n_holds; i++) {
        int64_t last = export->tensors[export->holds[i].tensor].last;
        if (last >= 0)
            schedule[last] = NOTHING;
    }
    return schedule;
}

/* Advances the lists to `tick`. */
static void seek_tick(struct player *player, const struct export *export, int64_t tick)
{
    player->next_conv = player->next_hold = 0;
    while (player->next_conv < export->n_convs && export->convs[player->next_conv].tick < tick)
        player->next_conv++;
    while (player->next_hold < export->n_holds && export->holds[player->next_hold].until < tick)
        player->next_hold++;
}

static void play_tick(
    struct player *player, const struct export *export, int64_t tick, int32_t what)
{
    for (; player->next_hold < export->n_holds && export->holds[player->next_hold].until <= tick;
         player->next_hold++)
        free_tensor(player, export, export->holds[player->next_hold].tensor);
    if (what > NOTHING)
        allocate_tensor(player, export, (size_t)(what - 1));
    else if (what < NOTHING)
        free_tensor(player, export, (size_t)(-what - 1));
    for (; player->next_conv < export->n_convs && export->convs[player->next_conv].tick <= tick;
         player->next_conv++)
        run_conv(player, export, player->next_conv);
}

/* cuBLAS's workspaces: of the thread that runs forward, and of autograd's. */
static void take_products(
    struct player *player, const struct export *export, const struct gpu_traits *gpu, int64_t tick)
{
    for (int i = 0; export->multiplies && i < 2; i++)
        if (export->multiplies_from[i] == tick || (export->multiplies_from[i] < 0 && tick == 0))
            take_block(player, (double)gpu->workspace_bytes);
}

/* Goes back to the start of the last iteration, if the storages at its end are those at its
 * start. */
static bool rewind_loop(struct player *player, const struct export *export)
{
    if (export->last_iteration < 0)
        return false;
    for (size_t i = 0; i < export->n_holds; i++)
        if (export->holds[i].until >= export->last_iteration && export->holds[i].heir < 0)
            return false;
    for (size_t i = 0; i < export->n_holds; i++) {
        if (export->holds[i].until < export->last_iteration)
            continue;
        player->handles[export->holds[i].tensor] = player->handles[export->holds[i].heir];
        player->handles[export->holds[i].heir] = -1;
    }
    return true;
}

static void play_export(struct player *player, const struct export *export,
    const struct gpu_traits *gpu, const int32_t *schedule)
{
    seek_tick(player, export, 0);
    for (int64_t tick = 0; tick < export->ticks && player->error == 0; tick++) {
        play_tick(player, export, tick, schedule[tick]);
        take_products(player, export, gpu, tick);
    }
    for (int i = 0; i < MORE_ITERATIONS && rewind_loop(player, export); i++) {
        seek_tick(player, export, export->last_iteration);
        for (int64_t tick = export->last_iteration; tick < export->ticks && player->error == 0;
             tick++)
            play_tick(player, export, tick, schedule[tick]);
    }
}

bool allocator_replay_knows_kernels(const struct export *export, double batch, const char *gpu_kind)
{
    bool same = gpu_kind && strcmp(export->measured.gpu, gpu_kind) == 0 &&
                (double)export->measured.batch == batch &&
                export->tries_kernels == export->measured.tries;
    for (size_t i = 0; same && i < export->n_convs; i++)
        same = export->convs[i].workspace.known;
    return same && export->n_convs > 0;
}

int allocator_replay_export(const struct export *export, const struct export_replay *how,
    const struct gpu_traits *gpu, struct fault *fault, struct footprint *ret_footprint)
{
    struct player player = {.how = how, .batch = how->batch};
    int32_t *schedule = make_schedule(export);
    player.handles = malloc(export->n_tensors * sizeof *player.handles);
    allocator_init(&player.allocator);
    for (size_t i = 0; player.handles && i < export->n_tensors; i++)
        player.handles[i] = -1;
    player.error = schedule && player.handles ? 0 : -ENOMEM;
    if (player.error == 0)
        play_export(&player, export, gpu, schedule);
    player.footprint.reserved = (double)player.allocator.reserved_peak;
    player.footprint.active = (double)player.allocator.active_peak;
    *ret_footprint = player.footprint;
    allocator_fini(&player.allocator);
    free(schedule);
    free(player.handles);
    if (player.error < 0)
        return player.error == -ENOMEM
                   ? fault_set(fault, ENOMEM, "out of memory")
                   : fault_set(fault, -player.error,
                         "at a batch of %.0f the export's tensors are more than any GPU holds",
                         how->batch);
    return 0;
}

int allocator_replay_range(const struct export *export, const struct export_replay *how,
    const struct gpu_traits *gpu, struct fault *fault, double *ret_range)
{
    double least = INFINITY, most = 0;
    for (uint32_t variant = 0; variant <= WORKSPACE_VARIANTS; variant++) {
        struct export_replay changed = *how;
        struct footprint footprint;
        changed.variant = variant;
        int r = allocator_replay_export(export, &changed, gpu, fault, &footprint);
        if (r < 0)
            return r;
        least = fmin(least, footprint.reserved);
        most = fmax(most, footprint.reserved);
    }
    *ret_range = least > 0 ? log(most / least) : 0;
    return 0;
}
