/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU set and its samples, over a fake NVML that says what the test wants. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "fake_nvml.h"
#include "gpu/gpu.h"
#include "gpu/nvml_abi.h"

/* One driver, one set over it, one sample. */
struct world {
    void *library;
    const char *path;
    struct fake_nvml *nvml;
    struct gpu_set *set;
    struct gpu_sample sample;
    struct fault fault;
    int64_t now_us;
};

static struct fake_gpu a_gpu(const char *uuid)
{
    return (struct fake_gpu){
        .uuid = uuid,
        .name = "NVIDIA A100-SXM4-40GB",
        .mem_total = 40 * (uint64_t)GIB,
        .mem_reserved = (uint64_t)GIB,
        .mem_used = 3 * (uint64_t)GIB,
        .utilisation = 90,
        .milliwatt = 250500,
        .millijoule = 5000000,
    };
}

static struct world world_of(const char *variable)
{
    struct world w = {.path = getenv(variable), .now_us = SECOND_US};

    assert_non_null(w.path);
    w.library = dlopen(w.path, RTLD_NOW);
    assert_non_null(w.library);
    w.nvml = dlsym(w.library, "fake_nvml");
    *w.nvml = (struct fake_nvml){.cards = 1, .gpu = {a_gpu("GPU-0")}};
    return w;
}

static void world_open(struct world *w)
{
    assert_int_equal(gpu_set_open(w->path, &w->fault, &w->set), 0);
}

static void world_end(struct world *w)
{
    gpu_set_close(w->set);
    gpu_sample_fini(&w->sample);
    assert_int_equal(w->nvml->inits, 0);
    assert_int_equal(w->nvml->gpm_samples_alive, 0);
    dlclose(w->library);
}

/* A second passes on both clocks. */
static void look(struct world *w, size_t i)
{
    w->now_us += SECOND_US;
    w->nvml->time_us += (double)SECOND_US;
    gpu_set_sample_at(w->set, i, w->now_us, &w->sample);
}

static void assert_reading(struct reading r, double expected)
{
    assert_true(r.valid);
    assert_true(fabs(r.value - expected) < 1e-6);
}

static void test_no_library_is_an_answer(void **state)
{
    struct fault fault = {0};
    struct gpu_set *set;

    assert_int_equal(gpu_set_open("/nowhere/libnvidia-ml.so.1", &fault, &set), GPU_NO_LIBRARY);
    assert_null(set);
    assert_non_null(strstr(fault.text, "/nowhere/libnvidia-ml.so.1"));
}

static void test_a_library_that_is_not_nvml(void **state)
{
    struct fault fault = {0};
    struct gpu_set *set;

    assert_int_equal(gpu_set_open("libc.so.6", &fault, &set), GPU_NO_LIBRARY);
    assert_non_null(strstr(fault.text, "nvmlInit_v2"));
}

static void test_init_failures(void **state)
{
    static const struct {
        int result, expected;
    } cases[] = {
        {NVML_DRIVER_NOT_LOADED, GPU_NO_DRIVER},
        {NVML_LIB_RM_VERSION_MISMATCH, GPU_NO_DRIVER},
        {NVML_GPU_NOT_FOUND, GPU_NO_DEVICES},
        {NVML_NO_PERMISSION, -EACCES},
        {NVML_UNKNOWN, -EIO},
    };
    struct world w = world_of("FAKE_NVML_NEW");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w.nvml->init_result = cases[i].result;
        w.fault.text[0] = '\0';
        assert_int_equal(gpu_set_open(w.path, &w.fault, &w.set), cases[i].expected);
        assert_null(w.set);
        assert_true(w.fault.text[0] != '\0');
    }
    world_end(&w);
}

static void test_time_of_processes(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    const uint64_t t = 1000 * SECOND_US;

    gpu->compute = (struct fake_processes){
        .count = 1, .item = {{100, GIB}, {200, GIB}, {300, GIB}}};
    gpu->time[0] = (__typeof__(gpu->time[0])){100, t - 5 * SECOND_US, 99};
    gpu->time[1] = (__typeof__(gpu->time[0])){100, t, 60};
    gpu->time[2] = (__typeof__(gpu->time[0])){100, t - SECOND_US / 2, 20};
    gpu->time[3] = (__typeof__(gpu->time[0])){200, t, 30};
    gpu->time[4] = (__typeof__(gpu->time[0])){200, t, 130};
    world_open(&w);
    look(&w, 0);
    assert_int_equal(gpu->time_asked, 0);
    assert_false(w.sample.processes.item[0].sm_utilisation.valid);
    gpu->compute.count = 3;
    look(&w, 0);
    assert_reading(w.sample.processes.item[0].sm_utilisation, 0.4);
    assert_reading(w.sample.processes.item[1].sm_utilisation, 0.3);
    assert_reading(w.sample.processes.item[2].sm_utilisation, 0);
    unsigned asked = gpu->time_asked;
    gpu->mps = (struct fake_processes){.count = 1, .item = {{400, GIB}}};
    look(&w, 0);
    assert_int_equal(gpu->time_asked, asked);
    assert_false(w.sample.processes.item[0].sm_utilisation.valid);
    world_end(&w);
}

