/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of the emulated machine, and how it stays right when processes are killed.
 *
 * An integral is stored twice, and world->turn says which copy is valid. To advance, the other copy
 * is computed completely, then one store changes `turn`. A process that is killed before that store
 * has changed nothing; one that is killed after it has finished:
 *
 *     turn 0    done_s = {100, ?}      valid: 100
 *               done_s = {100, 103}    still 100
 *     turn 1                           now 103
 *
 * Which processes are alive: each holds its own robust mutex while it lives. The next process that
 * tries to lock it learns from the kernel that the owner has died.
 */
#include "emulator/world.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator/gpu_list.h"
#include "emulator/suspension.h"
#include "sharing/mig_division.h"

static const char MAGIC[16] = "colloc-emulator";

/* CUDA 13.0, of driver 580, which docs/measured/ has the times of suspensions from. */
static const int CUDA_VERSION_EMULATED = 13000;

void activity_add(struct activity *total, const struct activity *rate, double factor)
{
    total->gract += rate->gract * factor;
    total->smact += rate->smact * factor;
    total->smocc += rate->smocc * factor;
    total->dram += rate->dram * factor;
    total->power_w += rate->power_w * factor;
    total->pcie_rx_mib += rate->pcie_rx_mib * factor;
}

/* A mutex of all processes that map the file. It is robust: when its owner dies, the next process
 * that locks it gets EOWNERDEAD instead of waiting for ever. */
static void init_lock(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* The size of the layout is in the file, so that another version of the emulator refuses it. */
static void init_world(struct world *world, const struct gpu_kinds *kinds, double speedup)
{
    memcpy(world->magic, MAGIC, sizeof(MAGIC));
    world->layout = sizeof(*world);
    world->speedup = speedup;
    world->created_us = clock_monotonic_us();
    world->constants = kinds->constants;
    world->cuda_version = CUDA_VERSION_EMULATED;
    init_lock(&world->lock);
    for (int i = 0; i < PROCESSES_MAX; i++)
        init_lock(&world->processes[i].alive);
}

static int map_file(int fd, const char *path, struct fault *fault, struct world **ret_world)
{
    void *at = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return fault_set(fault, errno, "%s: cannot map: %s", path, strerror(errno));
    *ret_world = at;
    return 0;
}

/* All users may write to the file: trainings of several users share the GPUs, as on a real machine,
 * and each of them changes the rates. */
static int fill_file(int fd, const char *path, const struct gpu_kinds *kinds, const char *gpus,
    double speedup, struct fault *fault)
{
    struct world *world = NULL;

    if (fchmod(fd, 0666) < 0 || ftruncate(fd, sizeof(struct world)) < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = map_file(fd, path, fault, &world);
    if (r < 0)
        return r;
    init_world(world, kinds, speedup);
    r = gpu_list_parse(kinds, gpus, world, fault);
    if (r == 0)
        world_solve(world);
    world_close(world);
    return r;
}

/* The file gets its name when it is complete. So no process maps half of a world, and processes
 * that have mapped an older one keep that. */
int world_create(const char *path, const struct gpu_kinds *kinds, const char *gpus, double speedup,
    struct fault *fault)
{
    char fresh[PATH_MAX];

    if (snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path) >= (int)sizeof(fresh))
        return fault_set(fault, ENAMETOOLONG, "%s: path too long", path);
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return fault_set(fault, errno, "%s: cannot create: %s", path, strerror(errno));
    int r = fill_file(fd, path, kinds, gpus, speedup, fault);
    if (r == 0 && rename(fresh, path) < 0)
        r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (r < 0)
        unlink(fresh);
    close(fd);
    return r;
}

/* The size of the struct identifies its layout: programs of another version of colloc would find
 * other members at the same offsets. */
static bool is_world(const struct world *world)
{
    return memcmp(world->magic, MAGIC, sizeof(MAGIC)) == 0 && world->layout == sizeof(*world);
}

/* The size is checked before the file is mapped: a short file would end the process when read. */
int world_open(const char *path, struct fault *fault, struct world **ret_world)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = fstat(fd, &st) == 0 && st.st_size == sizeof(struct world)
                ? map_file(fd, path, fault, ret_world)
                : -EINVAL;
    close(fd);
    if (r == 0 && !is_world(*ret_world)) {
        world_close(*ret_world);
        r = -EINVAL;
    }
    return r == -EINVAL
               ? fault_set(fault, EINVAL, "%s: not made by this version of colloc-emulator", path)
               : r;
}

