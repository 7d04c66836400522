/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spec is written as tagged fields (exec/tagged_fields.h) and read back strictly: an unknown
 * field is an error, as the daemon and the shim are of one version.
 */
#include "exec/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/tagged_fields.h"

#define MAGIC   "colloc-spec"
#define VERSION 1 /* of the file; a shim refuses others */

#define CPU_WEIGHT_MAX 10000 /* the kernel's */

#define CPUS_MAX 1000000 /* chosen: their time in a period does not overflow */

static bool same_key(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strncmp(a, b, n) == 0 && b[n] == '=';
}

static bool is_overridden(const struct attempt_spec *spec, const char *variable)
{
    for (const char *const *added = spec->env_added; added && *added; added++)
        if (same_key(*added, variable))
            return true;
    return false;
}

static int check_spec(const struct attempt_spec *spec, struct fault *fault)
{
    if (!spec->cwd || spec->cwd[0] != '/')
        return fault_set(fault, EINVAL, "the folder to run in must be an absolute path");
    if (spec->script.size == 0 && (!spec->argv || !spec->argv[0]))
        return fault_set(fault, EINVAL, "there is neither a script nor a command to run");
    if (spec->uid == (uid_t)-1 || spec->gid == (gid_t)-1) /* setresuid takes them for: no change */
        return fault_set(fault, EINVAL, "the user or the group of the task is not known");
    if (spec->grace_us < 0 || spec->time_limit_us < 0 || spec->kept_max_bytes < 0 ||
        spec->output_max_bytes < 0 || spec->warning_us < 0)
        return fault_set(
            fault, EINVAL, "grace, time limit and the cap of the output must not be negative");
    return 0;
}

int spec_encode(
    const struct attempt_spec *spec, struct fault *fault, char **ret_data, size_t *ret_size)
{
    int r = check_spec(spec, fault);
    if (r < 0)
        return r;
    struct tagged_fields record = {0};
    tagged_fields_put_int(&record, MAGIC, VERSION);
    tagged_fields_put_int(&record, "task", spec->task_id);
    tagged_fields_put_int(&record, "array", spec->array_id);
    tagged_fields_put_int(&record, "index", spec->array_index);
    tagged_fields_put_int(&record, "uid", spec->uid);
    tagged_fields_put_int(&record, "gid", spec->gid);
    tagged_fields_put_int(&record, "umask", spec->umask);
    tagged_fields_put_int(&record, "open_files", spec->open_files);
    tagged_fields_put_int(&record, "grace_us", spec->grace_us);
    tagged_fields_put_int(&record, "time_limit_us", spec->time_limit_us);
    tagged_fields_put_int(&record, "reads_time_limit", 1);
    tagged_fields_put_int(&record, "warning_signal", spec->warning_signal);
    tagged_fields_put_int(&record, "warning_us", spec->warning_us);
    tagged_fields_put_int(&record, "warns_script_only", spec->warns_script_only);
    tagged_fields_put_int(&record, "script", spec->script.size > 0);
    tagged_fields_put_int(&record, "append", spec->append);
    tagged_fields_put_int(&record, "profiler", spec->profiler);
    tagged_fields_put_int(&record, "stdout_is_default", spec->stdout_is_default);
    tagged_fields_put_int(&record, "kept_max_bytes", spec->kept_max_bytes);
    tagged_fields_put_int(&record, "output_max_bytes", spec->output_max_bytes);
    tagged_fields_put_int(&record, "cpus", spec->limits.cpus);
    tagged_fields_put_int(&record, "cpu_weight", spec->limits.cpu_weight);
    tagged_fields_put_int(&record, "memory_bytes", spec->limits.memory_bytes);
    tagged_fields_put_int(&record, "processes", spec->limits.processes);
    tagged_fields_put_text(&record, "name", spec->name);
    tagged_fields_put_text(&record, "cwd", spec->cwd);
    tagged_fields_put_text(&record, "stdout", spec->stdout_path);
    tagged_fields_put_text(&record, "stderr", spec->stderr_path);
    tagged_fields_put_text(&record, "cgroup", spec->cgroup);
    tagged_fields_put_text(&record, "near_cpus", spec->near_cpus);
    tagged_fields_put_text(&record, "track", spec->track);
    tagged_fields_put_text(&record, "metric_from", spec->metric_from);
    tagged_fields_put_text(&record, "metric_rule", spec->metric_rule);
    tagged_fields_put_text(&record, "step_pattern", spec->step_pattern);
    tagged_fields_put_text(&record, "gpu_minors", spec->gpu_minors);
    tagged_fields_put_text(&record, "torch", spec->torch);
    tagged_fields_put_text(&record, "torch_sockets", spec->torch_sockets);
    for (const char *const *arg = spec->argv; arg && *arg; arg++)
        tagged_fields_put_text(&record, "arg", *arg);
    for (const char *const *variable = spec->env; variable && *variable; variable++)
        if (!is_overridden(spec, *variable))
            tagged_fields_put_text(&record, "env", *variable);
    for (const char *const *variable = spec->env_added; variable && *variable; variable++)
        tagged_fields_put_text(&record, "env", *variable);
    r = tagged_fields_finish(&record);
    if (r < 0) {
        tagged_fields_fini(&record);
        return fault_set(fault, ENOMEM, "out of memory");
    }
    *ret_data = record.data;
    *ret_size = record.size;
    return 0;
}

