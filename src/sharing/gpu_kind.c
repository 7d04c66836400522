/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads kinds of GPUs and the constants of the model from a text, a line at a time. The first word
 * of a line says what the others are; `alias`, `nvml`, `power` and `mig` lines belong to the kind
 * before them:
 *
 *     constant ramp_s 20
 *     kind  A100-40GB  40960 624 108 400 50 85 190
 *     nvml  8.0 7 1410 1215 4 20B010DE  NVIDIA A100-SXM4-40GB
 *     mig   3g.20gb  19968 42 4
 */
#include "sharing/gpu_kind.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "sharing/built_in_gpu_kinds.h"

enum { WORDS_MAX = 16, WATTS_MAX = 100000 }; /* of a line; chosen: no GPU draws that */

/* Pictures a second. Chosen: a thousand times what a processor of 2026 decodes. */
#define DECODE_MAX 1e6

struct words {
    char text[256];
    char *word[WORDS_MAX];
    int n;
};

/* Splits a line at blanks. An empty line and a comment have no words. */
static int split_words(struct span line, struct words *words, struct fault *fault)
{
    line = span_trim(line);
    words->n = 0;
    if (line.size == 0 || line.at[0] == '#')
        return 0;
    if (!span_copy(line, words->text, sizeof words->text))
        return fault_set(fault, EINVAL, "the line is too long");
    char *rest = words->text, *word;
    while ((word = strsep(&rest, " \t")))
        if (*word && words->n < WORDS_MAX)
            words->word[words->n++] = word;
    return 0;
}

static int report_word(struct fault *fault, const char *what, const char *word)
{
    return fault_set(fault, EINVAL, "%s: \"%.40s\" is not possible", what, word);
}

static int read_mib(const char *what, const char *word, struct fault *fault, int64_t *ret_bytes)
{
    int64_t mib;
    if (parse_int64(word, 0, INT64_C(1) << 30, &mib) < 0)
        return report_word(fault, what, word);
    *ret_bytes = mib * MIB;
    return 0;
}

static int read_number(
    const char *what, const char *word, int min, int max, struct fault *fault, unsigned *ret_number)
{
    int64_t number;
    if (parse_int64(word, min, max, &number) < 0)
        return report_word(fault, what, word);
    *ret_number = (unsigned)number;
    return 0;
}

/* ---- the kinds of lines ---- */

static int read_constant(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    struct gpu_constants *constants = &kinds->constants;
    if (words->n != 3)
        return fault_set(fault, EINVAL, "constant NAME VALUE");
    const struct {
        const char *name;
        double max, *value;
    } numbers[] = {{"startup_s", 3600, &constants->startup_s}, {"ramp_s", 3600, &constants->ramp_s},
        {"spread", 1, &constants->spread}, {"linear_memory", 1, &constants->linear_memory},
        {"decode_rate", DECODE_MAX, &constants->decode_rate},
        {"decode_most", DECODE_MAX, &constants->decode_most},
        {words->word[1], 1, interference_constant(&constants->interference, words->word[1])}};
    if (strcmp(words->word[1], "context_mib") == 0)
        return read_mib(words->word[1], words->word[2], fault, &constants->context_bytes);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (numbers[i].value && strcmp(words->word[1], numbers[i].name) == 0)
            return parse_double(words->word[2], 0, numbers[i].max, numbers[i].value) < 0
                       ? report_word(fault, words->word[1], words->word[2])
                       : 0;
    return fault_set(fault, EINVAL, "there is no constant \"%.40s\"", words->word[1]);
}

static bool is_name(const char *name, size_t size)
{
    return strlen(name) < size && !strpbrk(name, ",:+");
}

static int read_kind_words(const struct words *words, struct fault *fault, struct gpu_kind *kind)
{
    double *watts[] = {&kind->limit_w, &kind->idle_w, &kind->awake_w, &kind->work_w};
    unsigned sms = 0;
    if (words->n != 9 || !is_name(words->word[1], sizeof kind->name))
        return fault_set(
            fault, EINVAL, "kind NAME TOTAL_MIB RESERVED_MIB SMS LIMIT_W IDLE_W AWAKE_W WORK_W");
    strcpy(kind->name, words->word[1]);
    strcpy(kind->nvml.product, words->word[1]);
    int r = read_mib("total_mib", words->word[2], fault, &kind->total_bytes);
    if (r == 0)
        r = read_mib("reserved_mib", words->word[3], fault, &kind->reserved_bytes);
    if (r < 0)
        return r;
    if (kind->reserved_bytes >= kind->total_bytes)
        return report_word(fault, "reserved_mib", words->word[3]);
    if ((r = read_number("sms", words->word[4], 1, 10000, fault, &sms)) < 0)
        return r;
    kind->sms = (int)sms;
    for (int i = 0; i < 4; i++)
        if (parse_double(words->word[5 + i], 0, WATTS_MAX, watts[i]) < 0)
            return report_word(fault, "watts", words->word[5 + i]);
    if (kind->awake_w < kind->idle_w || kind->awake_w > kind->limit_w)
        return fault_set(fault, EINVAL, "awake_w must be between idle_w and limit_w");
    return 0;
}

