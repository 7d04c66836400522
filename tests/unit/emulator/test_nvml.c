/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVML client that knows nothing of the emulator: it links libnvidia-ml and declares what it
 * calls by itself, from NVIDIA's NVML API Reference Guide (docs.nvidia.com/deploy/nvml-api). The
 * machine and its tasks are made by the programs in $EMULATOR_FOLDER.
 */
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef void *nvmlGpmSample_t;
typedef void *nvmlEventSet_t;

enum {
    SUCCESS,
    UNINITIALIZED,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE,
    DRIVER_NOT_LOADED = 9
};
enum { TIMEOUT = 10, GPU_IS_LOST = 15, VERSION_MISMATCH = 25 };

struct pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
struct pci_old {
    char bus_id[16];
    unsigned domain, bus, device, pci_device_id, rest[5];
};
struct memory {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct utilization {
    unsigned gpu, memory;
};
struct instance_profile {
    unsigned id, p2p, slices, instances, sms, rest[5];
    unsigned long long memory_mib;
};
struct compute_profile {
    unsigned id, slices, instances, sms, rest[5];
};
struct compute_info { /* start and size: of version 2 only */
    nvmlDevice_t device;
    void *instance;
    unsigned id, profile, start, size;
};
struct process_v1 {
    unsigned pid;
    unsigned long long memory;
};
struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct process_sample {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
};
struct attributes {
    unsigned sm_count, shared[5], gpu_slices, compute_slices;
    unsigned long long memory_mib;
};
struct gpm_support {
    unsigned version, is_supported;
};
struct gpm_metric {
    unsigned id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
};
struct gpm_metrics {
    unsigned version, count;
    nvmlGpmSample_t first, second;
    struct gpm_metric metrics[98];
};
struct event {
    nvmlDevice_t device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned);
int nvmlShutdown(void);
const char *nvmlErrorString(int);
int nvmlSystemGetDriverVersion(char *, unsigned);
int nvmlSystemGetNVMLVersion(char *, unsigned);
int nvmlSystemGetCudaDriverVersion(int *);
int nvmlSystemGetCudaDriverVersion_v2(int *);
int nvmlSystemGetProcessName(unsigned, char *, unsigned);
int nvmlDeviceGetCount(unsigned *);
int nvmlDeviceGetCount_v2(unsigned *);
int nvmlDeviceGetHandleByIndex(unsigned, nvmlDevice_t *);
int nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t *);
int nvmlDeviceGetHandleByUUID(const char *, nvmlDevice_t *);
int nvmlDeviceGetHandleByPciBusId(const char *, nvmlDevice_t *);
int nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *);
int nvmlDeviceGetName(nvmlDevice_t, char *, unsigned);
int nvmlDeviceGetUUID(nvmlDevice_t, char *, unsigned);
int nvmlDeviceGetIndex(nvmlDevice_t, unsigned *);
int nvmlDeviceGetMinorNumber(nvmlDevice_t, unsigned *);
int nvmlDeviceGetBrand(nvmlDevice_t, unsigned *);
int nvmlDeviceGetPciInfo(nvmlDevice_t, struct pci_old *);
int nvmlDeviceGetPciInfo_v2(nvmlDevice_t, struct pci_old *);
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t, struct pci *);
int nvmlDeviceGetArchitecture(nvmlDevice_t, unsigned *);
int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int *, int *);
int nvmlDeviceGetNumGpuCores(nvmlDevice_t, unsigned *);
int nvmlDeviceGetComputeMode(nvmlDevice_t, unsigned *);
int nvmlDeviceGetPersistenceMode(nvmlDevice_t, unsigned *);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t, struct memory *);
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, struct memory_v2 *);
int nvmlDeviceGetUtilizationRates(nvmlDevice_t, struct utilization *);
int nvmlDeviceGetEncoderUtilization(nvmlDevice_t, unsigned *, unsigned *);
int nvmlDeviceGetDecoderUtilization(nvmlDevice_t, unsigned *, unsigned *);
int nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned *);
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t, unsigned long long *);
int nvmlDeviceGetPowerManagementLimit(nvmlDevice_t, unsigned *);
int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned *);
int nvmlDeviceGetTemperature(nvmlDevice_t, unsigned, unsigned *);
int nvmlDeviceGetTemperatureThreshold(nvmlDevice_t, unsigned, unsigned *);
int nvmlDeviceGetFanSpeed(nvmlDevice_t, unsigned *);
int nvmlDeviceGetClockInfo(nvmlDevice_t, unsigned, unsigned *);
int nvmlDeviceGetMaxClockInfo(nvmlDevice_t, unsigned, unsigned *);
int nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t, unsigned *);
int nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t, unsigned *);
int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t, unsigned *);
int nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t, unsigned *);
int nvmlDeviceGetPcieThroughput(nvmlDevice_t, unsigned, unsigned *);
int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t, unsigned *, struct process_v1 *);
int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t, unsigned *, struct process *);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned *, struct process *);
int nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t, unsigned *, struct process_v1 *);
int nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t, unsigned *, struct process *);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned *, struct process *);
int nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t, unsigned *, struct process_v1 *);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t, unsigned *, struct process *);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned *, struct process *);
int nvmlDeviceGetProcessUtilization(
    nvmlDevice_t, struct process_sample *, unsigned *, unsigned long long);
