/* SPDX-License-Identifier: Apache-2.0 */
/* The table of GPU kinds that simulator and emulator share. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "sharing/gpu_kind.h"

static int init(void **state)
{
    static struct gpu_kinds kinds;
    struct fault fault = {""};
    *state = &kinds;
    return gpu_kinds_init(&kinds, &fault);
}

static const struct gpu_kind *find(const struct gpu_kinds *kinds, const char *name)
{
    return gpu_kinds_find(kinds, span_of(name));
}

static void test_built_in(void **state)
{
    const struct gpu_kind *a100 = find(*state, "A100-40GB"), *h100 = find(*state, "H100");
    assert_int_equal(a100->total_bytes, 40960 * MIB);
    assert_int_equal(a100->reserved_bytes, 624 * MIB);
    assert_true(a100->work_w > 189 && a100->work_w < 191);
    assert_string_equal(a100->nvml.product, "NVIDIA A100-SXM4-40GB");
    assert_int_equal(a100->nvml.cuda_major, 8);
    assert_int_equal(a100->nvml.pci_device_id, 0x20B010DE);
    assert_string_equal(h100->nvml.product, "NVIDIA H100 80GB HBM3");
    assert_null(find(*state, "A100"));
    assert_null(find(*state, ""));
}

/* What people compare with their own nvidia-smi: total memory, SMs, limit of power, capability. */
static void test_published_figures(void **state)
{
    static const struct {
        const char *name;
        int total_mib, sms, limit_w, cuda_major, cuda_minor;
    } published[] = {
        {"V100-16GB", 16384, 80, 300, 7, 0},
        {"V100-32GB", 32768, 80, 300, 7, 0},
        {"T4", 15360, 40, 70, 7, 5},
        {"A10", 23028, 72, 150, 8, 6},
        {"A30", 24576, 56, 165, 8, 0},
        {"A40", 46068, 84, 300, 8, 6},
        {"L4", 23034, 58, 72, 8, 9},
        {"L40S", 46068, 142, 350, 8, 9},
        {"RTX-A6000", 49140, 84, 300, 8, 6},
        {"RTX-3090", 24576, 82, 350, 8, 6},
        {"RTX-4090", 24564, 128, 450, 8, 9},
        {"RTX-5090", 32607, 170, 575, 12, 0},
        {"B200", 183359, 148, 1000, 10, 0},
    };
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct gpu_kind *kind = find(*state, published[i].name);
        assert_non_null(kind);
        assert_int_equal(kind->total_bytes / MIB, published[i].total_mib);
        assert_int_equal(kind->sms, published[i].sms);
        assert_int_equal((int)kind->limit_w, published[i].limit_w);
        assert_int_equal(kind->nvml.cuda_major, published[i].cuda_major);
        assert_int_equal(kind->nvml.cuda_minor, published[i].cuda_minor);
        assert_true(kind->reserved_bytes > 0 && kind->reserved_bytes < GIB);
        assert_true(kind->awake_w + kind->work_w <= kind->limit_w);
    }
}

/* Only ratios have a meaning. An unknown speed is 0, which is no ratio. */
static void test_speed(void **state)
{
    struct gpu_kinds *kinds = *state;
    int a100 = gpu_kind_speed(find(kinds, "A100-40GB")), t4 = gpu_kind_speed(find(kinds, "T4"));
    assert_int_equal(a100, 697); /* 312 TFLOPS, 1555 GB/s */
    assert_int_equal(t4, 144);
    for (int i = 0; i < kinds->n; i++)
        assert_true(gpu_kind_speed(&kinds->kinds[i]) > 100);
    struct fault fault;
    const char *own = "kind X 9 1 9 9 1 1 1\nkind Y 9 1 9 9 1 1 1\nspeed 4 9\n";
    assert_int_equal(gpu_kinds_read(kinds, span_of(own), "own", &fault), 0);
    assert_int_equal(gpu_kind_speed(find(kinds, "X")), 0);
    assert_int_equal(gpu_kind_speed(find(kinds, "Y")), 6);
}

