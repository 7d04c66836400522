/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a machine or a cluster, as a table or as JSON. */
#ifndef COLLOC_CLI_CHECK_TABLE_H
#define COLLOC_CLI_CHECK_TABLE_H

#include "doctor/doctor.h"

/* Prints the checks. Returns whether all of them passed. */
bool check_table_print(const struct doctor_check *checks, size_t count, bool as_json);

#endif
