/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-pretend-train: a training process as others observe it, on emulated GPUs. It takes memory
 * in steps, makes progress at the speed that the model gives it beside its co-residents, prints
 * epochs, and fails with the messages of its framework.
 *
 * It never polls fast. It computes the time of its next event at the present speed (a step of
 * memory, the end of an epoch) and sleeps on its futex until then; every change of its speed wakes
 * it:
 *
 *     run_step     fault? lost GPU? memory due? epochs done?   -> when the next is due
 *     wait_for     sleep until then, or until world_solve changes the speed
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/memory.h"
#include "emulator/mps_channel.h"
#include "emulator/pretend_options.h"
#include "emulator/visible.h"
#include "sharing/memory_steps.h"

/* What an input pipeline sends to its GPU per second of a training alone. Assumed. */
static const double PCIE_RX_MIB = 400;

/* Real seconds. A killed process wakes no other: each enters the world this often. Chosen. */
static const double POLL_S = 0.1;

struct run {
    const struct pretend_options *options;
    struct world *world;
    struct process *self;
    pid_t mps_server; /* 0: it takes turns with others */
    double share;
    double started_s;
    double locked_since_s; /* when its CUDA calls began to wait; negative: they do not */
    int steps_taken;       /* of its memory, sharing/memory_steps.h */
    int64_t leaked_bytes;
    int epochs_done;
    int steps_done;
    char *message; /* printed when it fails; NULL: the CUDA error */
    size_t message_size;
};

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
    ended_by = number;
}

/* For --catch-term, as of a training that writes a checkpoint before it ends. Without it SIGTERM
 * kills the process. */
static void catch_sigterm(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGTERM, &action, NULL);
}

static double step_due_s(const struct run *run)
{
    return run->started_s + memory_step_due_s(run->options->ramp_s, run->steps_taken);
}

/* Each step is rounded up, so it is limited to the rest; the last step is the whole rest. */
static int64_t step_bytes(const struct run *run, int step)
{
    int64_t left = run->options->memory_bytes - memory_of(run->self, run->self->seats[0]);
    int64_t bytes = memory_step_bytes(
        run->options->memory_bytes, run->world->constants.context_bytes, step);

    return step == MEMORY_STEPS - 1 || bytes > left ? left : bytes;
}

/* A data-parallel training takes the same memory on each of its GPUs; the first with too little
 * memory ends it, with the message that its framework would print. */
static int take_everywhere(struct run *run, int64_t bytes)
{
    struct process *self = run->self;

    for (int i = 0; bytes > 0 && i < self->seat_count; i++) {
        if (memory_take(run->world, self, self->seats[i], bytes) < 0) {
            FILE *out = open_memstream(&run->message, &run->message_size);
            if (out) {
                crash_message_oom(out, run->options->framework, run->world, self, i, bytes);
                fclose(out);
            }
            return -ENOMEM;
        }
    }
    return 0;
}

/* Memory grows in steps over the ramp, as the layers of a network are first used. A step that is
 * late is taken at once, so that the emulated machine's speed changes nothing. */
static int take_due_steps(struct run *run)
{
    int r = 0;

    while (
        r == 0 && run->steps_taken < MEMORY_STEPS && world_now_s(run->world) >= step_due_s(run)) {
        r = take_everywhere(run, step_bytes(run, run->steps_taken));
        run->steps_taken++;
    }
    return r;
}

/* Allocates the leak in pieces, as an allocator would, when they are due. */
static int leak_memory(struct run *run)
{
    static const int64_t PIECE_BYTES = 256 * MIB;
    double due = run->options->leak_mib_per_s * MIB * (world_now_s(run->world) - run->started_s);
    int r = 0;

    while (r == 0 && due - (double)run->leaked_bytes >= (double)PIECE_BYTES) {
        r = take_everywhere(run, PIECE_BYTES);
        run->leaked_bytes += PIECE_BYTES;
    }
    return r;
}