static void test_the_driver_tells_no_time_of_processes(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");

    w.nvml->gpu[0].compute = (struct fake_processes){.count = 2, .item = {{100, GIB}, {200, GIB}}};
    world_open(&w);
    look(&w, 0);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    assert_int_equal(w.sample.processes.count, 2);
    assert_false(w.sample.processes.item[0].sm_utilisation.valid);
    world_end(&w);
}

static void test_a_list_of_gpus(void **state)
{
    struct gpu_info info = {.uuid = "GPU-0", .index = "1:0"};

    assert_true(gpu_info_is_listed(&info, ""));
    assert_true(gpu_info_is_listed(&info, "all"));
    assert_true(gpu_info_is_listed(&info, "0,1:0"));
    assert_true(gpu_info_is_listed(&info, "GPU-1,GPU-0"));
    assert_false(gpu_info_is_listed(&info, "1,GPU-01"));
}

static void test_instances_that_share_memory(void **state)
{
    const struct gpu_info one = {.is_mig = true, .parent = 0, .gpu_instance = {1, true}};
    struct gpu_info other = one;

    assert_true(gpu_info_shares_memory(&one, &other));
    other.gpu_instance = reading_of(2);
    assert_false(gpu_info_shares_memory(&one, &other));
    other = one;
    other.parent = 3;
    assert_false(gpu_info_shares_memory(&one, &other));
    const struct gpu_info card = {.index = "0"}, unknown = {.is_mig = true};
    assert_false(gpu_info_shares_memory(&card, &card));
    assert_false(gpu_info_shares_memory(&unknown, &unknown));
}

static void test_a_dear_energy_counter_is_asked_when_it_matters(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->energy_cost_us = 2000;
    world_open(&w);
    look(&w, 0);
    look(&w, 0);
    assert_int_equal(gpu->energy_asked, 1);
    gpu_set_query_all_next(w.set);
    look(&w, 0);
    assert_int_equal(gpu->energy_asked, 2);
    world_end(&w);
}

static void test_what_changes_slowly_is_not_asked_ten_times_a_second(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");

    world_open(&w);
    for (int i = 0; i < 21; i++, w.now_us += 100 * MS_US) {
        gpu_set_sample_at(w.set, 0, w.now_us, &w.sample);
        assert_true(w.sample.sm_clock_mhz.valid);
        assert_reading(w.sample.temperature_c, 40 + i / 9);
    }
    assert_int_equal(w.nvml->gpu[0].temperature_asked, 3);
    world_end(&w);
}

static void look_after(struct world *w, int64_t wait_us)
{
    w->now_us += wait_us;
    gpu_set_sample_at(w->set, 0, w->now_us, &w->sample);
}

static void test_processes_are_listed_again_when_memory_moves(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->compute = (struct fake_processes){
        .count = 2, .item = {{100, GIB}, {200, 2 * (uint64_t)GIB}}};
    world_open(&w);
    look_after(&w, 0);
    look_after(&w, 10 * MS_US);
    unsigned asked = gpu->compute.asked;
    look_after(&w, 10 * MS_US); /* who does not look all day asks each time */
    assert_int_equal(gpu->compute.asked, ++asked);
    gpu_set_limit_overhead(w.set, 0.003);
    for (int i = 0; i < 8; i++) {
        look_after(&w, 100 * MS_US);
        assert_int_equal(gpu->compute.asked, asked);
        assert_int_equal(w.sample.processes.count, 2);
        assert_reading(w.sample.processes.item[1].used_bytes, 2.0 * GIB);
    }
    gpu_set_query_all_next(w.set);
    look_after(&w, 10 * MS_US);
    assert_int_equal(gpu->compute.asked, asked + 1);
    gpu->mem_used -= 2 * (uint64_t)GIB; /* the second's, which is listed for a moment yet */
    look_after(&w, 50 * MS_US);
    assert_int_equal(w.sample.processes.count, 2);
    gpu->compute.count = 1;
    look_after(&w, 50 * MS_US);
    assert_int_equal(gpu->compute.asked, asked + 3);
    assert_int_equal(w.sample.processes.count, 1);
    gpu->compute.item[0].pid = 300; /* another with as much: seen within the second */
    look_after(&w, 850 * MS_US);
    assert_int_equal(w.sample.processes.item[0].pid, 100);
    look_after(&w, 100 * MS_US);
    assert_int_equal(w.sample.processes.item[0].pid, 300);
    asked = gpu->compute.asked;
    gpu->memory_result = NVML_NOT_SUPPORTED; /* then it is not known whether it moved */
    look_after(&w, 10 * MS_US);
    look_after(&w, 10 * MS_US);
    assert_int_equal(gpu->compute.asked, asked + 2);
    world_end(&w);
}

