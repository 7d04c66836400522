/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the NVIDIA driver and of what it reports: all through gpu/, as the daemon does it.
 *
 * They ask the questions that decide how the daemon will work here: whether GPUs are found at all,
 * from where it gets SM activity (the driver's GPM from Hopper on, else DCGM, else utilisation as
 * an upper bound), whether tasks can share by MPS, and whether MIG is on with no instance to run
 * on. A check that does not apply to the machine passes, and says so.
 */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "doctor/doctor.h"
#include "gpu/dcgm.h"
#include "gpu/nvml.h"
#include "gpu/program.h"

/* Two samples at least this far apart give GPM's first values. */
enum { GPM_WAIT_MS = 150 };

/* An engine of DCGM starts within a second. Chosen. */
#define DCGM_LIMIT_US (10 * SECOND_US)

/* GPUs that are no MIG instances. */
static size_t count_cards(const struct doctor *doctor)
{
    size_t n = 0;
    for (size_t i = 0; doctor->gpus && i < doctor->gpus->count; i++)
        n += !doctor->gpus->gpu[i].is_mig;
    return n;
}

static bool has_gpus(const struct doctor *doctor, struct doctor_check *check)
{
    if (count_cards(doctor))
        return true;
    doctor_fail(check, DOCTOR_INSTALL_DRIVER, "not checked: no GPU can be used");
    return false;
}

void check_nvml(struct doctor *doctor, struct doctor_check *check)
{
    if (doctor->gpus_answer == GPU_NO_LIBRARY)
        doctor_fail(check, DOCTOR_INSTALL_DRIVER, "%.200s", doctor->gpus_fault.text);
    else
        doctor_pass(check, "%s is there",
            doctor->options.nvml_library ? doctor->options.nvml_library : "libnvidia-ml.so.1");
}

void check_driver(struct doctor *doctor, struct doctor_check *check)
{
    if (doctor->gpus)
        doctor_pass(check, "version %s", doctor->gpus->driver_version);
    else if (doctor->gpus_answer == GPU_NO_DEVICES)
        doctor_pass(check, "it runs, and sees no GPU");
    else
        doctor_fail(check, DOCTOR_INSTALL_DRIVER, "%.200s", doctor->gpus_fault.text);
}

void check_gpus(struct doctor *doctor, struct doctor_check *check)
{
    size_t places = 0;
    const char *why = "";
    if (!has_gpus(doctor, check))
        return;
    for (size_t i = 0; i < doctor->gpus->count; i++) {
        const struct gpu_info *gpu = &doctor->gpus->gpu[i];
        places += gpu->is_place;
        why = gpu->is_place || *why ? why : gpu->why_not;
    }
    if (places)
        doctor_pass(check, "%zu of %zu can take tasks (%s)", places, doctor->gpus->count,
            doctor->gpus->gpu[0].name);
    else
        doctor_fail(check, "see nvidia-smi", "none can take tasks: %s", why);
}

/* Is SM activity measured on all GPUs? Else *ret_why of the first without it. */
static bool has_gpm(struct doctor *doctor, char *why, size_t size)
{
    bool all = true;
    for (size_t i = 0; i < doctor->gpus->count; i++) {
        struct gpu_sample sample = {0};
        gpu_set_sample(doctor->gpus, i, &sample);
        poll(NULL, 0, GPM_WAIT_MS);
        gpu_set_sample(doctor->gpus, i, &sample);
        if (doctor->gpus->gpu[i].is_place && sample.activity.source != GPU_ACTIVITY_GPM) {
            if (all)
                snprintf(why, size, "GPU %s: %s", doctor->gpus->gpu[i].index,
                    *sample.activity.reason ? sample.activity.reason : "no values");
            all = false;
        }
        gpu_sample_fini(&sample);
    }
    return all;
}

void check_gpm(struct doctor *doctor, struct doctor_check *check)
{
    char why[160] = "";
    if (!has_gpus(doctor, check))
        return;
    if (has_gpm(doctor, why, sizeof why))
        doctor_pass(check, "the driver reports SM activity");
    else
        doctor_fail(check,
            "GPUs before Hopper have no GPM: install NVIDIA DCGM, and colloc reads SM activity "
            "from it",
            "%s", why);
}

/* What colloc-dcgm prints alone: the library and its engine, or why there are none. Returns whether
 * the library works. */
