/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration file, by libyaml. It is one mapping of plain scalars and of lists of such:
 * sections and aliases have no meaning here and are refused. */
#include "service/setting_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

enum { FILE_MAX_BYTES = 1 << 20 }; /* bytes; chosen: far above any configuration */
enum { LIST_MAX_BYTES = 1024 };    /* of a list as text; chosen: more than any setting holds */

struct reader {
    setting_file_on_setting *on_setting;
    setting_file_on_mistake *on_mistake;
    void *context;
    bool in_mapping;
    char key[64];     /* until its value comes; "": none */
    bool skips_value; /* of a key that cannot be a setting */
    bool in_list;
    char list[LIST_MAX_BYTES]; /* its members so far */
    bool is_list_long;         /* it had no space for all */
    struct fault mistake;      /* the newest */
    int r;                     /* of that mistake; 0: none yet */
};

static int yaml_problem(const yaml_parser_t *parser, const char *path, struct fault *fault)
{
    return fault_set(fault, EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1,
        parser->problem ? parser->problem : "not YAML");
}

static void take_member(struct reader *reader, const char *text)
{
    size_t used = strlen(reader->list);
    int n = snprintf(
        reader->list + used, sizeof reader->list - used, "%s%s", used ? "," : "", text);
    reader->is_list_long |= n < 0 || (size_t)n >= sizeof reader->list - used;
}

static int begin_list(struct reader *reader, struct fault *fault)
{
    if (!reader->in_mapping || reader->in_list || !(*reader->key || reader->skips_value))
        return fault_set(fault, EINVAL, "a list is not expected here: write 'setting: value'");
    reader->in_list = true;
    reader->is_list_long = false;
    *reader->list = '\0';
    return 0;
}

static int end_list(struct reader *reader, struct fault *fault)
{
    char key[sizeof reader->key];
    bool skips = reader->skips_value;
    memcpy(key, reader->key, sizeof key);
    *reader->key = '\0';
    reader->in_list = reader->skips_value = false;
    if (skips)
        return 0;
    if (reader->is_list_long)
        return fault_set(fault, EINVAL, "%s: the list is too long", key);
    return reader->on_setting(reader->context, key, reader->list, true, fault);
}

static int take_scalar(struct reader *reader, const char *text, struct fault *fault)
{
    if (reader->in_list) {
        take_member(reader, text);
        return 0;
    }
    if (!reader->in_mapping)
        return *text ? fault_set(fault, EINVAL, "'%.40s': expected a line 'setting: value'", text)
                     : 0;
    if (reader->skips_value) {
        reader->skips_value = false;
        return 0;
    }
    if (*reader->key) {
        int r = reader->on_setting(reader->context, reader->key, text, false, fault);
        *reader->key = '\0';
        return r;
    }
    if (!*text || strlen(text) >= sizeof reader->key) {
        reader->skips_value = true;
        return fault_set(
            fault, EINVAL, "'%.40s': unknown setting: `collocd --help` lists all settings", text);
    }
    memcpy(reader->key, text, strlen(text) + 1);
    return 0;
}

static int take_yaml_event(struct reader *reader, const yaml_event_t *event, struct fault *fault)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(reader, (const char *)event->data.scalar.value, fault);
    case YAML_SEQUENCE_START_EVENT:
        return begin_list(reader, fault);
    case YAML_SEQUENCE_END_EVENT:
        return end_list(reader, fault);
    case YAML_ALIAS_EVENT:
        return fault_set(fault, EINVAL, "aliases are not supported: write a line 'setting: value'");
    case YAML_MAPPING_START_EVENT:
        if (reader->in_mapping)
            return fault_set(fault, EINVAL,
                "%s: expected one value on the same line: the file has no sections, and each setting "
                "begins its line",
                *reader->key ? reader->key : "setting");
        reader->in_mapping = true;
        return 0;
    default:
        return 0;
    }
}

/* Keeps the newest mistake, and passes the one before it on. */
static void take_mistake(struct reader *reader, int r, const struct fault *mistake)
{
    if (reader->r < 0)
        reader->on_mistake(reader->mistake.text);
    reader->mistake = *mistake;
    reader->r = r;
}

/* A wrong setting leaves the reader at the next line, and reading may go on; a mistake in the form
 * of the file ends it. */
static void read_yaml(struct reader *reader, yaml_parser_t *parser, const char *path)
{
    struct fault fault = {0};
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            take_mistake(reader, yaml_problem(parser, path, &fault), &fault);
            return;
        }
        bool is_setting = reader->in_mapping && (event.type == YAML_SCALAR_EVENT ||
                                                    event.type == YAML_SEQUENCE_END_EVENT);
        size_t line = event.start_mark.line + 1;
        int r = take_yaml_event(reader, &event, &fault);
        if (r < 0)
            take_mistake(reader, fault_prefix(&fault, r, "%s:%zu", path, line), &fault);
        done = event.type == YAML_STREAM_END_EVENT ||
               (r < 0 && !(is_setting && reader->on_mistake));
        yaml_event_delete(&event);
    }
}

int setting_file_read(const char *path, setting_file_on_setting *on_setting, void *context,
    setting_file_on_mistake *on_mistake, struct fault *fault)
{
    char *text;
    size_t size;
    struct reader reader = {.on_setting = on_setting, .on_mistake = on_mistake, .context = context};
    int r = file_read(path, FILE_MAX_BYTES, fault, &text, &size);
    if (r < 0)
        return r;
    yaml_parser_t parser;
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    read_yaml(&reader, &parser, path);
    yaml_parser_delete(&parser);
    free(text);
    if (reader.r < 0 && fault)
        *fault = reader.mistake;
    return reader.r;
}
