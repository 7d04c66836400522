/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc doctor`: what works on this machine. The checks are in src/doctor; here they are printed.
 * It needs no daemon, so a machine can be checked before one runs.
 */
#include <limits.h>

#include "base/array.h"
#include "base/beside.h"
#include "cli/check_table.h"
#include "cli/command.h"
#include "doctor/doctor.h"

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

static int run(const struct invocation *invocation)
{
    struct doctor_check checks[DOCTOR_CHECKS_MAX];
    char helper[PATH_MAX], preload[PATH_MAX];
    const struct doctor_options options = {
        .helper = find_helper(helper, sizeof helper),
        .preload = find_preload(preload, sizeof preload),
    };
    size_t count = doctor_run(&options, checks);
    bool is_ok = check_table_print(checks, count, invocation->common[COMMON_JSON].number);
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