int nvmlDeviceGetMigMode(nvmlDevice_t, unsigned *, unsigned *);
int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t, unsigned *);
int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t, unsigned, nvmlDevice_t *);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t, nvmlDevice_t *);
int nvmlDeviceIsMigDeviceHandle(nvmlDevice_t, unsigned *);
int nvmlDeviceGetGpuInstanceId(nvmlDevice_t, unsigned *);
int nvmlDeviceGetComputeInstanceId(nvmlDevice_t, unsigned *);
int nvmlDeviceGetAttributes(nvmlDevice_t, struct attributes *);
int nvmlDeviceGetAttributes_v2(nvmlDevice_t, struct attributes *);
int nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t, unsigned, struct instance_profile *);
int nvmlDeviceGetGpuInstances(nvmlDevice_t, unsigned, void **, unsigned *);
int nvmlGpuInstanceGetComputeInstanceProfileInfo(
    void *, unsigned, unsigned, struct compute_profile *);
int nvmlGpuInstanceGetComputeInstances(void *, unsigned, void **, unsigned *);
int nvmlComputeInstanceGetInfo(void *, struct compute_info *);
int nvmlComputeInstanceGetInfo_v2(void *, struct compute_info *);
int nvmlGpmQueryDeviceSupport(nvmlDevice_t, struct gpm_support *);
int nvmlGpmSampleAlloc(nvmlGpmSample_t *);
int nvmlGpmSampleFree(nvmlGpmSample_t);
int nvmlGpmSampleGet(nvmlDevice_t, nvmlGpmSample_t);
int nvmlGpmMigSampleGet(nvmlDevice_t, unsigned, nvmlGpmSample_t);
int nvmlGpmMetricsGet(struct gpm_metrics *);
int nvmlEventSetCreate(nvmlEventSet_t *);
int nvmlEventSetFree(nvmlEventSet_t);
int nvmlDeviceGetSupportedEventTypes(nvmlDevice_t, unsigned long long *);
int nvmlDeviceRegisterEvents(nvmlDevice_t, unsigned long long, nvmlEventSet_t);
int nvmlEventSetWait(nvmlEventSet_t, struct event *, unsigned);
int nvmlEventSetWait_v2(nvmlEventSet_t, struct event *, unsigned);

static const unsigned long long MIB = 1 << 20;
static char folder[64];
static nvmlDevice_t gpus[4]; /* two A100, an H200, an A100 with MIG */

/* Process group of all that is started, so that a failed test leaves none of it behind. */
static pid_t children;

static pid_t start(const char *program, char *const argv[])
{
    char path[512];
    pid_t pid;
    posix_spawnattr_t attributes;

    snprintf(path, sizeof(path), "%s/%s", getenv("EMULATOR_FOLDER"), program);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, children);
    assert_int_equal(posix_spawn(&pid, path, NULL, &attributes, argv, environ), 0);
    posix_spawnattr_destroy(&attributes);
    return pid;
}

static int finish(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    finish(pid);
}

static void set(const char *gpu, const char *assignment)
{
    char *argv[] = {
        (char *)"colloc-emulator", (char *)"set", (char *)gpu, (char *)assignment, NULL};
    assert_int_equal(finish(start("colloc-emulator", argv)), 0);
}

static unsigned long long used_mib(nvmlDevice_t device)
{
    struct memory_v2 m = {.version = (unsigned)sizeof(m) | 2u << 24};

    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &m), SUCCESS);
    return m.used / MIB;
}

