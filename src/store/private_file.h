/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a database that its user alone may read. */
#ifndef COLLOC_STORE_PRIVATE_FILE_H
#define COLLOC_STORE_PRIVATE_FILE_H

#include "base/fault.h"

/*
 * Makes the file, unless it is there, and gives it and SQLite's files beside it mode 0600, whatever
 * the umask is and was: the folder of the state can be entered by all users. SQLite gives the
 * files that it makes the mode of the database.
 *
 * Returns 0; or -errno with a fault.
 */
int private_file_make(const char *path, struct fault *fault);

#endif
