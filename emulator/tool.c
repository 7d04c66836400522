/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-emulator: creates emulated GPUs, prints their state, and injects faults. All three work on
 * the file of the world (world.h), which the running programs map: a fault that is set here is seen
 * by their next call.
 *
 *     colloc-emulator create --gpus=2xA100-40GB /tmp/gpus
 *     export COLLOC_EMULATOR=/tmp/gpus      for this program, libnvidia-ml, the MPS programs, ...
 *     colloc-emulator set 1 lost=on         GPU 1 falls off the bus
 *     colloc-emulator show
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"
#include "emulator/memory.h"
#include "emulator/nvml_interface.h"

static const char HELP[] =
    "Usage: colloc-emulator create --gpus=LIST [--gpu-kinds=FILE] [--speed=X] PATH\n"
    "       colloc-emulator show\n"
    "       colloc-emulator set GPU KEY=VALUE...\n"
    "       colloc-emulator set machine KEY=VALUE...\n\n"
    "create  creates emulated GPUs in the file PATH; programs find it by $COLLOC_EMULATOR.\n"
    "        LIST: 4xA100-40GB, 2xA100-80GB,1xH200, or with MIG 1xA100-40GB:3g.20gb+2g.10gb+1g.5gb;\n"
    "        1c.3g.20gb+2c.3g.20gb are compute instances that share one GPU instance\n"
    "        A wrong kind is answered with all that are known. --speed: emulated seconds per real second\n"
    "        (default 1)\n"
    "        --gpu-kinds: further kinds of GPUs, and constants of the model, as in data/gpu-kinds.txt\n"
    "show    prints what the GPUs do and which processes are on them.\n"
    "set     lost=on|off                       the GPU falls off the bus\n"
    "        gpm|power|energy|utilization|processes|memory|temperature|events=on|off   whether it reports that\n"
    "        hidden-processes=on|off           its lists of processes are empty, as from within a container\n"
    "        exclusive-process=on|off          its compute mode\n"
    "        hang=on|off                       no call of NVML about this GPU returns\n"
    "        xid=N                             the driver reports that Xid\n"
    "        ecc=N                             the number of uncorrectable ECC errors\n"
    "        remap-pending|remap-failed=on|off faulty rows of memory\n"
    "        slowdown=off|hardware|heat|power-brake   the reason of reduced clocks (its speed stays)\n"
    "        foreign-mib=N  foreign-at-mib=N   memory of an external process, and where it lies\n"
    "        foreign-pid=N                     that process, which need not live any more (default 1)\n"
    "        restore-mib=N                     it takes N MiB more when the next restore begins\n"
    "        nvlink=GPU:N                      N NVLinks to another GPU\n"
    "        vanish=N  appear=N                MIG device N is removed under its processes, and comes back\n"
    "set machine\n"
    "        cuda=N                            the driver's CUDA version: 13000 (default), 12080, 12040 ...\n"
    "        host-memory-mib=N                 for the memory of suspended processes (0: any)\n"
    "        numa=N                            GPUs and CPUs are spread over N NUMA nodes (0: not reported)\n"
    "        checkpoint-hangs=on|off           cuCheckpointProcessCheckpoint does not return\n"
    "        checkpoint-fails=on|off|mute      it fails; mute: then the state is not told either\n";

struct trouble_key {
    const char *name;
    unsigned trouble;
    bool when_on; /* lost=on is trouble, power=off is */
};

static const struct trouble_key trouble_keys[] = {
    {"lost", TROUBLE_LOST, true},
    {"gpm", TROUBLE_NO_GPM, false},
    {"power", TROUBLE_NO_POWER, false},
    {"energy", TROUBLE_NO_ENERGY, false},
    {"utilization", TROUBLE_NO_UTILIZATION, false},
    {"processes", TROUBLE_NO_PROCESSES, false},
    {"memory", TROUBLE_NO_MEMORY, false},
    {"temperature", TROUBLE_NO_TEMPERATURE, false},
    {"events", TROUBLE_NO_EVENTS, false},
    {"remap-failed", TROUBLE_REMAP_FAILED, true},
    {"remap-pending", TROUBLE_REMAP_PENDING, true},
    {"hang", TROUBLE_HANG, true},
    {"exclusive-process", TROUBLE_ONE_PROCESS, true},
    {"hidden-processes", TROUBLE_HIDDEN_PROCESSES, true},
};

/* Some keys name what works (power=off), others what does not (hang=on): `when_on` says which. */
static int set_trouble(
    struct gpu *gpu, const struct trouble_key *key, const char *value, struct fault *fault)
{
    bool on = strcmp(value, "on") == 0;

    if (!on && strcmp(value, "off") != 0)
        return fault_set(fault, EINVAL, "%s=%s: on or off", key->name, value);
    if (on == key->when_on)
        gpu->trouble |= key->trouble;
    else
        gpu->trouble &= ~key->trouble;
    return 0;
}