/* A fault of an MPS client ends the clients of its server that are on one of its GPUs. */
static bool stops_with(const struct process *p, const struct process *faulty)
{
    bool same_server = p->present && p->mps_server && p->mps_server == faulty->mps_server;

    for (int i = 0; same_server && i < faulty->seat_count; i++)
        if (process_sits_on(p, faulty->seats[i]))
            return true;
    return p == faulty;
}

/* An operation that the GPU cannot execute stops all clients of the MPS server on that GPU. */
static void do_fault(struct run *run)
{
    for (int i = 0; i < run->world->process_end; i++) {
        struct process *p = &run->world->processes[i];
        if (stops_with(p, run->self)) {
            p->faulted = true;
            world_wake(p);
        }
    }
}

static struct demand complete_demand(const struct run *run)
{
    const struct gpu_kind *kind = world_kind(run->world, run->self->seats[0].gpu);
    struct demand demand = run->options->demand;

    if (!isnan(demand.power_w))
        demand.power_w = fmax(0, demand.power_w - kind->awake_w);
    demand_complete(&demand, kind->work_w);
    return demand;
}

/* In Exclusive_Process mode a GPU lets in one process, or the clients of one MPS server. */
static bool is_taken(const struct run *run, const struct seat *seats)
{
    for (int i = 0; i < run->world->process_end; i++) {
        const struct process *p = &run->world->processes[i];
        bool other = p->present && p->role == ROLE_TRAINING &&
                     !(p->mps_server && p->mps_server == run->mps_server);
        for (int s = 0; other && s < run->options->gpus; s++)
            if ((run->world->gpus[seats[s].gpu].trouble & TROUBLE_ONE_PROCESS) &&
                process_sits_on(p, seats[s]))
                return true;
    }
    return false;
}

/* A client of MPS has no GPU or MIG instance but those of its server. */
static bool server_lacks(const struct run *run, const struct seat *seats)
{
    for (int i = 0; run->mps_server && i < run->world->process_end; i++) {
        const struct process *p = &run->world->processes[i];
        for (int s = 0; p->present && p->pid == run->mps_server && s < run->options->gpus; s++)
            if (!process_sits_on(p, seats[s]))
                return true;
    }
    return false;
}

/*
 * Takes the context's memory, as cudaInit does; then the kernels run. Between world_enter and
 * world_leave.
 *
 * Returns 0, -ENODEV (its MPS server does not have the GPU), -EBUSY (another process uses the GPU
 * exclusively), -EMFILE (too many processes), or -ENOMEM.
 */
static int begin_training(struct run *run, const struct seat *seats)
{
    if (server_lacks(run, seats))
        return -ENODEV;
    if (is_taken(run, seats))
        return -EBUSY;
    run->self = world_join(run->world, ROLE_TRAINING, seats, run->options->gpus);
    if (!run->self)
        return -EMFILE;
    run->self->limit_bytes = run->mps_server ? mps_memory_limit() : 0;
    int64_t context_bytes = memory_step_bytes(
        run->options->memory_bytes, run->world->constants.context_bytes, 0);
    if (take_everywhere(run, context_bytes) < 0)
        return -ENOMEM;
    run->steps_taken = 1;
    run->started_s = world_now_s(run->world);
    run->locked_since_s = -1;
    run->self->seen_us = clock_monotonic_us();
    run->self->has_profiler = run->options->has_profiler;
    run->self->has_managed = run->options->has_managed;
    run->self->demand = complete_demand(run);
    run->self->pcie_rx_mib = PCIE_RX_MIB;
    run->self->mps_server = run->mps_server;
    run->self->share = run->share;
    world_solve(run->world);
    return 0;
}

static double epoch_end_s(const struct run *run)
{
    return run->options->seconds * (run->epochs_done + 1) / run->options->epochs;
}

