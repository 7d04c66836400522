/* SPDX-License-Identifier: Apache-2.0 */
/* A service without a latency target has no figures of it: "-", null in JSON. */
#include "cli/service_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/json_value.h"

static struct reading part_of(const struct service_total *total, double part, double whole)
{
    return total->service->p99_us && whole > 0 ? reading_of(part / whole) : READING_NONE;
}

static struct reading within_target(const struct service_total *total)
{
    return part_of(total, total->within, total->requests);
}

static struct reading target_met(const struct service_total *total)
{
    return part_of(total, total->met_s, total->up_s);
}

static struct reading target_ms(const struct service_total *total)
{
    return total->service->p99_us ? reading_of((double)total->service->p99_us / 1000)
                                  : READING_NONE;
}

static void print_cell(struct reading reading, int width, int digits, const char *unit)
{
    if (reading.valid)
        printf(" %*.*f%s", width, digits, reading.value, unit);
    else
        printf(" %*s%*s", width, "-", (int)strlen(unit), "");
}

void service_rows_print(struct service_totals *services, int64_t suspensions)
{
    if (!services->n)
        return;
    printf("\nSERVICE              REQUESTS    P99 TARGET     IN TIME       MET\n");
    for (int i = 0; i < services->n; i++) {
        struct service_total *total = services->list[i];
        printf("%-18.18s %10.0f", total->name, total->requests);
        print_cell(reading_times(service_total_p99_s(total), 1000), 6, 0, "");
        print_cell(target_ms(total), 6, 0, " ms");
        print_cell(reading_times(within_target(total), 100), 6, 2, " %");
        print_cell(reading_times(target_met(total), 100), 7, 1, " %");
        printf("\n");
    }
    printf("Trainings gave way %" PRId64 " times\n", suspensions);
}

json_t *service_rows_json(struct service_totals *services)
{
    json_t *list = json_array();
    for (int i = 0; i < services->n; i++) {
        struct service_total *total = services->list[i];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:f, s:f, s:o, s:o, s:o, s:o}", "service", total->name,
                      "id", (json_int_t)total->id, "requests", total->requests, "up_s", total->up_s,
                      "target_ms", json_reading(target_ms(total), 1), "p99_ms",
                      json_reading(reading_times(service_total_p99_s(total), 1000), 1),
                      "within_target", json_reading(within_target(total), 1), "target_met",
                      json_reading(target_met(total), 1)));
    }
    return list;
}