/* As many as the largest profile has. */
static void test_slices(void **state)
{
    static const struct {
        const char *name;
        int compute, memory;
    } known[] = {{"A100-40GB", 7, 8}, {"H200", 7, 8}, {"A30", 4, 4}, {"T4", 0, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(find(*state, known[i].name)->compute_slices, known[i].compute);
        assert_int_equal(find(*state, known[i].name)->memory_slices, known[i].memory);
    }
}

static void test_alias(void **state)
{
    assert_ptr_equal(find(*state, "H100-80GB"), find(*state, "H100"));
}

static void test_profiles(void **state)
{
    const struct gpu_kind *kind = find(*state, "A100-40GB");
    const struct mig_profile *profile =
        &kind->profiles[gpu_kind_find_profile(kind, span_of("3g.20gb"))];
    assert_int_equal(profile->compute_slices, 3);
    assert_int_equal(profile->memory_slices, 4);
    assert_int_equal(gpu_kind_find_profile(kind, span_of("3g.71gb")), -1);
}

/* As `nvidia-smi mig -lgipp` prints them. The A100's last memory slice has no compute slice. */
static void test_starts(void **state)
{
    static const struct {
        const char *kind, *profile, *starts;
    } printed[] = {{"A100-40GB", "1g.5gb", "0123456"}, {"A100-40GB", "1g.10gb", "0246"},
        {"A100-40GB", "2g.10gb", "024"}, {"A100-40GB", "3g.20gb", "04"},
        {"A100-40GB", "4g.20gb", "0"}, {"A100-40GB", "7g.40gb", "0"}, {"A30", "1g.6gb", "0123"},
        {"A30", "2g.12gb", "02"}, {"A30", "4g.24gb", "0"}};
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        const struct gpu_kind *kind = find(*state, printed[i].kind);
        char text[MIG_MEMORY_SLICES_MAX + 1] = "";
        int starts[MIG_MEMORY_SLICES_MAX];
        int at = gpu_kind_find_profile(kind, span_of(printed[i].profile));
        int n = mig_profile_starts(kind, &kind->profiles[at], starts);
        for (int k = 0; k < n; k++)
            text[k] = (char)('0' + starts[k]);
        assert_string_equal(text, printed[i].starts);
    }
}

static void read(struct gpu_kinds *kinds, const char *text)
{
    struct fault fault = {""};
    if (gpu_kinds_read(kinds, span_of(text), "own", &fault) < 0)
        fail_msg("%s", fault.text);
}

static void test_replaced(void **state)
{
    struct gpu_kinds *kinds = *state;
    int n = kinds->n;
    read(
        kinds, "constant linear_memory 1\nkind H100 1000 10 20 300 20 30 100\nmig half 500 10 4\n");
    assert_int_equal(kinds->n, n);
    assert_int_equal(find(kinds, "H100")->total_bytes, 1000 * MIB);
    assert_int_equal(find(kinds, "H100")->n_profiles, 1);
    assert_int_equal(find(kinds, "H100")->profiles[0].compute_slices, 4);
    assert_null(find(kinds, "H100-80GB"));
    assert_string_equal(find(kinds, "H100")->nvml.product, "H100"); /* nothing else is known */
    assert_true(kinds->constants.linear_memory == 1);
    assert_int_equal(find(kinds, "H200")->n_profiles, 6);
}

static void refuse(struct gpu_kinds *kinds, const char *text, const char *reason)
{
    struct fault fault = {""};
    assert_true(gpu_kinds_read(kinds, span_of(text), "own", &fault) < 0);
    if (!strstr(fault.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, reason);
}

static void test_refused(void **state)
{
    refuse(*state, "mig 1g.5gb 10 1 1\n", "own:1: a line \"mig\" must follow its kind");
    refuse(*state, "\nkind X 9 1 9 9 1 1 1\nnvml 8.0 7\n", "own:3: nvml CUDA");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nnvml 8 7 9 9 4 20B0 X\n", "pci_id: \"20B0\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nnvml 8 0 9 9 4 20B010DE X\n", "architecture: \"0\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nmig 1g.5gb 10 10 1\n", "sms: \"10\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nmig 1g.5gb 10 1 9\n", "memory slices: \"9\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nalias a,b\n", "alias NAME");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nmig a+b 10 1 1\n", "mig NAME");
    refuse(*state, "speed 1 1\n", "a line \"speed\" must follow its kind");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nspeed 1\n", "speed TENSOR_TFLOPS");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nspeed 0 1\n", "tensor_tflops: \"0\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nspeed 1 nan\n", "bandwidth_gbs: \"nan\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nspeed 1 1 0\n", "efficiency: \"0\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\nspeed 1 1 1 1\n", "speed TENSOR_TFLOPS");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0:1\n", "power SMACT:WATTS ..., 2 to 12 points");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0 1:9\n", "power SMACT:WATTS: \"0\"");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0:x 1:9\n", "is not possible");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0:1 0:2 1:9\n", "must rise");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0:3 1:2\n", "must rise");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0.1:1 1:9\n", "from SMACT 0 to 1");
    refuse(*state, "kind X 9 1 9 9 1 1 1\npower 0:1 1:10\n", "up to limit_w");
    refuse(*state, "power 0:1 1:9\n", "a line \"power\" must follow its kind");
    refuse(*state, "gpu X\n", "not with \"gpu\"");
}