static int set_mib(const char *name, const char *value, int64_t *ret_bytes, struct fault *fault)
{
    int64_t mib;

    if (parse_int64(value, 0, INT64_C(1) << 30, &mib) < 0)
        return fault_set(fault, EINVAL, "%s=%s: a number of MiB", name, value);
    *ret_bytes = mib * MIB;
    return 0;
}

static int set_pid(const char *name, const char *value, pid_t *ret_pid, struct fault *fault)
{
    int64_t pid;

    if (parse_int64(value, 0, INT32_MAX, &pid) < 0)
        return fault_set(fault, EINVAL, "%s=%s: the number of a process", name, value);
    *ret_pid = (pid_t)pid;
    return 0;
}

static int set_number(const char *name, const char *value, int64_t *ret, struct fault *fault)
{
    if (parse_int64(value, 0, 100000, ret) < 0)
        return fault_set(fault, EINVAL, "%s=%s: a number", name, value);
    return 0;
}

/* The count makes an Xid that is set twice two events. */
static int set_xid(struct gpu *gpu, const char *value, struct fault *fault)
{
    int64_t xid;

    int r = set_number("xid", value, &xid, fault);
    if (r < 0)
        return r;
    gpu->xid = (unsigned)xid;
    gpu->xid_count++;
    return 0;
}

/* The reasons that NVML reports for reduced clocks. */
static int set_slowdown(struct gpu *gpu, const char *value, struct fault *fault)
{
    static const struct {
        const char *name;
        unsigned bits;
    } reasons[] = {{"off", 0}, {"hardware", NVML_CLOCKS_HARDWARE},
        {"heat", NVML_CLOCKS_HARDWARE | NVML_CLOCKS_HARDWARE_HEAT},
        {"power-brake", NVML_CLOCKS_HARDWARE | NVML_CLOCKS_POWER_BRAKE}};

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (strcmp(reasons[i].name, value) == 0) {
            gpu->clock_reasons = reasons[i].bits;
            return 0;
        }
    }
    return fault_set(fault, EINVAL, "slowdown=%s: off, hardware, heat or power-brake", value);
}

/* The GPU instance stays without its compute instance: its slices stay in use. */
static int set_instance(struct gpu *gpu, const char *name, const char *value, enum unit_state from,
    enum unit_state to, struct fault *fault)
{
    int64_t number;

    if (parse_int64(value, 0, gpu->unit_count - 2, &number) < 0 ||
        gpu->units[number + 1].state != from)
        return fault_set(
            fault, EINVAL, "%s=%s: no MIG device of that number to do that with", name, value);
    gpu->units[number + 1].state = to;
    return 0;
}

/* Every fault that a GPU can have is one key, so that a test can read what it injects. */
static int set_key(struct gpu *gpu, const char *assignment, struct fault *fault)
{
    char name[32];
    const char *value = strchr(assignment, '=');

    if (!value ||
        !span_copy((struct span){assignment, (size_t)(value - assignment)}, name, sizeof(name)))
        return fault_set(fault, EINVAL, "%s: must be KEY=VALUE", assignment);
    value++;
    for (size_t i = 0; i < ARRAY_SIZE(trouble_keys); i++)
        if (strcmp(name, trouble_keys[i].name) == 0)
            return set_trouble(gpu, &trouble_keys[i], value, fault);
    if (strcmp(name, "xid") == 0)
        return set_xid(gpu, value, fault);
    if (strcmp(name, "ecc") == 0)
        return set_number(name, value, &gpu->ecc_uncorrected, fault);
    if (strcmp(name, "vanish") == 0)
        return set_instance(gpu, name, value, UNIT_READY, UNIT_EMPTY, fault);
    if (strcmp(name, "appear") == 0)
        return set_instance(gpu, name, value, UNIT_EMPTY, UNIT_READY, fault);
    if (strcmp(name, "slowdown") == 0)
        return set_slowdown(gpu, value, fault);
    if (strcmp(name, "foreign-mib") == 0)
        return set_mib(name, value, &gpu->foreign_bytes, fault);
    if (strcmp(name, "foreign-at-mib") == 0)
        return set_mib(name, value, &gpu->foreign_offset, fault);
    if (strcmp(name, "foreign-pid") == 0)
        return set_pid(name, value, &gpu->foreign_pid, fault);
    if (strcmp(name, "restore-mib") == 0)
        return set_mib(name, value, &gpu->restore_bytes, fault);
    return fault_set(fault, EINVAL, "%s: unknown; see colloc-emulator --help", name);
}

/* Processes on the GPU must learn of a lost GPU at once. */
static void wake_processes(struct world *world, int gpu)
{
    for (int i = 0; i < world->process_end; i++)
        for (int k = 0; k < world->processes[i].seat_count; k++)
            if (world->processes[i].seats[k].gpu == gpu)
                world_wake(&world->processes[i]);
}

