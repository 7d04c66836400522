/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration file, by libyaml. It is one mapping of plain scalars: lists and aliases
 * have no meaning here and are refused. */
#include "service/setting_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

enum { FILE_MAX_BYTES = 1 << 20 }; /* bytes; chosen: far above any configuration */

struct reader {
    setting_file_on_setting *on_setting;
    setting_file_on_mistake *on_mistake;
    void *context;
    bool in_mapping;
    char key[64];         /* until its value comes; "": none */
    bool skips_value;     /* of a key that cannot be a setting */
    struct fault mistake; /* the newest */
    int r;                /* of that mistake; 0: none yet */
};

static int yaml_problem(const yaml_parser_t *parser, const char *path, struct fault *fault)
{
    return fault_set(fault, EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1,
        parser->problem ? parser->problem : "not YAML");
}

static int take_scalar(struct reader *reader, const char *text, struct fault *fault)
{
    if (!reader->in_mapping)
        return *text ? fault_set(fault, EINVAL, "'%.40s': expected a line 'setting: value'", text)
                     : 0;
    if (reader->skips_value) {
        reader->skips_value = false;
        return 0;
    }
    if (*reader->key) {
        int r = reader->on_setting(reader->context, reader->key, text, fault);
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
    case YAML_ALIAS_EVENT:
        return fault_set(
            fault, EINVAL, "lists and aliases are not supported: write a line 'setting: value'");
    case YAML_MAPPING_START_EVENT:
        if (reader->in_mapping)
            return fault_set(fault, EINVAL, "%s: expected one value on the same line",
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
        bool is_setting = event.type == YAML_SCALAR_EVENT && reader->in_mapping;
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