static void test_a_list_that_failed_is_not_repeated(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->compute = (struct fake_processes){
        .result = NVML_UNKNOWN, .count = 1, .item = {{100, GIB}}};
    world_open(&w);
    gpu_set_limit_overhead(w.set, 0.003);
    look_after(&w, 0);
    assert_false(w.sample.processes.valid);
    gpu->compute.result = NVML_OK;
    look_after(&w, 10 * MS_US);
    assert_true(w.sample.processes.valid);
    assert_int_equal(w.sample.processes.count, 1);
    world_end(&w);
}

static void test_who_looks_all_day_asks_for_utilisation_once_a_second(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->gpm = true;
    world_open(&w);
    gpu_set_limit_overhead(w.set, 0.003);
    for (int i = 0; i < 21; i++) {
        look_after(&w, 100 * MS_US);
        assert_reading(w.sample.power_w, gpu->milliwatt / 1e3);
        assert_true(w.sample.utilisation.valid);
    }
    assert_int_equal(gpu->power_asked, 3);
    assert_int_equal(gpu->utilisation_asked, 3);
    gpu->power_result = NVML_NOT_SUPPORTED;
    look_after(&w, SECOND_US);
    assert_false(w.sample.power_w.valid);
    gpu->memory_result = NVML_NOT_SUPPORTED; /* what answers is asked: it is not silent */
    look_after(&w, 10 * MS_US);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    gpu_set_limit_overhead(w.set, 0);
    unsigned asked = gpu->utilisation_asked;
    look_after(&w, 10 * MS_US);
    look_after(&w, 10 * MS_US);
    assert_int_equal(gpu->utilisation_asked, asked + 2);
    world_end(&w);
}

static void test_dear_time_of_processes_is_asked_seldom(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->compute = (struct fake_processes){.count = 2, .item = {{100, GIB}, {200, GIB}}};
    gpu->time[0] = (__typeof__(gpu->time[0])){100, 1000 * SECOND_US, 60};
    gpu->time[1] = (__typeof__(gpu->time[0])){200, 1000 * SECOND_US, 30};
    gpu->time_cost_us = 2500; /* so at most every 2.5 s */
    world_open(&w);
    gpu_set_limit_overhead(w.set, 0.003);
    look_after(&w, 0);
    unsigned asked = gpu->time_asked;
    for (int i = 0; i < 4; i++) {
        gpu->compute.item[0].pid = i < 2 ? 100 : 300; /* of a newcomer nothing is known */
        look_after(&w, SECOND_US / 2);
        assert_int_equal(gpu->time_asked, asked);
        assert_reading(w.sample.processes.item[1].sm_utilisation, 0.3);
        assert_int_equal(
            w.sample.processes.item[0].sm_utilisation.valid, w.sample.processes.item[0].pid == 100);
    }
    look_after(&w, 60 * SECOND_US);
    assert_true(gpu->time_asked > asked);
    world_end(&w);
}

static void test_activity_is_worked_out_at_each_look(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->gpm = true;
    w.nvml->gpm_cost_us = 1000;
    world_open(&w);
    look(&w, 0);
    gpu->busy_us += 0.5 * SECOND_US;
    look(&w, 0);
    assert_reading(w.sample.smact, 0.5);
    gpu->busy_us += 0.3 * SECOND_US;
    look(&w, 0);
    assert_reading(w.sample.smact, 0.3);
    world_end(&w);
}

static void test_dear_activity_is_worked_out_seldom(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];

    gpu->gpm = true;
    w.nvml->gpm_cost_us = 1000;
    world_open(&w);
    gpu_set_limit_overhead(w.set, 4e-4); /* it rests 2.5 s */
    look(&w, 0);
    gpu->busy_us += 0.5 * SECOND_US;
    look(&w, 0);
    assert_reading(w.sample.smact, 0.5);
    assert_int_equal(w.nvml->gpm_computed, 1);
    gpu->busy_us += 0.3 * SECOND_US;
    look(&w, 0);
    look(&w, 0);
    assert_reading(w.sample.smact, 0.5);
    assert_int_equal(w.nvml->gpm_computed, 1);
    gpu_set_query_all_next(w.set);
    look(&w, 0);
    assert_reading(w.sample.smact, 0.1);
    assert_int_equal(w.nvml->gpm_computed, 2);
    world_end(&w);
}

static void test_no_devices_is_an_answer(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");

    w.nvml->cards = 0;
    assert_int_equal(gpu_set_open(w.path, &w.fault, &w.set), GPU_NO_DEVICES);
    assert_null(w.set);
    world_end(&w);
}