/* Makes the kind the last one, to which the lines after it belong. */
static int read_kind(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    struct gpu_kind kind = {0};
    int r = read_kind_words(words, fault, &kind), at = 0;
    if (r < 0)
        return r;
    while (at < kinds->n && strcmp(kinds->kinds[at].name, kind.name) != 0)
        at++;
    if (at == GPU_KINDS_MAX)
        return fault_set(fault, EINVAL, "more than %d kinds", GPU_KINDS_MAX);
    if (at < kinds->n)
        memmove(&kinds->kinds[at], &kinds->kinds[at + 1],
            (size_t)(--kinds->n - at) * sizeof *kinds->kinds);
    kinds->kinds[kinds->n++] = kind;
    return 0;
}

static struct gpu_kind *last_kind(struct gpu_kinds *kinds)
{
    return &kinds->kinds[kinds->n - 1];
}

static int read_alias(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    if (words->n != 2 || !is_name(words->word[1], sizeof last_kind(kinds)->alias))
        return fault_set(fault, EINVAL, "alias NAME");
    strcpy(last_kind(kinds)->alias, words->word[1]);
    return 0;
}

static int read_speed(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    const double max = 1e6;
    struct gpu_kind *kind = last_kind(kinds);
    if (words->n != 3 && words->n != 4)
        return fault_set(fault, EINVAL, "speed TENSOR_TFLOPS BANDWIDTH_GBS [EFFICIENCY]");
    if (parse_double(words->word[1], 1, max, &kind->tensor_tflops) < 0)
        return report_word(fault, "tensor_tflops", words->word[1]);
    if (parse_double(words->word[2], 1, max, &kind->bandwidth_gbs) < 0)
        return report_word(fault, "bandwidth_gbs", words->word[2]);
    kind->efficiency = 1;
    if (words->n == 4 && parse_double(words->word[3], 0.01, 100, &kind->efficiency) < 0)
        return report_word(fault, "efficiency", words->word[3]);
    return 0;
}

/* "0.5:205" */
static int read_power_point(char *word, struct power_point *ret_point)
{
    char *power_w = strchr(word, ':');
    if (!power_w)
        return -EINVAL;
    *power_w++ = '\0';
    int r = parse_double(word, 0, 1, &ret_point->smact);
    return r < 0 ? r : parse_double(power_w, 0, WATTS_MAX, &ret_point->power_w);
}

/* The curve covers all of the activity, rises, and ends at the limit at most. */
static int read_power(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    struct gpu_kind *kind = last_kind(kinds);
    struct power_point points[POWER_POINTS_MAX];
    int n = words->n - 1;
    if (n < 2 || n > POWER_POINTS_MAX)
        return fault_set(fault, EINVAL, "power SMACT:WATTS ..., 2 to %d points", POWER_POINTS_MAX);
    for (int i = 0; i < n; i++)
        if (read_power_point(words->word[1 + i], &points[i]) < 0)
            return report_word(fault, "power SMACT:WATTS", words->word[1 + i]);
    for (int i = 1; i < n; i++)
        if (points[i].smact <= points[i - 1].smact || points[i].power_w < points[i - 1].power_w)
            return fault_set(fault, EINVAL, "power: the points must rise");
    if (points[0].smact != 0 || points[n - 1].smact != 1 || points[n - 1].power_w > kind->limit_w)
        return fault_set(
            fault, EINVAL, "power: the points must go from SMACT 0 to 1, up to limit_w at most");
    memcpy(kind->power, points, (size_t)n * sizeof *points);
    kind->n_power = n;
    return 0;
}