static void wait_for_memory(nvmlDevice_t device, unsigned long long mib)
{
    time_t limit = time(NULL) + 20;

    while (used_mib(device) != mib) {
        assert_true(time(NULL) < limit);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* A long training that has all its memory when this returns. */
static pid_t train(const char *visible, nvmlDevice_t device, unsigned long long mib)
{
    char memory[64];
    char *argv[] = {(char *)"colloc-pretend-train", memory, (char *)"--seconds=1e8",
        (char *)"--smact=0.5", (char *)"--gract=0.7", (char *)"--dram=0.25",
        (char *)"--power-w=200", NULL};
    unsigned long long before = used_mib(device);

    snprintf(memory, sizeof(memory), "--memory-mib=%llu", mib);
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    pid_t pid = start("colloc-pretend-train", argv);
    wait_for_memory(device, before + mib);
    return pid;
}

/* A member that only waits keeps the group alive. */
static void make_group(void)
{
    children = fork();
    assert_true(children >= 0);
    if (children == 0)
        for (;;)
            pause();
    assert_int_equal(setpgid(children, children), 0);
}

static int make_machine(void **state)
{
    char gpus_file[128];
    char *argv[] = {(char *)"colloc-emulator", (char *)"create", (char *)"--speed=1000",
        (char *)"--gpus=2xA100-40GB,H200,A100-40GB:3g.20gb+2g.10gb", gpus_file, NULL};

    make_group();
    strcpy(folder, "/tmp/colloc-nvml-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(gpus_file, sizeof(gpus_file), "%s/gpus", folder);
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", folder, 1);
    unsetenv("COLLOC_EMULATOR");
    assert_int_equal(nvmlInit_v2(), DRIVER_NOT_LOADED);
    setenv("COLLOC_EMULATOR", gpus_file, 1);
    assert_int_equal(nvmlInit_v2(), DRIVER_NOT_LOADED);
    assert_int_equal(finish(start("colloc-emulator", argv)), 0);
    assert_int_equal(nvmlInit_v2(), SUCCESS);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(i, &gpus[i]), SUCCESS);
    return 0;
}

static int end_machine(void **state)
{
    static const char *const names[] = {
        "gpus", "control.log", "server.log", "control", "nvidia-cuda-mps-control.pid"};
    char path[128];

    nvmlShutdown();
    kill(-children, SIGKILL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void sessions_are_counted(void **state)
{
    unsigned count;

    assert_int_equal(nvmlShutdown(), SUCCESS);
    assert_int_equal(nvmlShutdown(), UNINITIALIZED);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
    assert_int_equal(nvmlInit(), SUCCESS);
    assert_int_equal(nvmlInitWithFlags(1), SUCCESS);
    assert_int_equal(nvmlShutdown(), SUCCESS);
    assert_int_equal(nvmlDeviceGetCount(&count), SUCCESS);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), SUCCESS);
    assert_int_equal(count, 4);
    assert_string_equal(nvmlErrorString(NOT_SUPPORTED), "Not Supported");
    assert_string_equal(nvmlErrorString(12345), "Unknown Error");
}

static void the_system_has_versions(void **state)
{
    char text[80];
    int version = 0;

    assert_int_equal(nvmlSystemGetDriverVersion(text, sizeof(text)), SUCCESS);
    assert_true(atoi(text) > 500);
    assert_int_equal(nvmlSystemGetDriverVersion(text, 3), INSUFFICIENT_SIZE);
    assert_int_equal(nvmlSystemGetNVMLVersion(text, sizeof(text)), SUCCESS);
    assert_int_equal(nvmlSystemGetCudaDriverVersion(&version), SUCCESS);
    assert_int_equal(nvmlSystemGetCudaDriverVersion_v2(&version), SUCCESS);
    assert_true(version >= 12000);
    assert_int_equal(nvmlSystemGetProcessName((unsigned)getpid(), text, sizeof(text)), SUCCESS);
    assert_true(strlen(text) > 0);
    assert_int_equal(nvmlSystemGetProcessName(0x7fffffff, text, sizeof(text)), NOT_FOUND);
}

static void a_gpu_is_found_by_all_its_names(void **state)
{
    char uuid[80];
    struct pci pci;
    struct pci_old old;
    nvmlDevice_t same;
    unsigned number;

    assert_int_equal(nvmlDeviceGetUUID(gpus[1], uuid, sizeof(uuid)), SUCCESS);
    assert_int_equal(strlen(uuid), strlen("GPU-00000000-0000-0000-0000-000000000000"));
    assert_int_equal(nvmlDeviceGetHandleByUUID(uuid, &same), SUCCESS);
    assert_ptr_equal(same, gpus[1]);
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-none", &same), NOT_FOUND);
    assert_int_equal(nvmlDeviceGetPciInfo_v3(gpus[1], &pci), SUCCESS);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &same), SUCCESS);
    assert_ptr_equal(same, gpus[1]);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId(pci.bus_id_legacy, &same), SUCCESS);
    assert_ptr_equal(same, gpus[1]);
    assert_int_equal(pci.pci_device_id & 0xffff, 0x10de);
    assert_int_equal(nvmlDeviceGetPciInfo_v2(gpus[1], &old), SUCCESS);
    assert_string_equal(old.bus_id, pci.bus_id_legacy);
    assert_int_equal(nvmlDeviceGetPciInfo(gpus[1], &old), SUCCESS);
    assert_int_equal(old.bus, pci.bus);
    assert_int_equal(nvmlDeviceGetIndex(gpus[1], &number), SUCCESS);
    assert_int_equal(number, 1);
    assert_int_equal(nvmlDeviceGetMinorNumber(gpus[1], &number), SUCCESS);
    assert_int_equal(nvmlDeviceGetHandleByIndex(4, &same), INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetHandleByIndex(1, &same), SUCCESS);
    assert_int_equal(nvmlDeviceGetIndex(NULL, &number), INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetIndex(gpus[1], NULL), INVALID_ARGUMENT);
}