static void test_identity(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->cards = 2;
    w.nvml->gpu[1] = a_gpu("GPU-1");
    w.nvml->gpu[1].compute_mode = GPU_COMPUTE_PROHIBITED;
    world_open(&w);

    assert_int_equal(w.set->count, 2);
    assert_string_equal(w.set->driver_version, "550.1");
    const struct gpu_info *gpu = w.set->gpu;
    assert_string_equal(gpu[0].uuid, "GPU-0");
    assert_string_equal(gpu[0].index, "0");
    assert_string_equal(gpu[0].name, "NVIDIA A100-SXM4-40GB");
    assert_string_equal(gpu[0].pci_bus_id, "00000000:07:00.0");
    assert_reading(gpu[0].mem_total_bytes, 40.0 * GIB);
    assert_reading(gpu[0].mem_reserved_bytes, 1.0 * GIB);
    assert_reading(gpu[0].sm_count, 108);
    assert_int_equal(gpu[0].mig_mode, GPU_MIG_UNSUPPORTED);
    assert_true(gpu[0].is_place);
    assert_false(gpu[1].is_place);
    assert_non_null(strstr(gpu[1].why_not, "Prohibited"));
    world_end(&w);
}

static void test_a_card_that_cannot_be_opened_is_listed(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->cards = 2;
    w.nvml->gpu[1] = w.nvml->gpu[0];
    w.nvml->gpu[0].handle_result = NVML_GPU_IS_LOST;
    world_open(&w);

    assert_int_equal(w.set->count, 2);
    assert_false(w.set->gpu[0].is_place);
    assert_string_equal(w.set->gpu[0].why_not, "GPU is lost");
    assert_string_equal(w.set->gpu[1].index, "1");
    assert_true(w.set->gpu[1].is_place);
    look(&w, 0);
    assert_int_equal(w.sample.health, GPU_HEALTH_LOST);
    world_end(&w);
}

static void test_values(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    world_open(&w);
    look(&w, 0);

    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    assert_string_equal(w.sample.health_reason, "");
    assert_int_equal(w.sample.at_us, w.now_us);
    assert_reading(w.sample.mem_total_bytes, 40.0 * GIB);
    assert_reading(w.sample.mem_used_bytes, 3.0 * GIB); /* without the reserve */
    assert_reading(w.sample.mem_free_bytes, 36.0 * GIB);
    assert_reading(w.sample.utilisation, 0.9);
    assert_reading(w.sample.mem_utilisation, 0.05);
    assert_reading(w.sample.power_w, 250.5);
    assert_reading(w.sample.energy_j, 5000);
    assert_reading(w.sample.temperature_c, 40);
    assert_reading(w.sample.sm_clock_mhz, 1410);
    assert_true(w.sample.processes.valid);
    assert_int_equal(w.sample.processes.count, 0);
    assert_false(w.sample.smact.valid); /* this one has no GPM */
    world_end(&w);
}

static void test_an_old_driver_lacks_functions(void **state)
{
    struct world w = world_of("FAKE_NVML_OLD");
    w.nvml->gpu[0].compute = (struct fake_processes){.count = 2, .item = {{7, 100}, {8, 200}}};
    world_open(&w);
    look(&w, 0);

    assert_reading(w.sample.mem_used_bytes, 4.0 * GIB); /* all it can tell includes the reserve */
    assert_false(w.sample.smact.valid);
    assert_true(w.sample.processes.valid);
    assert_int_equal(w.sample.processes.count, 2);
    assert_int_equal(w.sample.processes.item[1].pid, 8);
    assert_reading(w.sample.processes.item[1].used_bytes, 200);
    world_end(&w);
}

static void test_long_process_entries_of_driver_535(void **state)
{
    struct world w = world_of("FAKE_NVML_535");
    w.nvml->gpu[0].compute = (struct fake_processes){
        .count = 3, .item = {{7, 100}, {8, 200}, {9, 300}}};
    world_open(&w);
    look(&w, 0);

    assert_int_equal(w.sample.processes.count, 3);
    assert_int_equal(w.sample.processes.item[2].pid, 9);
    assert_reading(w.sample.processes.item[2].used_bytes, 300);
    world_end(&w);
}

static void test_one_failing_query_costs_one_value(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->gpu[0].power_result = NVML_NOT_SUPPORTED;
    w.nvml->gpu[0].utilisation = 4000000000U;
    world_open(&w);
    look(&w, 0);

    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    assert_false(w.sample.power_w.valid);
    assert_false(w.sample.utilisation.valid);
    assert_true(w.sample.energy_j.valid);
    assert_true(w.sample.processes.valid);
    world_end(&w);
}

static void test_lost_in_the_middle_leaves_nothing_valid(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    world_open(&w);
    look(&w, 0);
    assert_true(w.sample.mem_used_bytes.valid);

    w.nvml->gpu[0].energy_result = NVML_GPU_IS_LOST; /* memory still answered in this look */
    look(&w, 0);
    assert_int_equal(w.sample.health, GPU_HEALTH_LOST);
    assert_string_equal(w.sample.health_reason, "GPU is lost");
    assert_false(w.sample.mem_used_bytes.valid);
    assert_false(w.sample.processes.valid);

    w.nvml->gpu[0].energy_result = 0;
    look(&w, 0);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    world_end(&w);
}

