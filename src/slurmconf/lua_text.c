/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the Lua scripts. Their texts are in dist/slurm; this puts the settings in the place of
 * @SETTINGS@, and for the check of #COLLOC lines the table of task options in that of @OPTIONS@, so
 * that slurmctld refuses what `colloc submit` would.
 */
#include "slurmconf/lua_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "slurmconf/built_in_cli_filter.h"
#include "slurmconf/built_in_job_submit.h"
#include "slurmconf/built_in_jobcomp.h"
#include "taskfile/description.h"

const char *const lua_names[] = {"job_submit.lua", "jobcomp.lua", "cli_filter.lua", NULL};

static const char *const texts[] = {built_in_job_submit, built_in_jobcomp, built_in_cli_filter};

static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == '"' || c == '\\' || c == 0x7f)
            fprintf(out, "\\%03u", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void write_setting(FILE *out, const char *name, const char *text)
{
    fprintf(out, "        %s = ", name);
    write_string(out, text ? text : "");
    fputs(",\n", out);
}

/* Only what the script uses: `colloc slurm check` compares it with what setup would write. */
static void write_settings(FILE *out, const char *name, const struct lua_settings *settings)
{
    if (strcmp(name, "cli_filter.lua") == 0) {
        write_setting(out, "colloc", settings->colloc);
        fprintf(out, "        shards = %d,\n        gpu_memory_mib = %.0f,\n", settings->shards,
            (double)settings->gpu_memory_bytes / 1048576.0);
        return;
    }
    write_setting(out, "intake", settings->intake);
    write_setting(out, "run", settings->run);
    write_setting(out, "wake_file", settings->wake_file);
    if (strcmp(name, "job_submit.lua") != 0)
        return;
    fputs("        administrators = {", out);
    for (size_t i = 0; i < settings->n_administrators; i++)
        fprintf(out, "%s[%u] = true", i ? ", " : "", (unsigned)settings->administrators[i]);
    fputs("},\n", out);
}

static void write_choices(FILE *out, const struct option_spec *spec)
{
    const char *choice;
    fputs("\"choice\"", out);
    for (size_t i = 0; (choice = option_choice(spec, i)); i++) {
        fputs(", ", out);
        write_string(out, choice);
    }
}

/* The fields that the guard can judge without files and other tables; the rest is only text to
 * it. */
static void write_spec(FILE *out, const struct option_spec *spec)
{
    fputs("{", out);
    if (spec->kind == OPTION_FLAG)
        fputs("\"flag\"", out);
    else if (spec->kind == OPTION_INTEGER)
        fprintf(out, "\"integer\", %" PRId64 ", %" PRId64, spec->min, spec->max);
    else if (spec->kind == OPTION_SIZE)
        fprintf(out, "\"size\", %s", spec->needs_unit ? "true" : "false");
    else if (spec->kind == OPTION_DURATION)
        fputs("\"duration\"", out);
    else if (spec->kind == OPTION_SHARE)
        fputs("\"share\"", out);
    else if (spec->kind == OPTION_CHOICE && !spec->canonical)
        write_choices(out, spec);
    else
        fprintf(out, "\"text\", %zu", option_text_max(spec));
    fputs("},\n", out);
}

static void write_options(FILE *out)
{
    for (size_t i = 0; i < task_option_count; i++) {
        const struct option_spec *spec = &task_options[i];
        fprintf(out, "        [\"%s\"] = ", spec->name);
        write_spec(out, spec);
        if (spec->alias) {
            fprintf(out, "        [\"%s\"] = ", spec->alias);
            write_spec(out, spec);
        }
        if (spec->letter) {
            fprintf(out, "        [\"-%c\"] = ", spec->letter);
            write_spec(out, spec);
        }
    }
}

/* Copies the text, whole lines of it replaced where they are a placeholder. */
static void write_text(
    FILE *out, const char *name, const char *text, const struct lua_settings *settings)
{
    struct span rest = span_of(text), line;
    while (span_next_line(&rest, &line)) {
        struct span word = span_trim(line);
        if (span_is(word, "@SETTINGS@"))
            write_settings(out, name, settings);
        else if (span_is(word, "@OPTIONS@"))
            write_options(out);
        else
            fprintf(out, "%.*s\n", (int)line.size, line.at);
    }
}

char *lua_text_make(const char *name, const struct lua_settings *settings)
{
    size_t i = 0, size;
    char *result = NULL;
    while (lua_names[i] && strcmp(lua_names[i], name) != 0)
        i++;
    FILE *out = lua_names[i] ? open_memstream(&result, &size) : NULL;
    if (!out)
        return NULL;
    write_text(out, name, texts[i], settings);
    if (fclose(out) != 0) {
        free(result);
        return NULL;
    }
    return result;
}