static void a_gpu_says_what_it_is(void **state)
{
    char name[96];
    unsigned value, period;
    int major, minor;

    assert_int_equal(nvmlDeviceGetName(gpus[0], name, sizeof(name)), SUCCESS);
    assert_string_equal(name, "NVIDIA A100-SXM4-40GB");
    assert_int_equal(nvmlDeviceGetName(gpus[2], name, sizeof(name)), SUCCESS);
    assert_string_equal(name, "NVIDIA H200");
    assert_int_equal(nvmlDeviceGetCudaComputeCapability(gpus[0], &major, &minor), SUCCESS);
    assert_int_equal(10 * major + minor, 80);
    assert_int_equal(nvmlDeviceGetNumGpuCores(gpus[0], &value), SUCCESS);
    assert_int_equal(value, 6912);
    assert_int_equal(nvmlDeviceGetArchitecture(gpus[2], &value), SUCCESS);
    assert_int_equal(value, 9);
    assert_int_equal(nvmlDeviceGetBrand(gpus[0], &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetComputeMode(gpus[0], &value), SUCCESS);
    assert_int_equal(value, 0);
    assert_int_equal(nvmlDeviceGetPersistenceMode(gpus[0], &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetPowerManagementLimit(gpus[0], &value), SUCCESS);
    assert_int_equal(value, 400000);
    assert_int_equal(nvmlDeviceGetEnforcedPowerLimit(gpus[2], &value), SUCCESS);
    assert_int_equal(value, 700000);
    assert_int_equal(nvmlDeviceGetCurrPcieLinkGeneration(gpus[0], &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetMaxPcieLinkGeneration(gpus[0], &value), SUCCESS);
    assert_int_equal(value, 4);
    assert_int_equal(nvmlDeviceGetCurrPcieLinkWidth(gpus[0], &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetMaxPcieLinkWidth(gpus[0], &value), SUCCESS);
    assert_int_equal(value, 16);
    assert_int_equal(nvmlDeviceGetFanSpeed(gpus[0], &value), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetTemperatureThreshold(gpus[0], 0, &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetEncoderUtilization(gpus[0], &value, &period), SUCCESS);
    assert_int_equal(nvmlDeviceGetDecoderUtilization(gpus[0], &value, &period), SUCCESS);
    assert_int_equal(value, 0);
    assert_int_equal(nvmlDeviceGetMaxClockInfo(gpus[0], 1, &value), SUCCESS);
    assert_int_equal(value, 1410);
    assert_int_equal(nvmlDeviceGetClockInfo(gpus[0], 9, &value), INVALID_ARGUMENT);
}

static void memory_adds_up(void **state)
{
    struct memory_v2 m = {.version = (unsigned)sizeof(m) | 2u << 24};
    struct memory old;

    pid_t pid = train("0", gpus[0], 7106);
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(gpus[0], &m), SUCCESS);
    assert_int_equal(m.total / MIB, 40960);
    assert_int_equal(m.used / MIB, 7106);
    assert_int_equal(m.total, m.used + m.free + m.reserved);
    assert_int_equal(nvmlDeviceGetMemoryInfo(gpus[0], &old), SUCCESS);
    assert_int_equal(old.total, old.free + old.used);
    assert_int_equal(old.used, m.used + m.reserved);
    m.version = 7;
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(gpus[0], &m), VERSION_MISMATCH);
    end(pid);
    assert_int_equal(used_mib(gpus[0]), 0);
}

static void a_training_shows_in_readings(void **state)
{
    struct utilization u;
    unsigned value, idle;
    unsigned long long energy, later;

    assert_int_equal(nvmlDeviceGetPowerUsage(gpus[1], &idle), SUCCESS);
    assert_int_equal(idle, 50000);
    pid_t pid = train("1", gpus[1], 4000);
    assert_int_equal(nvmlDeviceGetUtilizationRates(gpus[1], &u), SUCCESS);
    assert_int_equal(u.gpu, 70);
    assert_int_equal(u.memory, 25);
    assert_int_equal(nvmlDeviceGetPowerUsage(gpus[1], &value), SUCCESS);
    assert_int_equal(value, 200000);
    assert_int_equal(nvmlDeviceGetTemperature(gpus[1], 0, &value), SUCCESS);
    assert_in_range(value, 40, 80);
    assert_int_equal(nvmlDeviceGetClockInfo(gpus[1], 1, &value), SUCCESS);
    assert_int_equal(value, 1410);
    assert_int_equal(nvmlDeviceGetPcieThroughput(gpus[1], 1, &value), SUCCESS);
    assert_true(value > 0);
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(gpus[1], &energy), SUCCESS);
    do
        assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(gpus[1], &later), SUCCESS);
    while (later < energy + 1000000);
    end(pid);
}

static void who_is_there_is_listed(void **state)
{
    struct process list[4];
    struct process_v1 old[4];
    struct process_sample samples[4];
    unsigned count = 0;

    pid_t a = train("0", gpus[0], 3000), b = train("0", gpus[0], 2000);
    assert_int_equal(
        nvmlDeviceGetComputeRunningProcesses_v3(gpus[0], &count, NULL), INSUFFICIENT_SIZE);
    assert_int_equal(count, 2);
    count = 1;
    assert_int_equal(
        nvmlDeviceGetComputeRunningProcesses_v2(gpus[0], &count, list), INSUFFICIENT_SIZE);
    count = 4;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(gpus[0], &count, list), SUCCESS);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].pid + list[1].pid, a + b);
    assert_int_equal((list[0].memory + list[1].memory) / MIB, 5000);
    assert_int_equal(list[0].gpu_instance, 0xFFFFFFFF);
    count = 4;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses(gpus[0], &count, old), SUCCESS);
    assert_int_equal(old[1].pid, list[1].pid);
    assert_int_equal(old[1].memory, list[1].memory);
    count = 4;
    assert_int_equal(nvmlDeviceGetProcessUtilization(gpus[0], samples, &count, 0), SUCCESS);
    assert_int_equal(count, 2);
    assert_in_range(samples[0].sm, 20, 60);
    count = 0;
    assert_int_equal(nvmlDeviceGetProcessUtilization(gpus[0], NULL, &count, 0), INSUFFICIENT_SIZE);
    count = 4;
    assert_int_equal(nvmlDeviceGetProcessUtilization(gpus[1], samples, &count, 0), NOT_FOUND);
    count = 4;
    assert_int_equal(nvmlDeviceGetGraphicsRunningProcesses(gpus[0], &count, old), SUCCESS);
    assert_int_equal(nvmlDeviceGetGraphicsRunningProcesses_v2(gpus[0], &count, list), SUCCESS);
    assert_int_equal(nvmlDeviceGetGraphicsRunningProcesses_v3(gpus[0], &count, list), SUCCESS);
    assert_int_equal(count, 0);
    end(a);
    end(b);
}