static void test_a_gpu_that_answers_nothing_is_silent(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    world_open(&w);
    w.nvml->gpu[0].result = NVML_UNKNOWN;
    look(&w, 0);
    assert_int_equal(w.sample.health, GPU_HEALTH_SILENT);
    assert_string_equal(w.sample.health_reason, "some error");
    assert_false(w.sample.mem_total_bytes.valid);
    world_end(&w);
}

static void test_energy_never_falls(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    world_open(&w);
    look(&w, 0);
    assert_reading(w.sample.energy_j, 5000);

    w.nvml->gpu[0].millijoule = 1000;
    look(&w, 0);
    assert_false(w.sample.energy_j.valid);

    w.nvml->gpu[0].millijoule = 3000;
    look(&w, 0);
    assert_reading(w.sample.energy_j, 5002);
    world_end(&w);
}

static void test_a_dear_energy_counter_is_asked_seldom(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->energy_cost_us = 2000; /* so at most every 20 s */
    world_open(&w);
    look(&w, 0);
    assert_reading(w.sample.energy_j, 5000);

    for (int i = 0; i < 10; i++)
        look(&w, 0);
    assert_int_equal(gpu->energy_asked, 1);
    assert_reading(w.sample.energy_j, 5000 + 10 * 250.5);

    gpu->millijoule = 5001000; /* less than power had said: the total stays where it is */
    gpu->energy_cost_us = 0;
    for (int i = 0; gpu->energy_asked == 1 && i < 1000; i++)
        look(&w, 0);
    double told_j = w.sample.energy_j.value;
    assert_true(told_j > 5000 + 10 * 250.5);

    gpu->millijoule = 500000000;
    look(&w, 0);
    assert_reading(w.sample.energy_j, 500000);
    world_end(&w);
}

static void test_gpm_is_not_calculated_without_processes(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->gpm = true;
    gpu->utilisation = 0;
    world_open(&w);
    gpu_set_limit_overhead(w.set, 1);
    look(&w, 0);
    look(&w, 0);
    assert_reading(w.sample.smact, 0);
    assert_false(w.sample.pcie_tx_bytes_per_s.valid);
    assert_int_equal(w.nvml->gpm_computed, 0);

    gpu->compute = (struct fake_processes){.count = 1, .item = {{7, 100}}};
    gpu->busy_us += 0.5 * (double)SECOND_US;
    look(&w, 0);
    assert_int_equal(w.nvml->gpm_computed, 1);
    assert_reading(w.sample.smact, 0.5);
    world_end(&w);
}

static void test_a_process_that_ended_since_the_last_look_has_worked(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->gpm = true;
    gpu->utilisation = 0;
    gpu->compute = (struct fake_processes){.count = 1, .item = {{7, 100}}};
    world_open(&w);
    gpu_set_limit_overhead(w.set, 1);
    look(&w, 0);
    look(&w, 0);
    gpu->compute.count = 0;
    w.now_us += SECOND_US; /* the list of processes is read again */
    w.nvml->time_us += (double)SECOND_US;
    gpu->busy_us += 1.2 * (double)SECOND_US;
    look(&w, 0);
    assert_int_equal(w.sample.processes.count, 0);
    assert_reading(w.sample.smact, 0.6);
    look(&w, 0);
    assert_reading(w.sample.smact, 0);
    assert_int_equal(w.nvml->gpm_computed, 2);
    world_end(&w);
}

static void test_a_measurement_sees_what_came_and_went_between_two_looks(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->gpm = true;
    gpu->utilisation = 0;
    world_open(&w);
    look(&w, 0);
    gpu->busy_us += 0.5 * (double)SECOND_US;
    look(&w, 0);
    assert_reading(w.sample.smact, 0.5);

    gpu_set_limit_overhead(w.set, 1);
    gpu->busy_us += 0.25 * (double)SECOND_US;
    gpu_set_query_all_next(w.set);
    look(&w, 0);
    assert_reading(w.sample.smact, 0.25);
    world_end(&w);
}

static void test_process_memory_not_available(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->gpu[0].compute = (struct fake_processes){
        .count = 1, .item = {{7, NVML_MEMORY_NOT_AVAILABLE}}};
    world_open(&w);
    look(&w, 0);
    assert_true(w.sample.processes.valid);
    assert_int_equal(w.sample.processes.item[0].pid, 7);
    assert_false(w.sample.processes.item[0].used_bytes.valid);
    world_end(&w);
}

static void test_processes_in_several_lists_count_once(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->gpu[0].compute = (struct fake_processes){
        .count = 2, .item = {{7, 100}, {8, NVML_MEMORY_NOT_AVAILABLE}}};
    w.nvml->gpu[0].graphics = (struct fake_processes){.count = 1, .item = {{9, 50}}};
    w.nvml->gpu[0].mps = (struct fake_processes){.count = 2, .item = {{7, 100}, {8, 200}}};
    world_open(&w);
    look(&w, 0);

    const struct gpu_process *process = w.sample.processes.item;
    assert_int_equal(w.sample.processes.count, 3);
    assert_int_equal(process[0].kinds, GPU_PROCESS_COMPUTE | GPU_PROCESS_MPS);
    assert_reading(process[0].used_bytes, 100);
    assert_reading(process[1].used_bytes, 200);
    assert_int_equal(process[2].kinds, GPU_PROCESS_GRAPHICS);
    world_end(&w);
}

