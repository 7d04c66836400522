/* SPDX-License-Identifier: Apache-2.0 */
/* The services of a simulation, as `colloc simulate` prints them. docs/simulate.md has the keys. */
#ifndef COLLOC_CLI_SERVICE_ROWS_H
#define COLLOC_CLI_SERVICE_ROWS_H

#include <jansson.h>
#include <stdint.h>

#include "sim/service_totals.h"

/* Prints a row for each service, and how often trainings gave way; nothing without services. */
void service_rows_print(struct service_totals *services, int64_t suspensions);

/* Returns the list of services; a new reference. */
json_t *service_rows_json(struct service_totals *services);

#endif