static void mps_clients_and_their_server_are_told_apart(void **state)
{
    char *daemon[] = {(char *)"nvidia-cuda-mps-control", (char *)"-f", NULL};
    struct process list[4];
    struct process_v1 old[4];
    struct utilization u;
    unsigned count = 4;
    char path[128];
    time_t limit = time(NULL) + 20;

    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    pid_t control = start("nvidia-cuda-mps-control", daemon);
    snprintf(path, sizeof(path), "%s/control", folder);
    while (access(path, F_OK) < 0)
        assert_true(time(NULL) < limit);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    char *argv[] = {(char *)"colloc-pretend-train", (char *)"--memory-mib=2000",
        (char *)"--seconds=1e8", (char *)"--smact=0.3", NULL};
    pid_t a = start("colloc-pretend-train", argv);
    wait_for_memory(gpus[0], 2030);
    pid_t b = start("colloc-pretend-train", argv);
    wait_for_memory(gpus[0], 4030);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(gpus[0], &count, list), SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].memory / MIB, 30);
    count = 4;
    assert_int_equal(nvmlDeviceGetMPSComputeRunningProcesses_v3(gpus[0], &count, list), SUCCESS);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].pid + list[1].pid, a + b);
    count = 4;
    assert_int_equal(nvmlDeviceGetMPSComputeRunningProcesses_v2(gpus[0], &count, list), SUCCESS);
    count = 4;
    assert_int_equal(nvmlDeviceGetMPSComputeRunningProcesses(gpus[0], &count, old), SUCCESS);
    assert_int_equal(old[0].memory, list[0].memory);
    assert_int_equal(nvmlDeviceGetUtilizationRates(gpus[0], &u), SUCCESS);
    assert_in_range(u.gpu, 60, 93); /* 47 alone; two slow each other */
    kill(control, SIGTERM);
    finish(control);
    assert_int_equal(finish(a), 1);
    assert_int_equal(finish(b), 1);
    assert_int_equal(used_mib(gpus[0]), 0);
}