/* Real seconds until the next event is due at the present speed. */
static double next_s(const struct run *run)
{
    double due = (epoch_end_s(run) - process_done_s(run->world, run->self)) / run->self->speed;

    if (run->steps_taken < MEMORY_STEPS)
        due = fmin(due, step_due_s(run) - world_now_s(run->world));
    return fmin(POLL_S, fmax(0, due) / run->world->speedup + 1e-6);
}

static void wait_for(struct process *self, uint32_t seen, double real_s)
{
    struct timespec timeout = {(time_t)real_s, (long)(fmod(real_s, 1) * 1e9)};

    syscall(SYS_futex, &self->wake, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

static void count_epochs(struct run *run)
{
    double done_s = process_done_s(run->world, run->self);

    while (run->epochs_done < run->options->epochs && done_s >= epoch_end_s(run) - 1e-6)
        run->epochs_done++;
}

static void print_epochs(const struct run *run, int from)
{
    for (int i = from + 1; i <= run->epochs_done; i++)
        printf("Epoch %d/%d: loss %.4f\n", i, run->options->epochs, 2.3 / sqrt(i));
    fflush(stdout);
}

/* As colloc.step() does; without the preloaded library nothing is reported. */
static void report_steps(struct run *run, double done_s)
{
    typedef int report_function(long steps);
    report_function *report = (report_function *)(uintptr_t)dlsym(RTLD_DEFAULT, "colloc_step");
    int done = (int)(run->options->steps * fmin(1, done_s / run->options->seconds));

    if (report && done > run->steps_done)
        report(done - run->steps_done);
    run->steps_done = done;
}

/* Returns 0, or -errno for a fault from outside. */
static int check_faults(const struct run *run)
{
    if (process_lost_gpu(run->world, run->self))
        return -EIO;
    if (process_lost_mps(run->world, run->self))
        return -EPIPE;
    if (run->self->faulted)
        return -EFAULT;
    return run->self->terminated ? -ECANCELED : 0;
}

/* While it is locked or suspended, each of its CUDA calls waits: its next step is due that much
 * later. Returns whether it is locked or suspended. */
static bool is_held(struct run *run)
{
    double now_s = world_now_s(run->world);
    bool held = run->self->cuda_state != CUDA_RUNNING;

    if (held && run->locked_since_s < 0)
        run->locked_since_s = now_s;
    if (!held && run->locked_since_s >= 0) {
        run->started_s += now_s - run->locked_since_s;
        run->locked_since_s = -1;
    }
    return held;
}

/*
 * Does what is due, then waits until the next event is due.
 *
 * Returns 0: the training goes on; 1: it has ended; -errno: it fails.
 */
static int run_step(struct run *run)
{
    int epochs_before = run->epochs_done;

    world_enter(run->world);
    run->self->seen_us = clock_monotonic_us();
    bool held = is_held(run);
    if (!held && run->options->fault_s >= 0 &&
        process_done_s(run->world, run->self) >= run->options->fault_s)
        do_fault(run);
    int r = check_faults(run);
    if (r == 0 && !held)
        r = take_due_steps(run);
    if (r == 0 && !held)
        r = leak_memory(run);
    count_epochs(run);
    double done_s = process_done_s(run->world, run->self);
    double wait_s = next_s(run);
    uint32_t seen = atomic_load(&run->self->wake);
    if (r == 0 && (run->epochs_done == run->options->epochs || ended_by))
        r = 1;
    if (r != 0)
        world_part(run->world, run->self);
    world_leave(run->world);

    print_epochs(run, epochs_before);
    if (run->options->steps > 0)
        report_steps(run, done_s);
    if (r == 0)
        wait_for(run->self, seen, wait_s);
    return r;
}

static const char NO_DEVICE[] = "no CUDA-capable device is detected";

/* The failed call's message: CUDA's words, which are the same in all frameworks. */
static const char *cuda_error(int r)
{
    switch (r) {
    case -EPIPE:
        return "the remote procedural call between the MPS server and the MPS client failed";
    case -ECANCELED:
        return "the MPS client has been terminated by the server";
    case -EFAULT:
        return "an illegal memory access was encountered";
    case -ENODEV:
        return NO_DEVICE;
    case -EAGAIN:
        return "the MPS server is not ready to accept new MPS client requests";
    case -EBUSY:
        return "CUDA-capable device(s) is/are busy or unavailable";
    case -EMFILE:
        return "out of resources: too many processes";
    default:
        return "unspecified launch failure";
    }
}

static int print_failure(struct run *run, int r)
{
    if (run->message)
        fputs(run->message, stderr);
    else
        crash_message_cuda(stderr, run->options->framework, cuda_error(r));
    free(run->message);
    return 1;
}

/* The first --gpus of those in CUDA_VISIBLE_DEVICES. */
static int find_gpus(struct run *run, struct seat *seats)
{
    int count = visible_seats(run->world, getenv("CUDA_VISIBLE_DEVICES"), seats);

    if (count >= run->options->gpus)
        return 0;
    if (count == 0)
        crash_message_cuda(stderr, run->options->framework, NO_DEVICE);
    else
        crash_message_cuda(stderr, run->options->framework, "invalid device ordinal");
    return -ENODEV;
}

static void print_gpus(const struct run *run)
{
    for (int i = 0; i < run->self->seat_count; i++)
        printf("Using %s (%s)\n", world_unit(run->world, run->self->seats[i])->uuid,
            run->mps_server ? "MPS" : "streams");
    fflush(stdout);
}

/* Enlists with MPS first: where a control daemon runs, libcuda connects to it before anything
 * else. */
static int run_training(struct run *run)
{
    struct seat seats[SEATS_MAX];

    if (find_gpus(run, seats) < 0)
        return 1;
    run->share = 1;
    if (mps_enlist(&run->mps_server, &run->share) < 0)
        return print_failure(run, -EAGAIN);
    world_enter(run->world);
    int r = begin_training(run, seats);
    if (r < 0 && run->self)
        world_part(run->world, run->self);
    world_leave(run->world);
    if (r == 0)
        print_gpus(run);
    while (r == 0)
        r = run_step(run);
    if (ended_by)
        return 0;
    return r < 0 ? print_failure(run, r) : run->options->exit_code;
}

static void start_up(double real_s)
{
    struct timespec wait = {(time_t)real_s, (long)(fmod(real_s, 1) * 1e9)};

    nanosleep(&wait, NULL);
}

/* Options that are not given have the values of the simulator. */
static void follow_constants(struct pretend_options *options, const struct gpu_constants *constants)
{
    if (isnan(options->ramp_s))
        options->ramp_s = constants->ramp_s;
    options->ramp_s = fmin(options->ramp_s, options->seconds / 2);
    if (isnan(options->startup_s))
        options->startup_s = constants->startup_s;
}

/* Start-up is real time divided by the speed of the emulated clock: importing a framework takes no
 * GPU. */
int main(int argc, char **argv)
{
    struct pretend_options options;
    struct run run = {.options = &options};
    struct fault fault = {""};
    const char *path = getenv("COLLOC_EMULATOR");

    int r = pretend_options_parse(argc, argv, &options, &fault);
    if (r > 0)
        return 0;
    if (r == 0 && !path)
        r = fault_set(&fault, ENOENT,
            "COLLOC_EMULATOR is not set: create GPUs with 'colloc-emulator create' first");
    if (r == 0)
        r = world_open(path, &fault, &run.world);
    if (r < 0) {
        fprintf(stderr, "colloc-pretend-train: %s\n", fault.text);
        return 2;
    }
    follow_constants(&options, &run.world->constants);
    if (options.catches_term)
        catch_sigterm();
    start_up(options.startup_s / run.world->speedup);
    int status = ended_by ? 0 : run_training(&run);
    world_close(run.world);
    return status;
}
