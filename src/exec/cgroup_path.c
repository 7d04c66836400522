/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the paths of attempts' cgroups in texts of /proc. Their form: proc(5), section 3.5
 * (mountinfo), and Documentation/admin-guide/cgroup-v2.rst of Linux. */
#include "exec/cgroup_path.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "36 35 98:0 /root /mount-point options ... - type source options" */
static bool parse_mount_line(const char *line, size_t length, char *ret_path, size_t size)
{
    char text[CGROUP_PATH_SIZE], root[CGROUP_PATH_SIZE], path[CGROUP_PATH_SIZE];
    if (length >= sizeof text)
        return false;
    memcpy(text, line, length);
    text[length] = '\0';
    const char *type = strstr(text, " - ");
    return type && strncmp(type, " - cgroup2 ", 11) == 0 &&
           sscanf(text, "%*s %*s %*s %4095s %4095s", root, path) == 2 && strcmp(root, "/") == 0 &&
           snprintf(ret_path, size, "%s", path) < (int)size;
}

bool cgroup_parse_mount(const char *mountinfo, char *ret_path, size_t size)
{
    for (const char *line = mountinfo; *line;) {
        size_t length = strcspn(line, "\n");
        if (parse_mount_line(line, length, ret_path, size))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

bool cgroup_parse_own(const char *text, char *ret_path, size_t size)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, "0::/", 4) == 0)
            return snprintf(ret_path, size, "%.*s", (int)length - 3, line + 3) < (int)size;
        line += length + (line[length] == '\n');
    }
    return false;
}

bool cgroup_find_base(
    const char *mount, const char *own, char *ret_path, size_t size, bool *ret_may_enable)
{
    static const char subgroup[] = "/" CGROUP_SUBGROUP;
    bool is_root = strcmp(own, "/") == 0;
    size_t length = is_root ? 0 : strlen(own), tail = sizeof subgroup - 1;
    bool in_subgroup = length >= tail && strcmp(own + length - tail, subgroup) == 0;
    *ret_may_enable = is_root || in_subgroup;
    return snprintf(ret_path, size, "%s%.*s", mount, (int)(in_subgroup ? length - tail : length),
               own) < (int)size;
}

/* Identifies a state folder in a few characters. */
static uint32_t hash_of(const char *text, size_t length)
{
    return hash32_bytes(HASH32_START, text, length);
}

bool cgroup_of_attempt(const char *home, const char *folder, char *ret_path, size_t size)
{
    static const char tasks[] = "/tasks/";
    const char *below = NULL;
    for (const char *at = folder; (at = strstr(at, tasks)); at++)
        below = at;
    uint64_t task;
    int attempt;
    return below && sscanf(below, "/tasks/%" SCNu64 "/%d", &task, &attempt) == 2 &&
           snprintf(ret_path, size, "%s/%08" PRIx32 "-%" PRIu64 ".%d", home,
               hash_of(folder, (size_t)(below - folder)), task, attempt) < (int)size;
}

bool cgroup_parse_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt)
{
    uint32_t hash;
    char end;
    return sscanf(name, "%8" SCNx32 "-%" SCNu64 ".%d%c", &hash, ret_task, ret_attempt, &end) == 3 &&
           hash == hash_of(state_dir, strlen(state_dir));
}

bool cgroup_parse_attempt(
    const char *own, const char *home, const char *state_dir, uint64_t *ret_task, int *ret_attempt)
{
    size_t length = strlen(home);
    if (strncmp(own, home, length) != 0 || own[length] != '/')
        return false;
    const char *name = own + length + 1;
    char text[64]; /* the longest name has 40 */
    return snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "/"), name) < (int)sizeof text &&
           cgroup_parse_name(text, state_dir, ret_task, ret_attempt);
}

/* A dash in a slice's name stands for a level, so the cgroup's has an underscore there. */
bool cgroup_slice_of(const char *cgroup, char *ret_name, size_t size)
{
    const char *name = strrchr(cgroup, '/');
    uint32_t hash;
    uint64_t task;
    int attempt;
    char end;
    return name &&
           sscanf(name + 1, "%8" SCNx32 "-%" SCNu64 ".%d%c", &hash, &task, &attempt, &end) == 3 &&
           snprintf(ret_name, size, "colloc-%08" PRIx32 "_%" PRIu64 ".%d.slice", hash, task,
               attempt) < (int)size;
}

bool cgroup_parse_slice_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt)
{
    uint32_t hash;
    int end = 0;
    return sscanf(name, "colloc-%8" SCNx32 "_%" SCNu64 ".%d.slice%n", &hash, ret_task, ret_attempt,
               &end) == 3 &&
           end > 0 && !name[end] && hash == hash_of(state_dir, strlen(state_dir));
}

bool cgroup_parse_slice(
    const char *own, const char *state_dir, uint64_t *ret_task, int *ret_attempt)
{
    static const char home[] = "/" CGROUP_SLICES "/";
    char name[96]; /* the longest has 53 */
    if (strncmp(own, home, sizeof home - 1) != 0)
        return false;
    own += sizeof home - 1;
    return snprintf(name, sizeof name, "%.*s", (int)strcspn(own, "/"), own) < (int)sizeof name &&
           cgroup_parse_slice_name(name, state_dir, ret_task, ret_attempt);
}

int64_t cgroup_parse_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; *line;) {
        int64_t value;
        if (strncmp(line, key, length) == 0 && line[length] == ' ' &&
            sscanf(line + length, "%" SCNd64, &value) == 1)
            return value;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return -1;
}