static int read_nvml(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    struct gpu_identity_facts facts = {0};
    double cuda;
    char *end;
    if (words->n < 8)
        return fault_set(
            fault, EINVAL, "nvml CUDA ARCHITECTURE SM_MHZ MEMORY_MHZ PCIE PCI_ID PRODUCT");
    if (parse_double(words->word[1], 1, 99, &cuda) < 0)
        return report_word(fault, "cuda", words->word[1]);
    facts.cuda_major = (int)cuda;
    facts.cuda_minor = (int)lround((cuda - facts.cuda_major) * 10);
    int r = read_number("architecture", words->word[2], 1, 100, fault, &facts.architecture);
    if (r == 0)
        r = read_number("sm_mhz", words->word[3], 1, 100000, fault, &facts.sm_mhz);
    if (r == 0)
        r = read_number("memory_mhz", words->word[4], 1, 100000, fault, &facts.memory_mhz);
    if (r == 0)
        r = read_number("pcie", words->word[5], 1, 100, fault, &facts.pcie_generation);
    if (r < 0)
        return r;
    facts.pci_device_id = (unsigned)strtoul(words->word[6], &end, 16);
    if (*end || end != words->word[6] + 8)
        return report_word(fault, "pci_id", words->word[6]);
    for (int i = 7, used = 0; i < words->n && used < (int)sizeof facts.product; i++)
        used += snprintf(facts.product + used, sizeof facts.product - (size_t)used, "%s%s",
            i > 7 ? " " : "", words->word[i]);
    last_kind(kinds)->nvml = facts;
    return 0;
}

/* "3g.20gb" has three slices of compute; a name without them has as many as of memory. */
static int compute_slices(const struct mig_profile *profile)
{
    const char *name = profile->name;
    if (name[0] >= '1' && name[0] <= '0' + MIG_COMPUTE_SLICES_MAX && name[1] == 'g')
        return name[0] - '0';
    return profile->memory_slices < MIG_COMPUTE_SLICES_MAX ? profile->memory_slices
                                                           : MIG_COMPUTE_SLICES_MAX;
}

static int read_profile(struct gpu_kinds *kinds, struct words *words, struct fault *fault)
{
    struct gpu_kind *kind = last_kind(kinds);
    struct mig_profile profile = {0};
    unsigned sms = 0, slices = 0;
    if (kind->n_profiles == MIG_PROFILES_MAX)
        return fault_set(fault, EINVAL, "more than %d MIG profiles of a kind", MIG_PROFILES_MAX);
    if (words->n != 5 || !is_name(words->word[1], sizeof profile.name))
        return fault_set(fault, EINVAL, "mig NAME TOTAL_MIB SMS MEMORY_SLICES");
    strcpy(profile.name, words->word[1]);
    int r = read_mib("total_mib", words->word[2], fault, &profile.total_bytes);
    if (r == 0)
        r = read_number("sms", words->word[3], 1, kind->sms, fault, &sms);
    if (r == 0)
        r = read_number("memory slices", words->word[4], 1, MIG_MEMORY_SLICES_MAX, fault, &slices);
    if (r < 0)
        return r;
    profile.sms = (int)sms;
    profile.memory_slices = (int)slices;
    profile.compute_slices = compute_slices(&profile);
    kind->profiles[kind->n_profiles++] = profile;
    if (profile.compute_slices > kind->compute_slices)
        kind->compute_slices = profile.compute_slices;
    if (profile.memory_slices > kind->memory_slices)
        kind->memory_slices = profile.memory_slices;
    return 0;
}

static const struct {
    const char *word;
    int (*read)(struct gpu_kinds *, struct words *, struct fault *);
    bool of_kind; /* its values belong to the kind before it */
} lines[] = {{"constant", read_constant, false}, {"kind", read_kind, false},
    {"alias", read_alias, true}, {"speed", read_speed, true}, {"power", read_power, true},
    {"nvml", read_nvml, true}, {"mig", read_profile, true}};

static int read_words(
    struct gpu_kinds *kinds, struct words *words, bool has_kind, struct fault *fault)
{
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        if (strcmp(words->word[0], lines[i].word) == 0)
            return lines[i].of_kind && !has_kind
                       ? fault_set(
                             fault, EINVAL, "a line \"%s\" must follow its kind", lines[i].word)
                       : lines[i].read(kinds, words, fault);
    return fault_set(fault, EINVAL,
        "a line begins with constant, kind, alias, speed, nvml or mig, not with \"%.40s\"",
        words->word[0]);
}

/* One process is one of all. */
static int check_decoding(
    const struct gpu_constants *constants, const char *name, struct fault *fault)
{
    if (constants->decode_most == 0 || constants->decode_most >= constants->decode_rate)
        return 0;
    return fault_set(fault, EINVAL,
        "%s: decode_most %g: must not be below decode_rate, %g: all processors decode as much as "
        "one",
        name, constants->decode_most, constants->decode_rate);
}

int gpu_kinds_read(struct gpu_kinds *kinds, struct span text, const char *name, struct fault *fault)
{
    struct span line;
    bool has_kind = false;
    for (int number = 1; span_next_line(&text, &line); number++) {
        struct words words;
        int r = split_words(line, &words, fault);
        if (r == 0 && words.n > 0)
            r = read_words(kinds, &words, has_kind, fault);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%d", name, number);
        has_kind |= words.n > 0 && strcmp(words.word[0], "kind") == 0;
    }
    return check_decoding(&kinds->constants, name, fault);
}