static void mig_instances_are_devices(void **state)
{
    unsigned current, pending, value, count = 4;
    nvmlDevice_t large, small, parent;
    char text[96], uuid[80];
    struct attributes attributes;
    struct utilization u;
    struct process list[4];

    assert_int_equal(nvmlDeviceGetMigMode(gpus[0], &current, &pending), SUCCESS);
    assert_int_equal(current, 0);
    assert_int_equal(nvmlDeviceGetMigMode(gpus[3], &current, &pending), SUCCESS);
    assert_int_equal(current, 1);
    assert_int_equal(nvmlDeviceGetMaxMigDeviceCount(gpus[3], &value), SUCCESS);
    assert_int_equal(value, 7);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpus[3], 0, &large), SUCCESS);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpus[3], 1, &small), SUCCESS);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpus[3], 2, &parent), NOT_FOUND);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpus[3], 7, &parent), INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(small, &parent), SUCCESS);
    assert_ptr_equal(parent, gpus[3]);
    assert_int_equal(nvmlDeviceIsMigDeviceHandle(small, &value), SUCCESS);
    assert_int_equal(value, 1);
    assert_int_equal(nvmlDeviceIsMigDeviceHandle(gpus[3], &value), SUCCESS);
    assert_int_equal(value, 0);
    assert_int_equal(nvmlDeviceGetName(small, text, sizeof(text)), SUCCESS);
    assert_string_equal(text, "NVIDIA A100-SXM4-40GB MIG 2g.10gb");
    assert_int_equal(nvmlDeviceGetUUID(small, uuid, sizeof(uuid)), SUCCESS);
    assert_memory_equal(uuid, "MIG-", 4);
    assert_int_equal(nvmlDeviceGetHandleByUUID(uuid, &parent), SUCCESS);
    assert_ptr_equal(parent, small);
    assert_int_equal(nvmlDeviceGetAttributes_v2(small, &attributes), SUCCESS);
    assert_int_equal(nvmlDeviceGetAttributes(small, &attributes), SUCCESS);
    assert_int_equal(attributes.sm_count, 28);
    assert_int_equal(attributes.gpu_slices, 2);
    assert_int_equal(attributes.memory_mib, 9856);
    assert_int_equal(nvmlDeviceGetAttributes_v2(gpus[3], &attributes), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetGpuInstanceId(small, &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetGpuInstanceId(gpus[3], &value), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetComputeInstanceId(small, &current), SUCCESS);
    assert_int_equal(current, 0);

    pid_t pid = train(uuid, small, 3000);
    assert_int_equal(used_mib(large), 0);
    assert_int_equal(used_mib(gpus[3]), 3000);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(large, &count, list), SUCCESS);
    assert_int_equal(count, 0);
    count = 4;
    assert_int_equal(nvmlDeviceGetGpuInstanceId(small, &value), SUCCESS);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(gpus[3], &count, list), SUCCESS);
    assert_int_equal(list[0].gpu_instance, value);
    assert_int_equal(list[0].compute_instance, 0);
    assert_int_equal(nvmlDeviceGetUtilizationRates(gpus[3], &u), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetUtilizationRates(small, &u), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetPowerUsage(small, &value), NOT_SUPPORTED);
    end(pid);
}

/* The mean of a metric between two samples at least a little apart. */
static struct gpm_metric measure(nvmlDevice_t device, unsigned instance, unsigned id)
{
    struct gpm_metrics get = {.version = 1, .count = 1, .metrics = {{.id = id}}};

