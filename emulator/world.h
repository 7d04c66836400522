/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated machine: one file that all participants map (training processes, the NVML library,
 * the MPS server, the tool). There is no daemon. A process that reads or changes anything takes the
 * lock; world_enter then removes processes that have died and advances the integrals to now.
 * Between two changes all rates are constant, so nothing has to run meanwhile.
 *
 * Contract:
 * 1. Any process may be killed at any instant. The next world_enter repairs the file.
 * 2. Each process in the table holds its own robust mutex until it ends, so a zombie or a reused
 *    pid is not mistaken for it.
 * 3. Numbers that must not be half-updated are stored twice; one store of `turn` switches over.
 * 4. After a change of demands, residents, shares or troubles, world_solve is called before
 *    world_leave.
 */
#ifndef COLLOC_EMULATOR_WORLD_H
#define COLLOC_EMULATOR_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "sharing/gpu_kind.h"

/*
 * The activity of a GPU, as fractions 0..1, and watts: its present rates, or their integrals over
 * emulated time.
 */
struct activity {
    double gract; /* time with any kernel resident */
    double smact; /* SM-time with a warp resident */
    double smocc; /* resident warps of those possible */
    double dram;  /* memory bandwidth */
    double power_w;
    double pcie_rx_mib; /* per second, to the GPU */
};

/* total += rate * factor, field by field. */
void activity_add(struct activity *total, const struct activity *rate, double factor);

enum {
    GPUS_MAX = 64,
    UNITS_MAX = 1 + MIG_COMPUTE_SLICES_MAX,
    INSTANCES_MAX = 1 + MIG_COMPUTE_SLICES_MAX,
    PROCESSES_MAX = 512,
    SEATS_MAX = GPUS_MAX,
    SEGMENTS_MAX = 512
};

/* Faults that can be injected into a GPU. */
enum trouble {
    TROUBLE_LOST = 1 << 0,
    TROUBLE_NO_GPM = 1 << 1,
    TROUBLE_NO_POWER = 1 << 2,
    TROUBLE_NO_ENERGY = 1 << 3,
    TROUBLE_NO_UTILIZATION = 1 << 4,
    TROUBLE_NO_PROCESSES = 1 << 5,
    TROUBLE_NO_MEMORY = 1 << 6,
    TROUBLE_NO_TEMPERATURE = 1 << 7,
    TROUBLE_REMAP_FAILED = 1 << 8,
    TROUBLE_REMAP_PENDING = 1 << 9,
    TROUBLE_HANG = 1 << 10, /* NVML does not return */
    TROUBLE_NO_EVENTS = 1 << 11,
    TROUBLE_ONE_PROCESS = 1 << 12,      /* compute mode Exclusive_Process */
    TROUBLE_HIDDEN_PROCESSES = 1 << 13, /* none is listed, as from within a container */
};

/* A MIG GPU instance: the memory, and the SMs, of the compute instances in it. */
struct gpu_instance {
    bool is_made;
    int profile; /* its place in the kind's list */
    int start;   /* the first of its memory slices */
};

/* The unit that a task runs on: unit 0 of a GPU is the whole GPU, the others are its MIG compute
 * instances. */
struct unit {
    enum unit_state {
        UNIT_READY,
        UNIT_EMPTY, /* removed for a while, no MIG device: its slices stay in use */
        UNIT_GONE   /* destroyed; its place in the list may be used again */
    } state;
    int instance;           /* its GPU instance: a place in gpu->instances; 0 for unit 0 */
    int number;             /* among the compute instances of that, from 0 on */
    int slices;             /* of compute, of those of the GPU instance */
    double sms, bandwidth;  /* fractions of the GPU's */
    int64_t total_bytes;    /* as NVML shows */
    int64_t reserved_bytes; /* of the total, for the driver */
    char uuid[48];
    struct activity rate;
    struct activity sum[2]; /* integral over emulated seconds; valid is sum[world->turn] */
};

struct gpu {
    struct gpu_kind kind;
    unsigned trouble;        /* enum trouble */
    unsigned xid, xid_count; /* the last Xid, and how many there were */
    unsigned clock_reasons;  /* NVML's bits that hold clocks down */
    int64_t ecc_uncorrected;
    bool mig;                /* MIG is enabled: only instances can be worked on */
    unsigned instances_made; /* by NVML so far, so that each has another UUID */
    struct gpu_instance instances[INSTANCES_MAX]; /* by NVML's number, from 1 on */
    int unit_count;                               /* with those that are gone */
    int64_t foreign_bytes;                        /* memory of an external process, */
    pid_t foreign_pid;      /* which NVML lists under this number, alive or not; 0: 1 */
    int64_t foreign_offset; /* where it lies, where memory is linear */
    int64_t restore_bytes;  /* what that process takes when the next restore begins there */
    struct unit units[UNITS_MAX];
};

struct seat {
    int gpu, unit;
};

struct segment {
    struct seat seat;
    int64_t offset; /* in the unit's address space, where memory is linear */
    int64_t size;
};

enum role { ROLE_TRAINING, ROLE_MPS_SERVER };

/* What cuCheckpointProcessGetState says of a process, with its numbers. */
enum cuda_state { CUDA_RUNNING, CUDA_LOCKED, CUDA_CHECKPOINTED, CUDA_FAILED };

/* A copy of a process's GPU memory to the host or back that is under way (suspension.h). */
struct copy {
    bool is_under_way;
    enum cuda_state then; /* the state when it ends */
    double end_s;         /* in emulated time */
};