int gpu_kinds_init(struct gpu_kinds *kinds, struct fault *fault)
{
    *kinds = (struct gpu_kinds){.constants.interference = interference_measured};
    return gpu_kinds_read(kinds, (struct span){built_in_gpu_kinds, sizeof built_in_gpu_kinds - 1},
        "data/gpu-kinds.txt", fault);
}

/* ---- finding ---- */

const struct gpu_kind *gpu_kinds_find(const struct gpu_kinds *kinds, struct span name)
{
    for (int i = 0; i < kinds->n; i++)
        if (span_is(name, kinds->kinds[i].name))
            return &kinds->kinds[i];
    for (int i = 0; name.size > 0 && i < kinds->n; i++)
        if (span_is(name, kinds->kinds[i].alias))
            return &kinds->kinds[i];
    return NULL;
}

/* The length of a kind's name without its memory: that of "A100" in "A100-40GB". */
static size_t model_size(const char *kind)
{
    const char *memory = strrchr(kind, '-');
    bool is_memory = memory && strcmp(memory + 1 + strspn(memory + 1, "0123456789"), "GB") == 0;
    return is_memory ? (size_t)(memory - kind) : strlen(kind);
}

static bool is_between_words(char c)
{
    return c == '\0' || c == ' ' || c == '-';
}

/* Does the product's name have the model, "A100" or "RTX-3090", as words? */
static bool is_of_model(const char *product, const char *kind)
{
    size_t size = model_size(kind), length = strlen(product);
    for (size_t at = 0; at + size <= length; at++) {
        size_t same = 0;
        while (same < size && (product[at + same] == kind[same] ||
                                  (product[at + same] == ' ' && kind[same] == '-')))
            same++;
        if (same == size && (at == 0 || is_between_words(product[at - 1])) &&
            is_between_words(product[at + size]))
            return true;
    }
    return false;
}

const struct gpu_kind *gpu_kinds_find_product(
    const struct gpu_kinds *kinds, const char *product, int64_t total_bytes)
{
    const double tolerance = 0.05; /* chosen: variants of a model differ by half or more */
    for (int i = 0; i < kinds->n; i++)
        if (strcmp(kinds->kinds[i].nvml.product, product) == 0)
            return &kinds->kinds[i];
    for (int i = 0; i < kinds->n; i++) {
        double bytes = (double)kinds->kinds[i].total_bytes;
        double difference = (double)total_bytes - bytes;
        if (is_of_model(product, kinds->kinds[i].name) && difference <= tolerance * bytes &&
            difference >= -tolerance * bytes)
            return &kinds->kinds[i];
    }
    return NULL;
}

const char *gpu_kinds_names(const struct gpu_kinds *kinds, char *buffer, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < kinds->n && used < size; i++)
        used += (size_t)snprintf(
            buffer + used, size - used, "%s%s", i ? ", " : "", kinds->kinds[i].name);
    return buffer;
}

int gpu_kind_speed(const struct gpu_kind *kind)
{
    return (int)lround(sqrt(kind->tensor_tflops * kind->bandwidth_gbs) * kind->efficiency);
}

double gpu_kind_power_w(const struct gpu_kind *kind, double smact, double tasks_w)
{
    const struct power_point *points = kind->power;
    int i = 1;
    if (kind->n_power == 0)
        return fmin(kind->limit_w, kind->awake_w + tasks_w);
    while (i < kind->n_power - 1 && smact > points[i].smact)
        i++;
    double part = (fmin(smact, 1) - points[i - 1].smact) / (points[i].smact - points[i - 1].smact);
    return points[i - 1].power_w + part * (points[i].power_w - points[i - 1].power_w);
}

int gpu_kind_find_profile(const struct gpu_kind *kind, struct span name)
{
    for (int i = 0; i < kind->n_profiles; i++)
        if (span_is(name, kind->profiles[i].name))
            return i;
    return -1;
}

/* An instance begins at a multiple of its size, where as many compute slices follow as it has: of
 * eight memory slices the last has none of compute. */
int mig_profile_starts(const struct gpu_kind *kind, const struct mig_profile *profile,
    int ret_starts[MIG_MEMORY_SLICES_MAX])
{
    int count = 0, last_start = kind->compute_slices - profile->compute_slices;
    for (int at = 0; at <= last_start && at + profile->memory_slices <= kind->memory_slices;
         at += profile->memory_slices)
        ret_starts[count++] = at;
    return count;
}