void world_close(struct world *world)
{
    if (world)
        munmap(world, sizeof(*world));
}

double world_now_s(const struct world *world)
{
    return world->now_s[world->turn];
}

int world_first_unit(const struct world *world, int g)
{
    const struct gpu *gpu = &world->gpus[g];
    int u = gpu->mig ? 1 : 0;

    while (u < gpu->unit_count - 1 && gpu->units[u].state != UNIT_READY)
        u++;
    return u;
}

struct unit *world_unit(struct world *world, struct seat seat)
{
    return &world->gpus[seat.gpu].units[seat.unit];
}

const struct gpu_kind *world_kind(const struct world *world, int gpu)
{
    return &world->gpus[gpu].kind;
}

const struct activity *world_sum(const struct world *world, struct seat seat)
{
    return &world->gpus[seat.gpu].units[seat.unit].sum[world->turn];
}

const struct mig_profile *unit_profile(const struct gpu *gpu, const struct unit *unit)
{
    return unit->instance ? &gpu->kind.profiles[gpu->instances[unit->instance].profile] : NULL;
}

const char *unit_name(const struct gpu *gpu, const struct unit *unit, char buffer[UNIT_NAME_SIZE])
{
    const struct mig_profile *profile = unit_profile(gpu, unit);
    char name[MIG_COMPUTE_NAME_SIZE];

    snprintf(buffer, UNIT_NAME_SIZE, "%s",
        profile ? mig_compute_name(profile, unit->slices, name) : gpu->kind.name);
    return buffer;
}

struct activity world_instance_sum(const struct world *world, int g, int instance)
{
    const struct gpu *gpu = &world->gpus[g];
    const struct mig_profile *profile = &gpu->kind.profiles[gpu->instances[instance].profile];
    struct activity sum = {0};

    for (int u = 1; u < gpu->unit_count; u++) {
        const struct unit *unit = &gpu->units[u];
        const struct activity *of_unit = &unit->sum[world->turn];
        if (unit->instance != instance || unit->state == UNIT_GONE)
            continue;
        double part = mig_compute_part(profile, unit->slices);
        sum.gract += part * of_unit->gract;
        sum.smact += part * of_unit->smact;
        sum.smocc += part * of_unit->smocc;
        sum.dram += part * of_unit->dram;
        sum.power_w += of_unit->power_w;
        sum.pcie_rx_mib += of_unit->pcie_rx_mib;
    }
    return sum;
}

double process_done_s(const struct world *world, const struct process *p)
{
    return p->done_s[world->turn];
}

bool process_sits_on(const struct process *p, struct seat seat)
{
    for (int i = 0; i < p->seat_count; i++)
        if (p->seats[i].gpu == seat.gpu && p->seats[i].unit == seat.unit)
            return true;
    return false;
}

/* A suspended process has no memory on a GPU, so it loses nothing with one. */
bool process_lost_gpu(const struct world *world, const struct process *p)
{
    for (int i = 0; !p->off_gpu && i < p->seat_count; i++)
        if (world->gpus[p->seats[i].gpu].trouble & TROUBLE_LOST ||
            world->gpus[p->seats[i].gpu].units[p->seats[i].unit].state != UNIT_READY)
            return true;
    return false;
}

/* Its server has ended: the next call of a client fails, as when NVIDIA's server was killed. */
bool process_lost_mps(const struct world *world, const struct process *p)
{
    for (int i = 0; i < world->process_end; i++)
        if (world->processes[i].present && world->processes[i].pid == p->mps_server)
            return false;
    return p->mps_server != 0;
}

