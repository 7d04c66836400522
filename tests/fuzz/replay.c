/* SPDX-License-Identifier: Apache-2.0 */
/* Gives every file of the folders (or the files) named on the command line to the fuzz target,
 * without libFuzzer. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "fuzz.h"

static int replay_file(const char *path)
{
    struct fault fault;
    char *data;
    size_t size;
    if (file_read(path, SIZE_MAX / 2, &fault, &data, &size) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        return 0;
    }
    fprintf(stderr, "%s: %zu bytes\n", path, size);
    LLVMFuzzerTestOneInput((const uint8_t *)data, size);
    free(data);
    return 1;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return replay_file(folder);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[PATH_MAX];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
            n += replay_file(path);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (replay_folder(argv[i]) == 0) {
            fprintf(stderr, "%s: no seeds\n", argv[i]);
            return 1;
        }
    }
    return 0;
}
