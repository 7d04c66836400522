/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network as text: a line with the version, lines of "name value", a checksum, and then all
 * weights as the bits of IEEE single-precision numbers in hexadecimal: exactly the trained ones.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/units.h"
#include "estimator/gpumemnet/gpumemnet_net.h"

static const char magic[] = "colloc-gpumemnet ";
enum {
    SCALING_NUMBERS = 2 * (GPUMEMNET_VALUES + TOKEN_SIZE),
    LONGEST_MAX = 100000 /* layers; chosen: twice MODEL_LAYERS_MAX */
};

static uint64_t checksum_of(struct span s)
{
    return hash_bytes(HASH_START, s.at, s.size);
}

static int set_wrong(struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int set_wrong(struct fault *fault, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fault_set(fault, EINVAL, "weights: %s", text);
}

/* Reads the value of the next line, whose name must be `name`. */
static int take_field(
    struct span *text, const char *name, struct fault *fault, char *value, size_t size)
{
    struct span line;
    size_t n = strlen(name);
    if (!span_next_line(text, &line) || line.size <= n || memcmp(line.at, name, n) != 0 ||
        line.at[n] != ' ' ||
        !span_copy((struct span){line.at + n + 1, line.size - n - 1}, value, size))
        return set_wrong(fault, "the line \"%s ...\" is not where it should be", name);
    return 0;
}

static int take_number(struct span *text, const char *name, int64_t min, int64_t max,
    struct fault *fault, int64_t *ret)
{
    char value[32];
    int r = take_field(text, name, fault, value, sizeof value);
    if (r == 0 && parse_int64(value, min, max, ret) < 0)
        r = set_wrong(fault, "%s %s: must be a whole number from %" PRId64 " to %" PRId64, name,
            value, min, max);
    return r;
}

static int take_name(struct span *text, const char *name, const char *(*name_of)(int), int n,
    struct fault *fault, int *ret)
{
    char value[32];
    int r = take_field(text, name, fault, value, sizeof value);
    if (r < 0)
        return r;
    for (*ret = 0; *ret < n; (*ret)++)
        if (strcmp(value, name_of(*ret)) == 0)
            return 0;
    return set_wrong(fault, "there is no %s \"%s\"", name, value);
}

static const char *family_name(int i)
{
    return gpumemnet_family_name((enum gpumemnet_family)i);
}

static const char *method_name(int i)
{
    return gpumemnet_method_name((enum gpumemnet_method)i);
}

static int read_version(struct span *text, struct fault *fault)
{
    struct span line;
    char value[32];
    int64_t version;
    if (!span_next_line(text, &line) || !span_starts(line, magic))
        return set_wrong(fault, "not a file of colloc's memory networks");
    struct span rest = {line.at + sizeof magic - 1, line.size - (sizeof magic - 1)};
    if (!span_copy(rest, value, sizeof value) || parse_int64(value, 0, INT64_MAX, &version) < 0)
        return set_wrong(fault, "a first line without a version");
    if (version != GPUMEMNET_VERSION)
        return fault_set(fault, EPROTO,
            "weights: version %" PRId64 "; this colloc reads version %d", version,
            GPUMEMNET_VERSION);
    return 0;
}

static int read_head(struct span *text, struct fault *fault, struct gpumemnet_net *net)
{
    int64_t classes = 0, numbers = 0;
    int family = 0, method = 0, r = read_version(text, fault);
    if (r == 0)
        r = take_name(text, "family", family_name, GPUMEMNET_FAMILIES, fault, &family);
    if (r == 0)
        r = take_name(text, "method", method_name, GPUMEMNET_METHODS, fault, &method);
    if (r == 0)
        r = take_number(text, "bin_mib", 1, 1 << 20, fault, &net->bin_mib);
    if (r == 0)
        r = take_number(text, "classes", 1, GPUMEMNET_CLASSES_MAX, fault, &classes);
    if (r == 0)
        r = take_number(text, "longest", 0, LONGEST_MAX, fault, &net->longest);
    if (r == 0)
        r = take_number(text, "seed", 0, INT64_MAX, fault, &net->seed);
    if (r == 0)
        r = take_number(text, "numbers", 0, INT64_MAX, fault, &numbers);
    if (r < 0)
        return r;
    net->family = (enum gpumemnet_family)family;
    net->method = (enum gpumemnet_method)method;
    net->n_classes = (int)classes;
    gpumemnet_layout_init(net->family, net->method, net->n_classes, &net->layout);
    if ((size_t)numbers != SCALING_NUMBERS + net->layout.size)
        return set_wrong(fault, "%" PRId64 " numbers; the %s %s with %d classes has %zu", numbers,
            family_name(family), method_name(method), net->n_classes,
            SCALING_NUMBERS + net->layout.size);
    return 0;
}

static int read_checksum(struct span *text, bool compares, struct fault *fault)
{
    char value[32], expected[32];
    int r = take_field(text, "checksum", fault, value, sizeof value);
    if (r < 0 || !compares)
        return r;
    snprintf(expected, sizeof expected, "%016" PRIx64, checksum_of(*text));
    return strcmp(value, expected) == 0
               ? 0
               : set_wrong(
                     fault, "damaged or cut off: the checksum is %s, not %s", expected, value);
}

/* The value of a digit, with one added; 0: none. Looked up, not computed: each estimate reads some
 * five thousand numbers. */
static const uint8_t digit_and_one[256] = {
    ['0'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ['a'] = 11, 12, 13, 14, 15, 16};

/* Reads eight digits and the separator after them. */
static bool take_bits(struct span *text, float *ret)
{
    uint32_t bits = 0;
    bool are_digits = true;
    if (text->size < 9)
        return false;
    for (int i = 0; i < 8; i++) {
        uint32_t found = digit_and_one[(uint8_t)text->at[i]];
        are_digits &= found > 0;
        bits = (bits << 4) + found - 1;
    }
    memcpy(ret, &bits, sizeof bits);
    *text = (struct span){text->at + 9, text->size - 9};
    return are_digits && isfinite(*ret);
}

static int read_numbers(struct span text, struct fault *fault, struct gpumemnet_net *net)
{
    float *scaling = (float *)&net->scaling;
    size_t n = SCALING_NUMBERS + net->layout.size;
    net->weights = calloc(net->layout.size, sizeof *net->weights);
    if (!net->weights)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (!take_bits(
                &text, i < SCALING_NUMBERS ? &scaling[i] : &net->weights[i - SCALING_NUMBERS]))
            return set_wrong(fault, "number %zu of %zu is none", i + 1, n);
    return text.size == 0 ? 0 : set_wrong(fault, "more than %zu numbers", n);
}

static int parse_net(const char *text, size_t size, bool compares, struct fault *fault,
    struct gpumemnet_net *ret_net)
{
    struct span rest = {text, size};
    *ret_net = (struct gpumemnet_net){0};
    int r = read_head(&rest, fault, ret_net);
    if (r == 0)
        r = read_checksum(&rest, compares, fault);
    if (r == 0)
        r = read_numbers(rest, fault, ret_net);
    if (r < 0)
        gpumemnet_net_fini(ret_net);
    return r;
}

int gpumemnet_net_parse(
    const char *text, size_t size, struct fault *fault, struct gpumemnet_net *ret_net)
{
    return parse_net(text, size, true, fault, ret_net);
}

int gpumemnet_net_parse_built_in(
    const char *text, size_t size, struct fault *fault, struct gpumemnet_net *ret_net)
{
    return parse_net(text, size, false, fault, ret_net);
}