/* The newline after a value is replaced by a NUL, so that values are C strings in place. */
static int as_text(struct span value, const char **ret)
{
    if (memchr(value.at, '\0', value.size))
        return -EBADMSG;
    ((char *)(uintptr_t)value.at)[value.size] = '\0';
    *ret = value.at;
    return 0;
}

static int append_text(const char **list, size_t *count, struct span value)
{
    return as_text(value, &list[(*count)++]);
}

static int take_number(struct spec_file *file, struct span key, struct span value)
{
    struct attempt_spec *spec = &file->spec;
    int64_t n;
    if (tagged_fields_int(value, 0, INT64_MAX, &n) < 0)
        return -EBADMSG;
    if (span_is(key, "task"))
        spec->task_id = n;
    else if (span_is(key, "array"))
        spec->array_id = n;
    else if (span_is(key, "index"))
        spec->array_index = n;
    else if (span_is(key, "uid") && n <= UINT32_MAX)
        spec->uid = (uid_t)n;
    else if (span_is(key, "gid") && n <= UINT32_MAX)
        spec->gid = (gid_t)n;
    else if (span_is(key, "umask") && n <= 0777)
        spec->umask = (mode_t)n;
    else if (span_is(key, "profiler") && n <= PROFILER_NCU_RANGES)
        spec->profiler = (enum profiler)n;
    else if (span_is(key, "open_files"))
        spec->open_files = n;
    else if (span_is(key, "grace_us"))
        spec->grace_us = n;
    else if (span_is(key, "time_limit_us"))
        spec->time_limit_us = n;
    else if (span_is(key, "reads_time_limit"))
        file->reads_time_limit = n;
    else if (span_is(key, "warning_signal") && n <= 64)
        spec->warning_signal = (int)n;
    else if (span_is(key, "warning_us"))
        spec->warning_us = n;
    else if (span_is(key, "warns_script_only"))
        spec->warns_script_only = n;
    else if (span_is(key, "script"))
        file->has_script = n;
    else if (span_is(key, "append"))
        spec->append = n;
    else if (span_is(key, "stdout_is_default"))
        spec->stdout_is_default = n;
    else if (span_is(key, "kept_max_bytes"))
        spec->kept_max_bytes = n;
    else if (span_is(key, "output_max_bytes"))
        spec->output_max_bytes = n;
    else if (span_is(key, "cpus") && n <= CPUS_MAX)
        spec->limits.cpus = n;
    else if (span_is(key, "cpu_weight") && n <= CPU_WEIGHT_MAX)
        spec->limits.cpu_weight = n;
    else if (span_is(key, "memory_bytes"))
        spec->limits.memory_bytes = n;
    else if (span_is(key, "processes"))
        spec->limits.processes = n;
    else
        return -EBADMSG;
    return 0;
}

struct counts {
    size_t args, variables, fields;
};