    assert_int_equal(nvmlGpmSampleAlloc(&get.first), SUCCESS);
    assert_int_equal(nvmlGpmSampleAlloc(&get.second), SUCCESS);
    assert_int_equal(nvmlGpmMetricsGet(&get), INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        nvmlGpmSample_t sample = i == 0 ? get.first : get.second;
        if (instance)
            assert_int_equal(nvmlGpmMigSampleGet(device, instance, sample), SUCCESS);
        else
            assert_int_equal(nvmlGpmSampleGet(device, sample), SUCCESS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(nvmlGpmMetricsGet(&get), SUCCESS);
    get.version = 9;
    assert_int_equal(nvmlGpmMetricsGet(&get), VERSION_MISMATCH);
    nvmlGpmSampleFree(get.first);
    nvmlGpmSampleFree(get.second);
    return get.metrics[0];
}

/* As DCGM lists instances: profiles until one is invalid, the GPU instances of each, and their
 * compute instances. */
static void mig_instances_are_listed_by_profile(void **state)
{
    struct instance_profile profile;
    struct compute_profile compute_profile;
    struct compute_info info;
    void *instance, *compute;
    unsigned n = 0, count, id = 0;
    int r;

    for (; (r = nvmlDeviceGetGpuInstanceProfileInfo(gpus[3], id, &profile)) != INVALID_ARGUMENT;
         id++) {
        assert_true(id < 100 && (r == SUCCESS || r == NOT_SUPPORTED));
        n += r == SUCCESS;
    }
    assert_true(n > 2 && n < id);
    assert_int_equal(nvmlDeviceGetGpuInstanceProfileInfo(gpus[3], 0, NULL), INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetGpuInstanceProfileInfo(gpus[0], 0, &profile), NOT_SUPPORTED);
    for (id = 0, count = 0; count == 0; id++) {
        assert_int_equal(nvmlDeviceGetGpuInstanceProfileInfo(gpus[3], id, &profile), SUCCESS);
        assert_int_equal(
            nvmlDeviceGetGpuInstances(gpus[3], profile.id, &instance, &count), SUCCESS);
    }
    assert_int_equal(profile.slices, 2);
    assert_int_equal(profile.sms, 28);
    assert_int_equal(profile.memory_mib, 9856);

    for (id = 0; (r = nvmlGpuInstanceGetComputeInstanceProfileInfo(
                      instance, id, 0, &compute_profile)) != INVALID_ARGUMENT;
         id++)
        assert_true(id < 100 && (r == SUCCESS || r == NOT_SUPPORTED));
    assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 1, 1, &compute_profile),
        INVALID_ARGUMENT);
    assert_int_equal(nvmlGpuInstanceGetComputeInstances(instance, 1, &compute, &count), SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(nvmlComputeInstanceGetInfo(compute, NULL), INVALID_ARGUMENT);
    assert_int_equal(nvmlComputeInstanceGetInfo(instance, &info), INVALID_ARGUMENT);
    info.start = 77;
    assert_int_equal(nvmlComputeInstanceGetInfo(compute, &info), SUCCESS);
    assert_int_equal(info.start, 77);
    assert_int_equal(nvmlComputeInstanceGetInfo_v2(compute, &info), SUCCESS);
    assert_ptr_equal(info.device, gpus[3]);
    assert_ptr_equal(info.instance, instance);
    assert_int_equal(info.id, 0);
    assert_int_equal(info.profile, 1);
    assert_int_equal(info.start, 0);
    assert_int_equal(info.size, 2);
}

static void gpm_tells_means(void **state)
{
    struct gpm_support support = {.version = 1};
    nvmlDevice_t small;
    unsigned instance;
    char uuid[80];
    struct gpm_metric metric;

    assert_int_equal(nvmlGpmQueryDeviceSupport(gpus[0], &support), SUCCESS);
    assert_int_equal(support.is_supported, 1);
    pid_t pid = train("0", gpus[0], 1000);
    metric = measure(gpus[0], 0, 2);
    assert_int_equal(metric.result, SUCCESS);
    assert_float_equal(metric.value, 50, 0.01);
    assert_string_equal(metric.unit, "%");
    assert_float_equal(measure(gpus[0], 0, 1).value, 70, 0.01);
    assert_float_equal(measure(gpus[0], 0, 10).value, 25, 0.01);
    assert_true(measure(gpus[0], 0, 21).value > measure(gpus[0], 0, 20).value);
    assert_int_equal(measure(gpus[0], 0, 60).result, NOT_SUPPORTED);
    end(pid);
    assert_float_equal(measure(gpus[1], 0, 2).value, 0, 1e-9);

    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpus[3], 1, &small), SUCCESS);
    nvmlDeviceGetUUID(small, uuid, sizeof(uuid));
    nvmlDeviceGetGpuInstanceId(small, &instance);
    pid = train(uuid, small, 1000);
    /* kernels: 0.5 of 108 SMs for 0.7 of the time, on 28 of them 1.93; then a gap of 0.3 */
    assert_float_equal(measure(gpus[3], instance, 2).value, 100 * 1.92857 / 2.22857, 0.01);
    assert_float_equal(measure(gpus[3], 0, 2).value, 100 * 0.5 / 2.22857, 0.01);
    end(pid);
}

