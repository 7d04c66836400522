/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration file: YAML of plain `setting: value` lines. */
#ifndef COLLOC_SERVICE_SETTING_FILE_H
#define COLLOC_SERVICE_SETTING_FILE_H

#include "base/fault.h"

/* Takes one setting of the file. Returns 0, or -errno with a fault (-EINVAL for an unknown one). */
typedef int setting_file_on_setting(
    void *context, const char *name, const char *value, struct fault *fault);

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
