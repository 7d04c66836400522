/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc doctor`: what works on this machine. The checks are in src/doctor; here they are printed.
 * No daemon is asked: what it could not use, a user can look up before one runs.
 */
#include <limits.h>
#include <stdio.h>

#include "base/array.h"
#include "base/beside.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/table.h"
#include "doctor/doctor.h"

static const struct table_column columns[] = {
    {"CHECK", 0},
    {"RESULT", 0},
    {"DETAIL", TABLE_WRAP},
};

/* Installed beside colloc, or in the build; NULL when it is in neither. */
static const char *find_helper(char *path, size_t size)
{
    static const char *const places[] = {".", "../" COLLOC_LIBEXEC_DIR "/colloc", "../checkpoint"};
    int r = beside_find(places, ARRAY_SIZE(places), "colloc-checkpoint", path, size);
    return r == 0 ? path : NULL;
}

static const char *find_preload(char *path, size_t size)
{
    static const char *const places[] = {".", "../" COLLOC_LIB_DIR "/colloc", "../preload"};
    int r = beside_find(places, ARRAY_SIZE(places), "libcolloc-preload.so", path, size);
    return r == 0 ? path : NULL;
}

static json_t *checks_json(const struct doctor_check *checks, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:s, s:s}", "name", checks[i].name, "ok", checks[i].is_ok,
                      "detail", checks[i].detail, "advice", checks[i].advice));
    return json_pack("{s:o}", "checks", list);
}

static void print_checks(const struct doctor_check *checks, size_t count)
{
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; table && i < count; i++) {
        table_row(table);
        table_cell(table, NULL, "%s", checks[i].name);
        table_cell(table, checks[i].is_ok ? "green" : "red", checks[i].is_ok ? "ok" : "failed");
        table_cell(table, NULL, "%s%s%s", checks[i].detail, *checks[i].advice ? ". Advice: " : "",
            checks[i].advice);
    }
    if (table)
        table_print(table, "");
    table_destroy(table);
}

static int run(const struct invocation *invocation)
{
    struct doctor_check checks[DOCTOR_CHECKS_MAX];
    char helper[PATH_MAX], preload[PATH_MAX];
    const struct doctor_options options = {
        .helper = find_helper(helper, sizeof helper),
        .preload = find_preload(preload, sizeof preload),
    };
    size_t count = doctor_run(&options, checks);
    bool is_ok = true;
    for (size_t i = 0; i < count; i++)
        is_ok &= checks[i].is_ok;
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = checks_json(checks, count);
        print_json(object);
        json_decref(object);
    } else {
        print_checks(checks, count);
    }
    return is_ok ? EXIT_OK : EXIT_REFUSED;
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "[OPTION...]",
    .summary = "check what works on this machine, and what to do about the rest",
    .description = "Checks the NVIDIA driver and what it reports, MPS, MIG, cgroups and host "
                   "memory. Suspending and moving processes are tried on a test process that "
                   "holds 1 MiB on the first GPU; run it as root to try them as collocd would. "
                   "It needs no collocd and changes no setting.\n\n"
                   "The exit status is 0 if all checks pass, else 1.",
    .operand = OPERAND_NONE,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