/* This process takes the name of a server. A name that changes is seen within a second. */
static void test_servers_of_mps_by_their_name(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    char name[16];
    w.nvml->gpu[0].compute = (struct fake_processes){
        .count = 2, .item = {{(unsigned)getpid(), 100}, {1, 100}}};
    world_open(&w);
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, "nvidia-cuda-mps-server"), 0);
    look(&w, 0);
    assert_true(w.sample.processes.item[0].is_mps_server);
    assert_false(w.sample.processes.item[1].is_mps_server);

    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    look_after(&w, 100 * MS_US);
    assert_true(w.sample.processes.item[0].is_mps_server); /* /proc is not read at each sample */
    look(&w, 0);
    assert_false(w.sample.processes.item[0].is_mps_server);
    world_end(&w);
}

static void test_process_list_grows_while_asking(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->gpu[0].compute.count = 100;
    for (unsigned i = 0; i < 100; i++)
        w.nvml->gpu[0].compute.item[i].pid = 1000 + i;
    w.nvml->grow_between = 150;
    world_open(&w);
    look(&w, 0);
    assert_true(w.sample.processes.valid);
    assert_int_equal(w.sample.processes.count, FAKE_PROCESSES_MAX);

    const struct gpu_process *before = w.sample.processes.item;
    look(&w, 0);
    assert_ptr_equal(w.sample.processes.item, before);
    world_end(&w);
}

static void test_a_failing_process_list_is_not_an_empty_one(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    world_open(&w);

    w.nvml->gpu[0].mps.result = NVML_NOT_SUPPORTED;
    look(&w, 0);
    assert_true(w.sample.processes.valid);

    w.nvml->gpu[0].mps.result = NVML_UNKNOWN;
    look(&w, 0);
    assert_false(w.sample.processes.valid);
    world_end(&w);
}

static void test_gpm_covers_the_time_between_looks(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->gpm = true;
    world_open(&w);

    look(&w, 0);
    assert_false(w.sample.smact.valid);
    gpu->busy_us += 250000;
    look(&w, 0);
    assert_reading(w.sample.smact, 0.25);
    assert_reading(w.sample.smocc, 0.25);
    assert_reading(w.sample.fp32_active, 0.25);
    assert_reading(w.sample.pcie_tx_bytes_per_s, 3.0 * MIB);
    assert_false(w.sample.fp64_active.valid); /* this metric is refused by the driver */

    gpu->busy_us += 1000000;
    look(&w, 0);
    assert_reading(w.sample.smact, 1);
    world_end(&w);
}

static void test_gpm_repeats_when_asked_too_soon(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->gpu[0].gpm = true;
    world_open(&w);
    look(&w, 0);
    w.nvml->gpu[0].busy_us += 500000;
    look(&w, 0);

    w.nvml->gpu[0].busy_us += 50000;
    gpu_set_sample_at(w.set, 0, w.now_us + 50 * MS_US, &w.sample);
    assert_reading(w.sample.smact, 0.5);

    gpu_set_gpm_interval(w.set, 20 * MS_US);
    w.nvml->time_us += 50000;
    gpu_set_sample_at(w.set, 0, w.now_us + 50 * MS_US, &w.sample);
    assert_reading(w.sample.smact, 1);
    world_end(&w);
}

static void test_gpm_counter_that_goes_back(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->gpm = true;
    gpu->busy_us = 9e6;
    world_open(&w);
    look(&w, 0);

    gpu->busy_us = 0;
    look(&w, 0);
    assert_false(w.sample.smact.valid);
    gpu->busy_us = 100000;
    look(&w, 0);
    assert_reading(w.sample.smact, 0.1);
    gpu->busy_us += 5e6; /* five times what there can be */
    look(&w, 0);
    assert_false(w.sample.smact.valid);
    world_end(&w);
}

static void test_gpm_that_fails_starts_anew(void **state)
{
    struct world w = world_of("FAKE_NVML_NEW");
    struct fake_gpu *gpu = &w.nvml->gpu[0];
    gpu->gpm = true;
    world_open(&w);
    look(&w, 0);
    look(&w, 0);
    assert_reading(w.sample.smact, 0);

    gpu->gpm_result = NVML_UNKNOWN;
    look(&w, 0);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    assert_false(w.sample.smact.valid);
    gpu->gpm_result = 0;
    look(&w, 0);
    assert_false(w.sample.smact.valid);
    look(&w, 0);
    assert_true(w.sample.smact.valid);
    world_end(&w);
}