/* Either may be missing, and is then not known. */
static void test_rates_of_decoding(void **state)
{
    struct gpu_kinds *kinds = *state;
    assert_true(kinds->constants.decode_rate == 0 && kinds->constants.decode_most == 0);
    read(kinds, "constant decode_rate 90.5\n");
    assert_true(kinds->constants.decode_rate == 90.5 && kinds->constants.decode_most == 0);
    refuse(kinds, "constant decode_most 90\n", "own: decode_most 90: must not be below");
    read(kinds, "constant decode_most 1200\nconstant decode_rate 90\n");
    assert_true(kinds->constants.decode_rate == 90 && kinds->constants.decode_most == 1200);
    read(kinds, "constant decode_rate 70\nconstant decode_most 70\n"); /* one processor */
    refuse(kinds, "constant decode_rate -1\n", "decode_rate: \"-1\"");
    refuse(kinds, "constant decode_rate nan\n", "decode_rate: \"nan\"");
    refuse(kinds, "constant decode_most 1e7\n", "decode_most: \"1e7\"");
}

static bool is_about(double value, double expected)
{
    return value > expected - 1e-9 && value < expected + 1e-9;
}

/* A kind with measured power goes by its activity; the power of others is the sum of what tasks
 * add, up to the limit. The published board of 275 W saturates. */
static void test_power(void **state)
{
    struct gpu_kinds *kinds = *state;
    read(kinds,
        "kind Y 9 1 9 300 20 30 100\npower 0:40 0.5:200 1:240\nkind Z 9 1 9 300 20 30 100\n");
    const struct gpu_kind *curve = find(kinds, "Y"), *sum = find(kinds, "Z");
    assert_true(is_about(gpu_kind_power_w(curve, 0, 500), 40));
    assert_true(is_about(gpu_kind_power_w(curve, 0.25, 0), 120));
    assert_true(is_about(gpu_kind_power_w(curve, 0.75, 0), 220));
    assert_true(is_about(gpu_kind_power_w(curve, 1.001, 0), 240));
    assert_true(is_about(gpu_kind_power_w(sum, 1, 100), 130));
    assert_true(is_about(gpu_kind_power_w(sum, 0, 400), 300));
    const struct gpu_kind *station = find(kinds, "A100-40GB-DGX-Station");
    assert_true(gpu_kind_power_w(station, 1, 0) < station->limit_w);
    assert_true(gpu_kind_power_w(station, 1, 0) - gpu_kind_power_w(station, 0.85, 0) < 15);
    assert_string_equal(gpu_kinds_find_product(kinds, "NVIDIA A100-SXM4-40GB", 40960 * MIB)->name,
        "A100-40GB"); /* the driver calls both by this name */
}

/* docs/measured/kinds.md: the speed of training, relative to an A100-80GB. */
static void test_published_speeds(void **state)
{
    static const struct {
        const char *name;
        double speed;
    } published[] = {{"V100-16GB", 0.38}, {"RTX-3090", 0.46}, {"A10", 0.34}, {"A6000", 0.54},
        {"RTX-4090", 0.74}, {"H100", 1.68}};
    double a100 = gpu_kind_speed(find(*state, "A100-80GB"));
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        assert_true(fabs(gpu_kind_speed(find(*state, published[i].name)) / a100 -
                         published[i].speed) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_built_in, init),
        cmocka_unit_test_setup(test_published_figures, init),
        cmocka_unit_test_setup(test_speed, init),
        cmocka_unit_test_setup(test_slices, init),
        cmocka_unit_test_setup(test_published_speeds, init),
        cmocka_unit_test_setup(test_alias, init),
        cmocka_unit_test_setup(test_profiles, init),
        cmocka_unit_test_setup(test_starts, init),
        cmocka_unit_test_setup(test_replaced, init),
        cmocka_unit_test_setup(test_refused, init),
        cmocka_unit_test_setup(test_rates_of_decoding, init),
        cmocka_unit_test_setup(test_power, init),
        cmocka_unit_test_setup(test_power, init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