static int take_field(
    struct spec_file *file, struct counts *seen, struct span key, struct span value)
{
    if (seen->fields++ == 0)
        return span_is(key, MAGIC) && span_is(value, "1") ? 0 : -EBADMSG;
    if (span_is(key, "arg"))
        return append_text(file->argv, &seen->args, value);
    if (span_is(key, "env"))
        return append_text(file->env, &seen->variables, value);
    if (span_is(key, "name"))
        return as_text(value, &file->spec.name);
    if (span_is(key, "cwd"))
        return as_text(value, &file->spec.cwd);
    if (span_is(key, "stdout"))
        return as_text(value, &file->spec.stdout_path);
    if (span_is(key, "stderr"))
        return as_text(value, &file->spec.stderr_path);
    if (span_is(key, "cgroup"))
        return as_text(value, &file->spec.cgroup);
    if (span_is(key, "near_cpus"))
        return as_text(value, &file->spec.near_cpus);
    if (span_is(key, "track"))
        return as_text(value, &file->spec.track);
    if (span_is(key, "metric_from"))
        return as_text(value, &file->spec.metric_from);
    if (span_is(key, "metric_rule"))
        return as_text(value, &file->spec.metric_rule);
    if (span_is(key, "step_pattern"))
        return as_text(value, &file->spec.step_pattern);
    if (span_is(key, "torch"))
        return as_text(value, &file->spec.torch);
    if (span_is(key, "torch_sockets"))
        return as_text(value, &file->spec.torch_sockets);
    if (span_is(key, "gpu_minors"))
        return as_text(value, &file->spec.gpu_minors);
    return take_number(file, key, value);
}

static int count_lists(struct span rest, struct counts *ret)
{
    struct span key, value;
    int r;
    while ((r = tagged_fields_next(&rest, &key, &value)) > 0) {
        ret->args += span_is(key, "arg");
        ret->variables += span_is(key, "env");
    }
    return r;
}

static int decode_fields(struct spec_file *file, struct span rest)
{
    struct counts total = {0}, seen = {0};
    int r = count_lists(rest, &total);
    if (r < 0)
        return r;
    file->argv = calloc(total.args + 1, sizeof *file->argv);
    file->env = calloc(total.variables + 1, sizeof *file->env);
    if (!file->argv || !file->env)
        return -ENOMEM;
    struct span key, value;
    while ((r = tagged_fields_next(&rest, &key, &value)) > 0)
        if ((r = take_field(file, &seen, key, value)) < 0)
            return r;
    file->spec.argv = file->argv;
    file->spec.env = file->env;
    if (r == 0 && (!file->spec.cwd || (!file->has_script && total.args == 0)))
        r = -EBADMSG;
    return r;
}

int spec_decode(char *data, size_t size, struct fault *fault, struct spec_file *ret_file)
{
    *ret_file = (struct spec_file){.data = data};
    int r = decode_fields(ret_file, (struct span){data, size});
    if (r < 0) {
        spec_file_fini(ret_file);
        return fault_set(fault, -r, "not a spec this version of colloc can read");
    }
    return 0;
}

void spec_file_fini(struct spec_file *file)
{
    free(file->data);
    free(file->argv);
    free(file->env);
    *file = (struct spec_file){0};
}

/* A name may have slashes, which would be folders. */
static void put_name(FILE *out, const char *name)
{
    for (const char *at = name ? name : "task"; *at; at++)
        fputc(*at == '/' ? '_' : *at, out);
}

/* Writes the value of a pattern: its letter, behind a width to which numbers are filled with zeros
 * (%4j). Returns whether the letter has one. */
static bool write_placeholder(
    FILE *out, const struct attempt_spec *spec, const char *width, char letter)
{
    size_t digits = strspn(width, "0123456789");
    int zeros = digits > 0 && digits < 3 ? atoi(width) : 0;
    if (letter == 'j')
        fprintf(out, "%0*" PRId64, zeros, spec->task_id);
    else if (letter == 'A')
        fprintf(out, "%0*" PRId64, zeros, spec->array_id ? spec->array_id : spec->task_id);
    else if (letter == 'a')
        fprintf(out, "%0*" PRId64, zeros, spec->array_index);
    else if (letter == 'x')
        put_name(out, spec->name);
    else if (letter == '%')
        fputc('%', out);
    else
        return false;
    return true;
}

int spec_output_path(const struct attempt_spec *spec, const char *path, char *buffer, size_t size)
{
    FILE *out = fmemopen(buffer, size, "w");
    if (!out)
        return -ENAMETOOLONG;
    if (path[0] != '/')
        fprintf(out, "%s/", spec->cwd);
    for (const char *at = path; *at; at++) {
        size_t width = at[0] == '%' ? strspn(at + 1, "0123456789") : 0;
        if (at[0] == '%' && write_placeholder(out, spec, at + 1, at[1 + width]))
            at += 1 + width;
        else
            fputc(*at, out);
    }
    fputc('\0', out);
    bool fits = !ferror(out) && fflush(out) == 0;
    fclose(out);
    return fits ? 0 : -ENAMETOOLONG;
}
