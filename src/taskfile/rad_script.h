/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of .rad files share. */
#ifndef COLLOC_TASKFILE_RAD_SCRIPT_H
#define COLLOC_TASKFILE_RAD_SCRIPT_H

#include <stdio.h>

#include "base/text.h"
#include "taskfile/description.h"

/* The script a .rad file becomes: its own lines as bash lines, as they were written. */
struct rad_script {
    FILE *stream;
    char *text;
    size_t size;
    bool has_command;
};

int rad_script_begin(struct rad_script *script, struct fault *fault);
void rad_script_line(struct rad_script *script, struct span line);

/* Hands the text to the description; a fault when there was no command line. Ends `script` either
 * way. */
int rad_script_end(
    struct rad_script *script, struct task_description *description, struct fault *fault);

/* Sets an option from a .rad value; `shown` is what the file calls it. */
int rad_set(struct task_description *description, enum task_option option, const char *shown,
    struct span value, struct fault *fault);

/* "exclusive" is a wish for the GPU alone, "collocation" (or the listing's "exclusive/
 * collocation") none; else a policy. */
int rad_set_policy(struct task_description *description, const char *shown, struct span value,
    struct fault *fault);

#endif
