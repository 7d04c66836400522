/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration file: YAML of plain `setting: value` lines, where a value may be a list:
 *
 *     margin: 4GiB
 *     operators: [ada, bob]        # the same as ada,bob
 */
#ifndef COLLOC_SERVICE_SETTING_FILE_H
#define COLLOC_SERVICE_SETTING_FILE_H

#include <stdbool.h>

#include "base/fault.h"

/*
 * Takes one setting of the file.
 *
 * value:   as text; of a list its members, comma-separated
 * is_list: the file has a list
 *
 * Returns 0, or -errno with a fault (-EINVAL for an unknown one).
 */
typedef int setting_file_on_setting(
    void *context, const char *name, const char *value, bool is_list, struct fault *fault);

/* Takes a mistake, as the fault's text. */
typedef void setting_file_on_mistake(const char *text);

/*
 * Hands each setting of the file to `on_setting`, in order.
 *
 * on_mistake: gets each mistake in a setting but the last one, which is in the fault; NULL: reading
 *             ends at the first mistake
 *
 * Returns 0, or -errno with file and line in the fault.
 */
int setting_file_read(const char *path, setting_file_on_setting *on_setting, void *context,
    setting_file_on_mistake *on_mistake, struct fault *fault);

#endif
