/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of sharing: usage_report.c adds it up, docs/ledger.md says what it means.
 *
 *     USER TASKS   HELD  ALONE  SAVED       BETWEEN  PART  SOONER   ENERGY MEASURED UNKNOWN
 *     ada     41 96.0 h 71.2 h 20.1 h 18.8 and 21.9 h 28 % 120.4 h 1.01 kWh     83 %     0 %
 */
#include "cli/saved_report.h"

#include "base/array.h"
#include "cli/hours.h"
#include "cli/table.h"

static const struct table_column columns[] = {
    {"", TABLE_CUT},
    {"TASKS", TABLE_RIGHT},
    {"HELD", TABLE_RIGHT},
    {"ALONE", TABLE_RIGHT},
    {"SAVED", TABLE_RIGHT},
    {"BETWEEN", TABLE_RIGHT},
    {"PART", TABLE_RIGHT},
    {"SOONER", TABLE_RIGHT},
    {"ENERGY", TABLE_RIGHT},
    {"MEASURED", TABLE_RIGHT},
    {"UNKNOWN", TABLE_RIGHT},
};

enum { SAVED_COLUMNS = 4 }; /* SAVED to SOONER */

#define ALL_UNKNOWN 0.995 /* the part of the held hours that is shown as 100 % */

static bool is_known(const struct ledger_sums *sums)
{
    return sums->alone_h > 0 && sums->unknown_h < ALL_UNKNOWN * sums->held_h;
}

/* Nothing else can have saved or cost anything. */
static bool was_shared(const struct ledger_sums *sums)
{
    return is_known(sums) && sums->shared_h > 0;
}

static bool knows_energy(const struct ledger_sums *sums)
{
    return is_known(sums) && sums->energy_unknown_h < sums->held_h;
}

static void add_share(struct table *table, double part_h, double of_h)
{
    if (of_h > 0)
        table_cell(table, NULL, "%.0f %%", 100 * part_h / of_h);
    else
        table_cell(table, NULL, "-");
}

static void add_saved(struct table *table, const struct ledger_sums *sums)
{
    double saved_h = report_saved_h(sums), low_h = sums->low_h - sums->occupied_h,
           high_h = sums->high_h - sums->occupied_h;
    struct shown_unit unit = hours_unit_of(fmax(fabs(low_h), fabs(high_h)));
    hours_cell(table, saved_h);
    table_cell(table, NULL, "%.*f and " HOURS_FORMAT, unit.digits,
        fabs(low_h) * 3600 < 0.5 ? 0.0 : low_h * unit.per_whole, HOURS_IN(unit, high_h));
    table_cell(table, NULL, "%.0f %%", 100 * saved_h / sums->alone_h);
    if (sums->n_ended > 0)
        hours_cell(table, sums->sooner_h);
    else
        table_cell(table, NULL, "-");
}

static void add_energy(struct table *table, double kwh)
{
    struct shown_unit unit = thousandth_unit_of(kwh, "kWh", "Wh");
    table_cell(table, NULL, "%.*f %s", unit.digits, kwh * unit.per_whole, unit.name);
}

static void add_row(struct table *table, const struct report_row *row)
{
    const struct ledger_sums *sums = &row->ledger;
    table_row(table);
    table_cell(table, NULL, "%s", row->name ? row->name : "all");
    table_cell(table, NULL, "%lld", (long long)row->tasks);
    hours_cell(table, sums->held_h);
    if (is_known(sums))
        hours_cell(table, sums->alone_h);
    else
        table_cell(table, NULL, "-");
    if (was_shared(sums))
        add_saved(table, sums);
    for (int i = 0; !was_shared(sums) && i < SAVED_COLUMNS; i++)
        table_cell(table, NULL, "-");
    if (was_shared(sums) && knows_energy(sums))
        add_energy(table, sums->energy_j / 3.6e6);
    else
        table_cell(table, NULL, "-");
    add_share(table, sums->measured_h, sums->shared_h);
    add_share(table, sums->unknown_h, sums->held_h);
}

static const char nothing_shared[] =
    "\nNo task was beside others: nothing is known yet of what sharing saves or costs.";

static const char legend[] =
    "\nALONE: GPU hours that the same work takes on GPUs without other tasks. SAVED:\n"
    "ALONE less the hours that GPUs were occupied; PART of ALONE. SOONER: hours that\n"
    "tasks ended sooner than alone, in the same order. MEASURED: of the time beside\n"
    "others, how much is from measured speeds; the rest is predicted, but for what is\n"
    "UNKNOWN and left out.";

void saved_report_print(const char *header, const struct report *report)
{
    struct table_column named[ARRAY_SIZE(columns)];
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        named[i] = columns[i];
    named[0].header = header;
    struct table *table = table_create(named, ARRAY_SIZE(named));
    for (int i = 0; i < report->n; i++)
        add_row(table, &report->rows[i]);
    if (report->n > 0)
        add_row(table, &report->total);
    table_print(table, "No task held a GPU.");
    table_destroy(table);
    if (report->n > 0 && !(report->total.ledger.shared_h > 0))
        puts(nothing_shared);
    if (report->n > 0)
        puts(legend);
}

static void set_known(json_t *object, const char *key, double value, bool known)
{
    json_object_set_new(object, key, known ? json_real(value) : json_null());
}

void saved_report_add(json_t *object, const struct report_row *row)
{
    const struct ledger_sums *sums = &row->ledger;
    bool known = is_known(sums);
    json_object_set_new(object, "gpu_hours_held", json_real(sums->held_h));
    json_object_set_new(object, "gpu_hours_shared", json_real(sums->shared_h));
    set_known(object, "gpu_hours_alone", sums->alone_h, known);
    set_known(object, "gpu_hours_occupied", sums->occupied_h, known);
    set_known(object, "gpu_hours_saved", report_saved_h(sums), known);
    set_known(object, "gpu_hours_saved_low", sums->low_h - sums->occupied_h, known);
    set_known(object, "gpu_hours_saved_high", sums->high_h - sums->occupied_h, known);
    set_known(object, "hours_sooner", sums->sooner_h, known && sums->n_ended > 0);
    set_known(object, "energy_saved_kwh", sums->energy_j / 3.6e6, knows_energy(sums));
    json_object_set_new(object, "gpu_hours_speed_measured", json_real(sums->measured_h));
    json_object_set_new(object, "gpu_hours_speed_unknown", json_real(sums->unknown_h));
    json_object_set_new(object, "gpu_hours_energy_unknown", json_real(sums->energy_unknown_h));
}
