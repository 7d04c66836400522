/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the core's settings: what settings.def says of each, for the programs that read,
 * write or explain them. The policy and the users' shares are not in it: a policy is found by its
 * name, which the core does not know.
 */
#ifndef COLLOC_CORE_SETTING_TABLE_H
#define COLLOC_CORE_SETTING_TABLE_H

#include "base/setting.h"
#include "core/settings.h"

enum core_setting_id {
#define CORE_SETTING(id, ...) CORE_SETTING_##id,
#include "core/settings.def"
    CORE_SETTINGS
};

struct core_setting {
    size_t offset, size; /* in struct core_settings */
    const struct setting_kind *kind;
    const char *key; /* in the replay's record */

    /* As a setting of collocd; NULL: it has none of the kind. */
    const char *name, *argument, *help;
    bool at_start; /* a reload does not change it */

    const char *slurm_help; /* as one of colloc-slurm, which has the name and the argument, too */
    const char *scenario;   /* in a scenario file; NULL: `name` */
};

extern const struct core_setting core_setting_table[CORE_SETTINGS];

/* Finds a setting by its name in scenario files. Returns NULL when there is none. */
const struct core_setting *core_setting_find(const char *name);

/* Where the setting is. */
void *core_setting_at(const struct core_setting *setting, struct core_settings *settings);

/* A setting as one of a program.
 *
 * base: where the program's settings have the core's, in bytes
 * help: of the setting, for the program
 */
struct setting core_setting_as(const struct core_setting *setting, size_t base, const char *help);

/*
 * Numbers as people write them where a unit is fixed: sizes are in GiB.
 *
 * The first returns the largest one, the second sets it.
 */
double core_setting_number_max(const struct core_setting *setting);
void core_setting_put_number(
    const struct core_setting *setting, double number, struct core_settings *settings);

/* The kinds that belong to the core's settings. */
extern const struct setting_kind setting_slowdown, setting_activity_sum, setting_number,
    setting_statistic, setting_order, setting_recovery, setting_half_life, setting_usage_window;

#endif