static struct world world_with_mig(void)
{
    struct world w = world_of("FAKE_NVML_NEW");
    w.nvml->gpu[0].mig_capable = w.nvml->gpu[0].mig_on = w.nvml->gpu[0].gpm = true;
    w.nvml->gpu[0].most_instances = 7;
    for (unsigned i = 1; i < 3; i++) {
        w.nvml->gpu[i] = a_gpu(i == 1 ? "MIG-a" : "MIG-b");
        w.nvml->gpu[i].name = i == 1 ? "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
                                     : "NVIDIA A100-SXM4-40GB";
        w.nvml->gpu[i].mem_total = 20096 * (uint64_t)MIB;
        w.nvml->gpu[i].power_result = NVML_NOT_SUPPORTED;
        w.nvml->gpu[i].is_instance = true;
        w.nvml->gpu[i].gpu_instance = i;
    }
    world_open(&w);
    return w;
}

static void test_mig_instances_are_the_places(void **state)
{
    struct world w = world_with_mig();
    const struct gpu_info *gpu = w.set->gpu;

    assert_int_equal(w.set->count, 3);
    assert_int_equal(gpu[0].mig_mode, GPU_MIG_ON);
    assert_false(gpu[0].is_place);
    assert_true(gpu[1].is_place);
    assert_true(gpu[1].is_mig);
    assert_int_equal(gpu[1].parent, 0);
    assert_string_equal(gpu[1].uuid, "MIG-a");
    assert_string_equal(gpu[1].index, "0:0");
    assert_string_equal(gpu[2].index, "0:1");
    assert_string_equal(gpu[1].pci_bus_id, gpu[0].pci_bus_id);
    assert_reading(gpu[1].sm_count, 42);
    assert_reading(gpu[1].gpu_slices, 3);
    assert_string_equal(gpu[1].profile, "3g.20gb");
    assert_string_equal(gpu[2].profile, "3g.20gb"); /* from its slices: its name does not say */
    world_end(&w);
}

/* Two compute instances of a GPU instance have the part of the card's power that it has. */
static void test_compute_instances_have_a_part_of_the_power(void **state)
{
    struct world w = world_with_mig();

    assert_reading(w.set->gpu[0].power_limit_w, 350);
    assert_reading(w.set->gpu[1].power_limit_w, 150);
    gpu_set_close(w.set);
    w.nvml->gpu[1].compute_slices = 1;
    w.nvml->gpu[2].compute_slices = 2;
    world_open(&w);
    assert_reading(w.set->gpu[1].power_limit_w, 50);
    assert_reading(w.set->gpu[2].power_limit_w, 100);
    gpu_set_close(w.set);
    w.nvml->gpu[0].most_instances = 4; /* an A30 */
    world_open(&w);
    assert_reading(w.set->gpu[0].card_slices, 4);
    assert_reading(w.set->gpu[1].power_limit_w, 350 / 4.0);
    assert_reading(w.set->gpu[2].power_limit_w, 350 / 2.0);
    world_end(&w);
}

static void test_mig_instance_of_unknown_slices(void **state)
{
    struct world w = world_with_mig();

    gpu_set_close(w.set);
    w.nvml->gpu[1].attributes_result = NVML_NOT_SUPPORTED;
    world_open(&w);
    assert_false(w.set->gpu[1].gpu_slices.valid);
    assert_false(w.set->gpu[1].compute_slices.valid);
    assert_false(w.set->gpu[1].sm_count.valid);
    assert_reading(w.set->gpu[2].gpu_slices, 3);
    world_end(&w);
}

static void test_mig_instance_sample(void **state)
{
    struct world w = world_with_mig();

    look(&w, 2);
    w.nvml->gpu[2].busy_us += 750000;
    look(&w, 2);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    assert_reading(w.sample.mem_total_bytes, 20096.0 * MIB);
    assert_false(w.sample.utilisation.valid);
    assert_false(w.sample.power_w.valid);
    assert_reading(w.sample.smact, 0.75);
    assert_true(w.sample.processes.valid);

    look(&w, 0);
    assert_false(w.sample.processes.valid);
    assert_true(w.sample.power_w.valid);
    world_end(&w);
}

static void test_mig_instance_that_vanishes(void **state)
{
    struct world w = world_with_mig();

    look(&w, 1);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    w.nvml->gpu[1].result = w.nvml->gpu[1].power_result = NVML_NOT_FOUND;
    look(&w, 1);
    assert_int_equal(w.sample.health, GPU_HEALTH_GONE);
    assert_false(w.sample.mem_used_bytes.valid);
    look(&w, 2);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    world_end(&w);
}

/* The next set, in the world's place. */
static void renew(struct world *w, int expected)
{
    struct gpu_set *next;
    assert_int_equal(gpu_set_renew(w->set, true, &next), expected);
    if (expected != GPU_SET_CHANGED)
        return;
    gpu_set_close(w->set);
    w->set = next;
}

