/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a script and options of a .rad file: shared by both forms. */
#ifndef COLLOC_TASKFILE_RAD_SCRIPT_H
#define COLLOC_TASKFILE_RAD_SCRIPT_H

#include <stdio.h>

#include "base/text.h"
#include "taskfile/description.h"

/* The bash script that a .rad file becomes; its lines are copied unchanged. */
struct rad_script {
    FILE *stream;
    char *text;
    size_t size;
    bool has_command;
};

/* Returns 0 or -ENOMEM. Ended by rad_script_end. */
int rad_script_begin(struct rad_script *script, struct fault *fault);
/* Appends a line. After a conda line the script ends when that failed. */
void rad_script_line(struct rad_script *script, struct span line);

/* Moves the text to the description. Returns 0, or -errno with a fault: no line is a command. Ends
 * `script` either way. */
int rad_script_end(
    struct rad_script *script, struct task_description *description, struct fault *fault);

/* Sets an option from a .rad value; `shown` is its name in messages. Returns 0 or -errno. */
int rad_set(struct task_description *description, enum task_option option, const char *shown,
    struct span value, struct fault *fault);

/* Sets exclusive for "exclusive", nothing for "collocation" (or the listing's
 * "exclusive/collocation"), a policy otherwise. Returns 0 or -errno. */
int rad_set_policy(struct task_description *description, const char *shown, struct span value,
    struct fault *fault);

#endif
