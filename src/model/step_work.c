/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the work of a step from an export:
 *
 *     "operators": [{"phase": "forward", "name": "relu_", "calls": 2, "tensors": 1,
 *                    "reads": [0, 8192], "writes": [0, 8192], "multiply_adds": [0, 0]}, ...],
 *     "matmuls": [{"phase": "forward", "m": [0, 1], "n": [10, 0], "k": [8, 0], "count": [1, 0],
 *                  "dtype": "float32", ...}, ...]
 *
 * Every number is checked: a file may come from anywhere. Products without a shape, of early
 * exporters, are left out.
 */
#include "model/step_work.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_member.h"

/* Of one number: a larger one is a mistake. Chosen: a double holds each exactly. */
#define STEP_NUMBER_MAX ((int64_t)1 << 52)

enum { ROWS_MAX = 1000000 }; /* chosen: as many as an export has tensors at most */

void step_work_fini(struct step_work *work)
{
    free(work->operators);
    free(work->products);
    *work = (struct step_work){0};
}

static bool read_number(const json_t *value, int64_t *ret)
{
    *ret = json_integer_value(value);
    return json_is_integer(value) && *ret >= 0 && *ret <= STEP_NUMBER_MAX;
}

static bool read_size(const json_t *row, const char *name, struct linear_size *ret)
{
    const json_t *pair = json_object_get(row, name);
    return json_array_size(pair) >= 2 && read_number(json_array_get(pair, 0), &ret->fixed) &&
           read_number(json_array_get(pair, 1), &ret->per_sample);
}

/* The loss is a part of the forward pass. */
static enum step_phase phase_of(const json_t *row)
{
    const char *name = member_text(row, "phase", "");
    if (strcmp(name, "backward") == 0)
        return STEP_BACKWARD;
    return strcmp(name, "optimizer") == 0 || strcmp(name, "zero_grad") == 0 ? STEP_UPDATE
                                                                            : STEP_FORWARD;
}

static enum step_operator_kind kind_of(const struct step_operator *operator, const char * name)
{
    static const char lists[] = "_foreach";
    if (operator->writes.fixed == 0 && operator->writes.per_sample == 0)
        return STEP_VIEW;
    if (strncmp(name, lists, sizeof lists - 1) == 0)
        return STEP_LISTS;
    if (strcmp(name, "attention") == 0)
        return STEP_ATTENTION;
    if (strcmp(name, "recurrent") == 0)
        return STEP_RECURRENT;
    return strstr(name, "_norm") || strstr(name, "softmax") ? STEP_NORM : STEP_KERNEL;
}

static bool read_operator(const json_t *row, struct step_operator *ret)
{
    ret->phase = phase_of(row);
    bool valid = read_number(json_object_get(row, "calls"), &ret->calls) &&
                 read_number(json_object_get(row, "tensors"), &ret->tensors) &&
                 read_size(row, "reads", &ret->reads) && read_size(row, "writes", &ret->writes) &&
                 read_size(row, "multiply_adds", &ret->macs);
    ret->kind = kind_of(ret, member_text(row, "name", ""));
    return valid;
}

static bool read_product(const json_t *row, struct step_product *ret)
{
    ret->phase = phase_of(row);
    ret->half = strstr(member_text(row, "dtype", ""), "16") != NULL;
    return read_size(row, "m", &ret->m) && read_size(row, "n", &ret->n) &&
           read_size(row, "k", &ret->k) && read_size(row, "count", &ret->count);
}

/* Returns an array for the rows of a list, of `row_size` bytes each; NULL: the list has none, or
 * *ret_r is an error. */
static void *allocate_rows(
    const json_t *list, const char *name, size_t row_size, struct fault *fault, int *ret_r)
{
    size_t n = json_array_size(list);
    *ret_r = n > ROWS_MAX ? fault_set(fault, EFBIG, "%s: more than %d", name, ROWS_MAX) : 0;
    if (*ret_r < 0 || n == 0)
        return NULL;
    void *rows = calloc(n, row_size);
    if (!rows)
        *ret_r = fault_set(fault, ENOMEM, "out of memory");
    return rows;
}

static int read_operators(const json_t *list, struct fault *fault, struct step_work *work)
{
    int r;
    work->operators = allocate_rows(list, "operators", sizeof *work->operators, fault, &r);
    if (!work->operators)
        return r;
    for (; work->n_operators < json_array_size(list); work->n_operators++)
        if (!read_operator(
                json_array_get(list, work->n_operators), &work->operators[work->n_operators]))
            return fault_set(fault, EINVAL,
                "operators[%zu]: calls, tensors, reads, writes and multiply_adds must be there and "
                "in range",
                work->n_operators);
    return 0;
}

static int read_products(const json_t *list, struct fault *fault, struct step_work *work)
{
    int r;
    work->products = allocate_rows(list, "matmuls", sizeof *work->products, fault, &r);
    for (size_t i = 0; work->products && i < json_array_size(list); i++)
        work->n_products += read_product(
            json_array_get(list, i), &work->products[work->n_products]);
    return r;
}

int step_work_read(const json_t *root, struct fault *fault, struct step_work *ret_work)
{
    *ret_work = (struct step_work){0};
    int r = read_operators(json_object_get(root, "operators"), fault, ret_work);
    return r < 0 ? r : read_products(json_object_get(root, "matmuls"), fault, ret_work);
}
