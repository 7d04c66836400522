/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc report --saved`: the ledger of sharing, printed. */
#ifndef COLLOC_CLI_SAVED_REPORT_H
#define COLLOC_CLI_SAVED_REPORT_H

#include "cli/usage_report.h"

/* Prints the rows as a table, with what the columns mean. `header`: of the first column. */
void saved_report_print(const char *header, const struct report *report);

/* Adds the members of a row's ledger to an object. What is not known is null. */
void saved_report_add(json_t *object, const struct report_row *row);

#endif
