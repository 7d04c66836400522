/* SPDX-License-Identifier: Apache-2.0 */
/* Which MPS clients SIGTERM would end in the middle of their work: the rules are in the header. */
#include "exec/drain_plan.h"

#include <signal.h>

#include "base/array.h"
#include "base/text.h"
#include "exec/status_mask.h"

static bool names_shell(const char *program)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "mksh", "zsh", "busybox"};
    return span_place(span_of(program), shells, ARRAY_SIZE(shells)) >= 0;
}

void drain_describe(const char *status, const char *program, struct drain_process *ret_process)
{
    *ret_process = (struct drain_process){
        .on_sigterm = status_mask_has(status, "\nSigCgt:", SIGTERM)   ? SIGTERM_CAUGHT
                      : status_mask_has(status, "\nSigIgn:", SIGTERM) ? SIGTERM_IGNORED
                                                                      : SIGTERM_KILLS,
        .is_shell = names_shell(program),
        .in_background = status_mask_has(status, "\nSigIgn:", SIGINT),
    };
}

enum drain_fate drain_plan(const struct drain_process *chain, size_t n, size_t *ret_top)
{
    if (chain[0].on_sigterm != SIGTERM_KILLS)
        return DRAIN_SIGNAL;
    size_t above = 1;
    while (above < n && chain[above].on_sigterm != SIGTERM_CAUGHT)
        above++;
    if (above == n || (chain[above].is_shell && !chain[above - 1].in_background))
        return DRAIN_DROP;
    *ret_top = above - 1;
    return DRAIN_SPARE;
}