/*
 * Advances all integrals to now, at the present rates.
 *
 * The fence keeps the compiler from storing `turn` before the other values. A fence for this thread
 * suffices: a kill comes between two instructions of the process, and other processes read only
 * after they have taken the lock.
 */
static void advance_to_now(struct world *world)
{
    unsigned from = world->turn, to = !from;
    double now = (double)(clock_monotonic_us() - world->created_us) / SECOND_US * world->speedup;
    double step = fmax(0, now - world->now_s[from]);

    world->now_s[to] = world->now_s[from] + step;
    for (int g = 0; g < world->gpu_count; g++) {
        for (int u = 0; u < world->gpus[g].unit_count; u++) {
            struct unit *unit = &world->gpus[g].units[u];
            unit->sum[to] = unit->sum[from];
            activity_add(&unit->sum[to], &unit->rate, step);
        }
    }
    for (int i = 0; i < world->process_end; i++) {
        struct process *p = &world->processes[i];
        p->done_s[to] = p->done_s[from] + p->speed * step;
    }
    atomic_signal_fence(memory_order_seq_cst);
    world->turn = to;
}

/* The mutex of a process that is alive cannot be locked. */
static bool has_died(struct process *p)
{
    int r = pthread_mutex_trylock(&p->alive);

    if (r == EBUSY)
        return false;
    if (r == EOWNERDEAD)
        pthread_mutex_consistent(&p->alive);
    pthread_mutex_unlock(&p->alive);
    return true;
}

/* Removes the processes that have died. Returns whether there were any. Free slots at the end of
 * the table are given up, so that loops over it stay short. */
static bool remove_dead(struct world *world)
{
    bool changed = false;

    for (int i = 0; i < world->process_end; i++) {
        struct process *p = &world->processes[i];
        if (p->present && has_died(p)) {
            p->present = false;
            changed = true;
        }
    }
    while (world->process_end > 0 && !world->processes[world->process_end - 1].present)
        world->process_end--;
    return changed;
}

/* First the integrals advance at the old rates, then dead processes are removed and the rates
 * change. If the last owner of the lock died, it may have changed something without calling
 * world_solve: that is done for it. */
void world_enter(struct world *world)
{
    bool owner_died = pthread_mutex_lock(&world->lock) == EOWNERDEAD;

    if (owner_died)
        pthread_mutex_consistent(&world->lock);
    advance_to_now(world);
    bool died = remove_dead(world);
    if (suspension_settle(world) || died || owner_died)
        world_solve(world);
}

void world_leave(struct world *world)
{
    pthread_mutex_unlock(&world->lock);
}

/* Returns a free slot whose mutex the caller now holds, or NULL. */
static struct process *claim_slot(struct world *world)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct process *p = &world->processes[i];
        if (p->present)
            continue;
        int r = pthread_mutex_trylock(&p->alive);
        if (r == EBUSY)
            continue;
        if (r == EOWNERDEAD)
            pthread_mutex_consistent(&p->alive);
        if (i >= world->process_end)
            world->process_end = i + 1;
        return p;
    }
    return NULL;
}

/* `present` is stored last: a process that is killed before is not in the table. */
struct process *world_join(struct world *world, enum role role, const struct seat *seats, int count)
{
    struct process *p = claim_slot(world);

    if (!p)
        return NULL;
    p->role = role;
    p->pid = getpid();
    p->mps_server = 0;
    p->terminated = p->faulted = false;
    p->cuda_state = CUDA_RUNNING;
    p->copy.is_under_way = p->off_gpu = p->has_profiler = p->has_managed = false;
    p->limit_bytes = 0;
    p->share = 1;
    p->demand = (struct demand){0};
    p->pcie_rx_mib = 0;
    p->speed = 0;
    p->done_s[0] = p->done_s[1] = 0;
    p->segment_count = 0;
    p->seat_count = count;
    memcpy(p->seats, seats, (size_t)count * sizeof(*seats));
    atomic_signal_fence(memory_order_seq_cst);
    p->present = true;
    return p;
}

void world_part(struct world *world, struct process *p)
{
    p->present = false;
    pthread_mutex_unlock(&p->alive);
    remove_dead(world);
    world_solve(world);
}