/* Settings of the machine rather than a GPU: the version of CUDA, host memory, a driver that
 * hangs. */
static int set_machine_key(struct world *world, const char *assignment, struct fault *fault)
{
    const char *value = strchr(assignment, '=');
    struct span name = {assignment, value ? (size_t)(value++ - assignment) : 0};
    int64_t number;

    if (span_is(name, "cuda")) {
        int r = set_number("cuda", value, &number, fault);
        if (r == 0)
            world->cuda_version = (int)number;
        return r;
    }
    if (span_is(name, "numa")) {
        int r = set_number("numa", value, &number, fault);
        if (r == 0)
            world->numa_nodes = (int)number;
        return r;
    }
    if (span_is(name, "host-memory-mib"))
        return set_mib("host-memory-mib", value, &world->host_memory_bytes, fault);
    bool is_on = strcmp(value, "on") == 0, is_mute = strcmp(value, "mute") == 0;
    bool is_word = is_on || strcmp(value, "off") == 0;
    if (span_is(name, "checkpoint-hangs") && is_word) {
        world->checkpoint_hangs = is_on;
        return 0;
    }
    if (!span_is(name, "checkpoint-fails") || (!is_word && !is_mute))
        return fault_set(fault, EINVAL, "%s: see colloc-emulator --help", assignment);
    world->checkpoint_fails = is_on || is_mute;
    world->checkpoint_is_mute = is_mute;
    return 0;
}

static int set_machine(struct world *world, int argc, char **argv, struct fault *fault)
{
    int r = 0;

    world_enter(world);
    for (int i = 0; i < argc && r == 0; i++)
        r = set_machine_key(world, argv[i], fault);
    world_leave(world);
    return r;
}

/* "2:4": four NVLinks to GPU 2 */
static int set_nvlink(struct world *world, int gpu, const char *value, struct fault *fault)
{
    const char *colon = strchr(value, ':');
    char other[8] = "";
    int64_t to, links;

    if (!colon || !span_copy((struct span){value, (size_t)(colon - value)}, other, sizeof(other)) ||
        parse_int64(other, 0, world->gpu_count - 1, &to) < 0 || to == gpu ||
        parse_int64(colon + 1, 0, NVML_NVLINKS, &links) < 0)
        return fault_set(fault, EINVAL, "nvlink=%s: another GPU and a number of links: 2:4", value);
    world->nvlinks[gpu][to] = world->nvlinks[to][gpu] = (unsigned char)links;
    return 0;
}

static int run_set(struct world *world, int argc, char **argv, struct fault *fault)
{
    int64_t index;
    int r = 0;

    if (argc < 2)
        return fault_set(
            fault, EINVAL, "set: give a GPU and what to set; see colloc-emulator --help");
    if (strcmp(argv[0], "machine") == 0)
        return set_machine(world, argc - 1, argv + 1, fault);
    if (parse_int64(argv[0], 0, world->gpu_count - 1, &index) < 0)
        return fault_set(
            fault, EINVAL, "%s: no GPU of that index; there are %d", argv[0], world->gpu_count);
    world_enter(world);
    struct gpu changed = world->gpus[index];
    for (int i = 1; i < argc && r == 0; i++)
        r = strncmp(argv[i], "nvlink=", 7) == 0 ? set_nvlink(world, (int)index, argv[i] + 7, fault)
                                                : set_key(&changed, argv[i], fault);
    if (r == 0) {
        world->gpus[index] = changed;
        world_solve(world);
        wake_processes(world, (int)index);
    }
    world_leave(world);
    return r;
}

/* One line for a GPU or a MIG instance; the card's power and energy are in the first. */
static void show_unit(struct world *world, struct seat seat, FILE *out)
{
    const struct unit *unit = world_unit(world, seat);
    char name[UNIT_NAME_SIZE];

    fprintf(out, "%-3d %-10s %-42s %6lld / %6lld MiB  GRACT %3.0f%%  SMACT %3.0f%%  DRAM %3.0f%%",
        seat.gpu, unit_name(&world->gpus[seat.gpu], unit, name), unit->uuid,
        (long long)(memory_used(world, seat) / MIB), (long long)(unit->total_bytes / MIB),
        100 * unit->rate.gract, 100 * unit->rate.smact, 100 * unit->rate.dram);
    if (seat.unit == 0)
        fprintf(out, "  %3.0f W  %.3f MJ  %.3f s x SMACT", unit->rate.power_w,
            world_sum(world, seat)->power_w / 1e6, world_sum(world, seat)->smact);
    fprintf(out, "%s\n", world->gpus[seat.gpu].trouble & TROUBLE_LOST ? "  LOST" : "");
}

