/* The laws of a GPU that tasks share: memory, speed, power. Pure; the formulae and their sources are in gpu_model.c. */
#ifndef COLLOC_SIM_GPU_MODEL_H
#define COLLOC_SIM_GPU_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* The constants of the laws: see data/gpu-kinds.txt. */
struct gpu_laws {
    int64_t context_bytes;
    double startup_s, ramp_s;
    double switch_cost, bandwidth_cost;
    double spread;
};

/* What a task does to each of its GPUs while it has them to itself: fractions of the whole GPU, and watts. */
struct demand {
    double gract;   /* time with any kernel resident */
    double smact;   /* SM-time with a warp resident */
    double smocc;   /* resident warps of those possible */
    double dram;    /* memory bandwidth */
    double power_w; /* above that of a GPU that is awake */
};

/* ---- memory ---- */

struct gpu_memory {
    int64_t capacity_bytes, used_bytes;
    struct segment {
        int64_t at, size;
        uint64_t owner;
    } * segments; /* by address */
    int n, room;
};

void gpu_memory_fini(struct gpu_memory *memory);

/* One more segment for `owner`. 0, GPU_MEMORY_FULL when no hole is large enough, or -ENOMEM. */
enum { GPU_MEMORY_FULL = 1 };
int gpu_memory_take(struct gpu_memory *memory, uint64_t owner, int64_t bytes);
void gpu_memory_release(struct gpu_memory *memory, uint64_t owner);
int64_t gpu_memory_of(const struct gpu_memory *memory, uint64_t owner);

/* A task takes its memory in so many parts, the context first. */
enum { MEMORY_PARTS = 7 };

/* The size of part `i` of a task that takes `bytes` in all. The parts add up to `bytes`. */
int64_t gpu_memory_part(const struct gpu_laws *laws, int64_t bytes, int i);

/* When part `i` is asked for, in seconds from the start of an attempt that would take `solo_s` alone. */
double gpu_memory_due_s(const struct gpu_laws *laws, double solo_s, int i);

/* ---- speed and power ---- */

struct sharer {
    struct demand demand;
    bool mps;     /* a client of MPS; otherwise it takes turns with the others */
    double speed; /* the answer of gpu_share: 1 is as alone on a whole GPU */
};

/* `sms` and `bandwidth`: the fractions of a whole GPU that they share, less than 1 for a MIG instance. */
void gpu_share(const struct gpu_laws *laws, double sms, double bandwidth, struct sharer *sharers, int n);

/* What is not known of a demand (NAN) follows from its SMACT; `work_w` is what full activity adds. */
void gpu_demand_complete(struct demand *demand, double work_w);

#endif