static bool try_dcgm_library(char *text, size_t size)
{
    char path[PATH_MAX];
    struct fault fault = {0};
    struct span source;
    int status = 0;
    if (dcgm_find_helper(path, sizeof path) < 0) {
        snprintf(text, size, "colloc-dcgm is not installed");
        return false;
    }
    struct program run = {
        .path = path, .argv = (char *[]){path, NULL}, .envp = environ, .limit_us = DCGM_LIMIT_US};
    int r = program_run(&run, text, size, &status, &fault);
    bool works = r == 0 && status == 0 && dcgm_source_take(span_of(text), &source);
    if (works)
        memmove(text, source.at, source.size + 1);
    else if (r < 0)
        snprintf(text, size, "%.150s", fault.text);
    else if (!*text)
        snprintf(text, size, "colloc-dcgm has ended with status %d", status);
    return works;
}

void check_dcgm(struct doctor *doctor, struct doctor_check *check)
{
    char library[160], path[512], why[160];
    if (try_dcgm_library(library, sizeof library))
        doctor_pass(check, "%s", library);
    else if (program_find("dcgmi", path, sizeof path))
        doctor_pass(check, "%.100s (%.100s)", path, library);
    else if (doctor->gpus && has_gpm(doctor, why, sizeof why))
        doctor_pass(check, "not installed, and not needed: all GPUs have GPM");
    else
        doctor_fail(check,
            "install NVIDIA DCGM (package datacenter-gpu-manager) where GPUs have "
            "no GPM",
            "dcgmi is not on PATH; %.100s", library);
}

void check_mps(struct doctor *doctor, struct doctor_check *check)
{
    char path[512];
    if (program_find("nvidia-cuda-mps-control", path, sizeof path))
        doctor_pass(check, "%.200s", path);
    else
        doctor_fail(check,
            "install the driver's compute programs (Debian: nvidia-cuda-mps, Ubuntu: "
            "nvidia-compute-utils); without them tasks share GPUs by time slicing",
            "nvidia-cuda-mps-control is not on PATH");
}

void check_mig(struct doctor *doctor, struct doctor_check *check)
{
    size_t on = 0, able = 0, instances = 0;
    if (!has_gpus(doctor, check))
        return;
    for (size_t i = 0; i < doctor->gpus->count; i++) {
        const struct gpu_info *gpu = &doctor->gpus->gpu[i];
        instances += gpu->is_mig;
        on += !gpu->is_mig && gpu->mig_mode == GPU_MIG_ON;
        able += !gpu->is_mig && gpu->mig_mode != GPU_MIG_UNSUPPORTED;
    }
    if (!able)
        doctor_pass(check, "these GPUs have no MIG");
    else if (on && !instances)
        doctor_fail(check, "make instances (colloc mig) or turn MIG off (nvidia-smi -mig 0)",
            "MIG is on, and there is no instance to run tasks on");
    else
        doctor_pass(check, "on for %zu of %zu GPUs, %zu instances", on, able, instances);
}

/* Returns how many cards have persistence mode off, as far as they report it. */
static struct reading count_not_persistent(const char *library)
{
    struct nvml nvml;
    struct fault fault;
    unsigned cards = 0, mode;
    struct reading off = READING_NONE;
    if (nvml_load(&nvml, library, &fault) != 0)
        return off;
    if (nvml.persistence_mode && nvml.init() == NVML_OK) {
        nvml.device_count(&cards);
        for (unsigned i = 0; i < cards; i++) {
            nvml_device device;
            if (nvml.device_by_index(i, &device) != NVML_OK ||
                nvml.persistence_mode(device, &mode) != NVML_OK)
                continue;
            off = reading_of(reading_or(off, 0) + (mode == 0));
        }
        nvml.shutdown();
    }
    nvml_unload(&nvml);
    return off;
}

void check_persistence(struct doctor *doctor, struct doctor_check *check)
{
    if (!has_gpus(doctor, check))
        return;
    struct reading off = count_not_persistent(doctor->options.nvml_library);
    if (off.valid && off.value > 0)
        doctor_fail(check, "enable it: systemctl enable --now nvidia-persistenced",
            "off for %d GPUs: the driver is loaded anew for each first process, which takes "
            "seconds",
            (int)off.value);
    else
        doctor_pass(check, off.valid ? "on" : "the driver does not report it");
}