/* One line for each GPU of the process. */
static void show_process(const struct world *world, const struct process *p, FILE *out)
{
    static const char *const states[] = {"", "  locked", "  suspended", "  FAILED"};

    for (int i = 0; i < p->seat_count; i++)
        fprintf(out, "    pid %-8d GPU %d%s  %6lld MiB  %s  speed %.2f  done %.0f s%s\n",
            (int)p->pid, p->seats[i].gpu, p->seats[i].unit ? " (MIG)" : "",
            (long long)(memory_of(p, p->seats[i]) / MIB),
            p->role == ROLE_MPS_SERVER ? "MPS server" : (p->mps_server ? "MPS" : "streams"),
            p->speed, process_done_s(world, p), states[p->cuda_state]);
}

/* Under the lock: the picture is one moment's. */
static void show_all(struct world *world, FILE *out)
{
    world_enter(world);
    fprintf(out, "emulated time %.1f s, %g times real\n", world_now_s(world), world->speedup);
    for (int g = 0; g < world->gpu_count; g++)
        for (int u = 0; u < world->gpus[g].unit_count; u++)
            if (world->gpus[g].units[u].state != UNIT_GONE)
                show_unit(world, (struct seat){g, u}, out);
    for (int i = 0; i < world->process_end; i++)
        if (world->processes[i].present)
            show_process(world, &world->processes[i], out);
    world_leave(world);
}

/* Into memory first: a slow reader of the output must not hold the lock. */
static int run_show(struct world *world, struct fault *fault)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return fault_set(fault, errno, "%s", strerror(errno));
    show_all(world, out);
    fclose(out);
    fwrite(text, 1, size, stdout);
    free(text);
    return 0;
}

/* The built-in kinds first; those of the file are added, or replace them. */
static int read_kinds(const char *path, struct gpu_kinds *kinds, struct fault *fault)
{
    static const size_t FILE_MAX = 1 << 20; /* bytes; chosen: more than GPU_KINDS_MAX kinds take */
    char *data = NULL;
    size_t size;
    int r = gpu_kinds_init(kinds, fault);

    if (r == 0 && path)
        r = file_read(path, FILE_MAX, fault, &data, &size);
    if (r == 0 && path)
        r = gpu_kinds_read(kinds, (struct span){data, size}, path, fault);
    free(data);
    return r;
}

/* The file is the machine: it lives as long as the file does, whichever programs have it open. */
static int run_create(int argc, char **argv, struct fault *fault)
{
    static const struct option options[] = {{"gpus", required_argument, NULL, 'g'},
        {"gpu-kinds", required_argument, NULL, 'k'}, {"speed", required_argument, NULL, 's'}, {0}};
    static struct gpu_kinds kinds;
    const char *gpus = NULL, *file = NULL;
    double speed = 1;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'g')
            gpus = optarg;
        else if (option == 'k')
            file = optarg;
        else if (option != 's')
            return fault_set(fault, EINVAL, "see colloc-emulator --help");
        else if (parse_double(optarg, 1e-3, 1e6, &speed) < 0)
            return fault_set(fault, EINVAL, "--speed=%s: a number from 0.001 to 1000000", optarg);
    }
    if (!gpus || optind != argc - 1)
        return fault_set(fault, EINVAL, "create: give --gpus=LIST and one PATH");
    int r = read_kinds(file, &kinds, fault);
    return r < 0 ? r : world_create(argv[optind], &kinds, gpus, speed, fault);
}

/* The environment names the machine, as it does for the libraries. */
static int with_world(int argc, char **argv, struct fault *fault)
{
    const char *path = getenv("COLLOC_EMULATOR");
    struct world *world;
    int r;

    if (!path)
        return fault_set(fault, ENOENT,
            "COLLOC_EMULATOR is not set: it holds the path given to 'colloc-emulator create'");
    r = world_open(path, fault, &world);
    if (r < 0)
        return r;
    r = strcmp(argv[1], "show") == 0 ? run_show(world, fault)
                                     : run_set(world, argc - 2, argv + 2, fault);
    world_close(world);
    return r;
}

int main(int argc, char **argv)
{
    struct fault fault = {""};
    const char *verb = argc > 1 ? argv[1] : "";
    int r;

    if (strcmp(verb, "--help") == 0) {
        fputs(HELP, stdout);
        return 0;
    }
    if (strcmp(verb, "create") == 0)
        r = run_create(argc - 1, argv + 1, &fault);
    else if (strcmp(verb, "show") == 0 || strcmp(verb, "set") == 0)
        r = with_world(argc, argv, &fault);
    else
        r = fault_set(&fault, EINVAL, "create, show or set? See colloc-emulator --help");
    if (r < 0)
        fprintf(stderr, "colloc-emulator: %s\n", fault.text);
    return r < 0 ? 2 : 0;
}
