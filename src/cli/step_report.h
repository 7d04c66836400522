/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon hears of a step, so that `sacct` lists it. */
#ifndef COLLOC_CLI_STEP_REPORT_H
#define COLLOC_CLI_STEP_REPORT_H

/* Reports that a step of this task begins. Returns its number; -1: it is not recorded, because the
 * daemon does not answer in time, or takes no more of them. */
int step_report_begin(const char *name, int processes);

/* Reports how the step ended. `status`: of waitpid. */
void step_report_end(int step, int status);

#endif