static void test_instances_come_and_go(void **state)
{
    struct world w = world_with_mig();
    unsigned alive;

    look(&w, 0);
    look(&w, 2);
    w.nvml->gpu[0].millijoule += 5000;
    look(&w, 0);
    double energy_j = w.sample.energy_j.value;
    renew(&w, 0);
    alive = w.nvml->gpm_samples_alive;
    w.nvml->gpu[1].is_instance = false;
    renew(&w, GPU_SET_CHANGED);
    assert_int_equal(w.set->count, 2);
    assert_string_equal(w.set->gpu[1].uuid, "MIG-b");
    assert_int_equal(w.set->gpu[1].parent, 0);
    assert_int_equal(w.nvml->gpm_samples_alive, alive - 2);

    w.nvml->gpu[2].busy_us += 750000;
    look(&w, 1);
    assert_reading(w.sample.smact, 0.375); /* over both seconds since it was looked at last */
    look(&w, 0);
    assert_reading(w.sample.energy_j, energy_j);

    w.nvml->gpu[1].is_instance = true;
    renew(&w, GPU_SET_CHANGED);
    assert_int_equal(w.set->count, 3);
    look(&w, 1);
    assert_int_equal(w.sample.health, GPU_HEALTH_OK);
    assert_int_equal(w.nvml->inits, 1);
    world_end(&w);
}

static void test_what_a_card_does_not_tell_has_not_changed(void **state)
{
    struct world w = world_with_mig();

    w.nvml->gpu[0].result = NVML_UNKNOWN;
    renew(&w, 0);
    assert_int_equal(w.set->count, 3);
    w.nvml->gpu[0].result = 0;
    w.nvml->gpu[0].mig_on = false;
    w.nvml->gpu[0].compute_mode = 3;
    renew(&w, GPU_SET_CHANGED);
    assert_int_equal(w.set->count, 1);
    assert_true(w.set->gpu[0].is_place);
    assert_int_equal(w.set->gpu[0].compute_mode, GPU_COMPUTE_EXCLUSIVE_PROCESS);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_library_is_an_answer),
        cmocka_unit_test(test_a_library_that_is_not_nvml),
        cmocka_unit_test(test_init_failures),
        cmocka_unit_test(test_no_devices_is_an_answer),
        cmocka_unit_test(test_time_of_processes),
        cmocka_unit_test(test_what_changes_slowly_is_not_asked_ten_times_a_second),
        cmocka_unit_test(test_processes_are_listed_again_when_memory_moves),
        cmocka_unit_test(test_a_list_that_failed_is_not_repeated),
        cmocka_unit_test(test_who_looks_all_day_asks_for_utilisation_once_a_second),
        cmocka_unit_test(test_dear_time_of_processes_is_asked_seldom),
        cmocka_unit_test(test_activity_is_worked_out_at_each_look),
        cmocka_unit_test(test_dear_activity_is_worked_out_seldom),
        cmocka_unit_test(test_the_driver_tells_no_time_of_processes),
        cmocka_unit_test(test_a_list_of_gpus),
        cmocka_unit_test(test_instances_that_share_memory),
        cmocka_unit_test(test_a_dear_energy_counter_is_asked_when_it_matters),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_a_card_that_cannot_be_opened_is_listed),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_an_old_driver_lacks_functions),
        cmocka_unit_test(test_long_process_entries_of_driver_535),
        cmocka_unit_test(test_one_failing_query_costs_one_value),
        cmocka_unit_test(test_lost_in_the_middle_leaves_nothing_valid),
        cmocka_unit_test(test_a_gpu_that_answers_nothing_is_silent),
        cmocka_unit_test(test_energy_never_falls),
        cmocka_unit_test(test_a_dear_energy_counter_is_asked_seldom),
        cmocka_unit_test(test_gpm_is_not_calculated_without_processes),
        cmocka_unit_test(test_a_process_that_ended_since_the_last_look_has_worked),
        cmocka_unit_test(test_a_measurement_sees_what_came_and_went_between_two_looks),
        cmocka_unit_test(test_process_memory_not_available),
        cmocka_unit_test(test_processes_in_several_lists_count_once),
        cmocka_unit_test(test_servers_of_mps_by_their_name),
        cmocka_unit_test(test_process_list_grows_while_asking),
        cmocka_unit_test(test_a_failing_process_list_is_not_an_empty_one),
        cmocka_unit_test(test_gpm_covers_the_time_between_looks),
        cmocka_unit_test(test_gpm_repeats_when_asked_too_soon),
        cmocka_unit_test(test_gpm_counter_that_goes_back),
        cmocka_unit_test(test_gpm_that_fails_starts_anew),
        cmocka_unit_test(test_mig_instances_are_the_places),
        cmocka_unit_test(test_compute_instances_have_a_part_of_the_power),
        cmocka_unit_test(test_mig_instance_of_unknown_slices),
        cmocka_unit_test(test_mig_instance_sample),
        cmocka_unit_test(test_mig_instance_that_vanishes),
        cmocka_unit_test(test_instances_come_and_go),
        cmocka_unit_test(test_what_a_card_does_not_tell_has_not_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