struct process {
    pthread_mutex_t alive; /* locked by the process itself from world_join to its end */
    bool present;
    enum role role;
    pid_t pid;
    pid_t mps_server; /* of an MPS client, else 0 */
    bool terminated;  /* by MPS */
    bool faulted;     /* its fault, or that of another client of its MPS server, stopped its work */
    enum cuda_state cuda_state;
    struct copy copy;
    bool off_gpu;         /* its memory lies on the host: its segments take no GPU memory */
    bool has_profiler;    /* CUPTI is at work in it: the driver does not lock it */
    bool has_managed;     /* it has managed memory: the driver locks it, but copies nothing */
    int64_t limit_bytes;  /* of memory on each seat, of an MPS client; 0: none */
    double share;         /* of the SMs, which an MPS client is held to: 0..1 */
    struct demand demand; /* complete */
    double pcie_rx_mib;   /* per second at speed 1 */
    double speed;
    int64_t seen_us;       /* when it last did something, by clock_monotonic_us */
    double done_s[2];      /* progress in seconds of a solo run; valid is done_s[world->turn] */
    _Atomic uint32_t wake; /* a futex: changes when speed does, or when a GPU is lost */
    int seat_count;
    struct seat seats[SEATS_MAX];
    int segment_count;
    struct segment segments[SEGMENTS_MAX];
};

struct world {
    char magic[16];
    uint32_t layout; /* sizeof(struct world) */
    pthread_mutex_t lock;
    double speedup; /* emulated seconds per real second */
    int64_t created_us;
    struct gpu_constants constants;
    int cuda_version;          /* of the driver, as cuDriverGetVersion */
    int64_t host_memory_bytes; /* for the memory of suspended processes; 0: any */
    bool checkpoint_hangs;     /* cuCheckpointProcessCheckpoint does not return */
    bool checkpoint_fails;     /* it returns an error, and the process stays locked */
    bool checkpoint_is_mute;   /* it does so, and then the state of a locked one is not told */
    int numa_nodes;            /* over which GPUs and CPUs are spread, in order; 0: not reported */
    unsigned char nvlinks[GPUS_MAX][GPUS_MAX]; /* between two GPUs */
    int gpu_count;
    unsigned turn;
    double now_s[2]; /* emulated time; valid is now_s[turn] */
    int process_end; /* no process is present from here on */
    struct gpu gpus[GPUS_MAX];
    struct process processes[PROCESSES_MAX];
};

/*
 * Makes the file anew; other processes may still hold an old one.
 *
 * kinds:   what `gpus` may name, and the constants of the model; copied into the file.
 * gpus:    "4xA100-40GB", "1xA100-40GB:3g.20gb+2g.10gb,H200".
 * speedup: emulated seconds per real second.
 *
 * Returns 0, -EINVAL (a part of `gpus` is wrong) or -errno of the file, with a fault.
 */
int world_create(const char *path, const struct gpu_kinds *kinds, const char *gpus, double speedup,
    struct fault *fault);

/* Maps the file. Returns 0, or -EINVAL (made by another version) or -errno, with a fault. */
int world_open(const char *path, struct fault *fault, struct world **ret_world);

/* Unmaps the file; `world` may be NULL. */
void world_close(struct world *world);

/* Takes and releases the lock; after world_enter all is up to date. Hold it for microseconds. */
void world_enter(struct world *world);
void world_leave(struct world *world);

/* ---- the functions below are called between world_enter and world_leave ---- */

/* Returns emulated seconds since the file was made. */
double world_now_s(const struct world *world);
/* Returns the integrals of a unit over emulated time. */
const struct activity *world_sum(const struct world *world, struct seat seat);
const struct gpu_kind *world_kind(const struct world *world, int gpu);
struct unit *world_unit(struct world *world, struct seat seat);

/* Returns the profile of the GPU instance that a unit is in; NULL: it is a whole GPU. */
const struct mig_profile *unit_profile(const struct gpu *gpu, const struct unit *unit);
/* Writes nvidia-smi's name of a compute instance, "1c.3g.20gb", or the kind of a whole GPU. Returns
 * `buffer`. */
enum { UNIT_NAME_SIZE = 32 };
const char *unit_name(const struct gpu *gpu, const struct unit *unit, char buffer[UNIT_NAME_SIZE]);
/* Returns the integrals of a GPU instance: means over its SMs and its bandwidth, and sums of the
 * rest. */
struct activity world_instance_sum(const struct world *world, int gpu, int instance);

/* Returns the progress of a process, in seconds of running alone. */
double process_done_s(const struct world *world, const struct process *p);
bool process_sits_on(const struct process *p, struct seat seat);

/* Returns whether a GPU or MIG instance of the process is gone. */
bool process_lost_gpu(const struct world *world, const struct process *p);

/* Returns whether the process is an MPS client whose server is gone. */
bool process_lost_mps(const struct world *world, const struct process *p);

/*
 * Adds the calling process to the table, without demand or memory. It leaves with world_part, or
 * when the calling thread ends, by whatever cause.
 *
 * Returns its entry, or NULL when the table is full.
 */
struct process *world_join(
    struct world *world, enum role role, const struct seat *seats, int count);
void world_part(struct world *world, struct process *p);

/* Returns the first unit of a GPU that processes can use: the whole GPU, or its first instance. */
int world_first_unit(const struct world *world, int gpu);

/* Computes all speeds and rates, and wakes the processes whose speed changed. */
void world_solve(struct world *world);

/* Wakes the process from its wait. */
void world_wake(struct process *p);

#endif