static void troubles_can_be_made(void **state)
{
    unsigned value, count = 4;
    unsigned long long energy;
    struct utilization u;
    struct process list[4];
    struct gpm_support support = {.version = 1};

    set("1", "power=off");
    set("1", "energy=off");
    set("1", "utilization=off");
    set("1", "processes=off");
    set("1", "gpm=off");
    assert_int_equal(nvmlDeviceGetPowerUsage(gpus[1], &value), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(gpus[1], &energy), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetUtilizationRates(gpus[1], &u), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(gpus[1], &count, list), NOT_SUPPORTED);
    assert_int_equal(nvmlGpmQueryDeviceSupport(gpus[1], &support), SUCCESS);
    assert_int_equal(support.is_supported, 0);
    set("1", "power=on");
    assert_int_equal(nvmlDeviceGetPowerUsage(gpus[1], &value), SUCCESS);
    set("1", "processes=on");
    set("1", "foreign-mib=1234");
    assert_int_equal(used_mib(gpus[1]), 1234);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(gpus[1], &count, list), SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].pid, 1);
}

static void a_lost_gpu_is_lost_to_all(void **state)
{
    struct memory memory;
    nvmlDevice_t device;
    unsigned count;

    pid_t pid = train("2", gpus[2], 3000);
    set("2", "lost=on");
    assert_int_equal(finish(pid), 1);
    assert_int_equal(nvmlDeviceGetMemoryInfo(gpus[2], &memory), GPU_IS_LOST);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &device), GPU_IS_LOST);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), SUCCESS);
    assert_int_equal(count, 4);
    set("2", "lost=off");
    assert_int_equal(used_mib(gpus[2]), 0);
}

static void xids_are_events(void **state)
{
    nvmlEventSet_t events;
    struct event event;
    unsigned long long types = 0;

    assert_int_equal(nvmlEventSetCreate(&events), SUCCESS);
    assert_int_equal(nvmlDeviceGetSupportedEventTypes(gpus[0], &types), SUCCESS);
    assert_int_equal(types, 8);
    assert_int_equal(nvmlDeviceRegisterEvents(gpus[0], 1, events), NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceRegisterEvents(gpus[0], 8, events), SUCCESS);
    assert_int_equal(nvmlEventSetWait(events, &event, 1), TIMEOUT);
    set("1", "xid=13");
    assert_int_equal(nvmlEventSetWait_v2(events, &event, 0), TIMEOUT);
    set("0", "xid=31");
    assert_int_equal(nvmlEventSetWait_v2(events, &event, 0), SUCCESS);
    assert_ptr_equal(event.device, gpus[0]);
    assert_int_equal(event.type, 8);
    assert_int_equal(event.data, 31);
    assert_int_equal(nvmlEventSetWait_v2(events, &event, 0), TIMEOUT);
    assert_int_equal(nvmlEventSetFree(events), SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_are_counted),
        cmocka_unit_test(the_system_has_versions),
        cmocka_unit_test(a_gpu_is_found_by_all_its_names),
        cmocka_unit_test(a_gpu_says_what_it_is),
        cmocka_unit_test(memory_adds_up),
        cmocka_unit_test(a_training_shows_in_readings),
        cmocka_unit_test(who_is_there_is_listed),
        cmocka_unit_test(mps_clients_and_their_server_are_told_apart),
        cmocka_unit_test(mig_instances_are_devices),
        cmocka_unit_test(mig_instances_are_listed_by_profile),
        cmocka_unit_test(gpm_tells_means),
        cmocka_unit_test(troubles_can_be_made),
        cmocka_unit_test(a_lost_gpu_is_lost_to_all),
        cmocka_unit_test(xids_are_events),
    };
    return cmocka_run_group_tests(tests, make_machine, end_machine);
}
