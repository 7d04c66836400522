/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads lines "setting: value" of a YAML file that has nothing else. The programs themselves parse
 * it by libyaml; here it is enough to find the few lines that setup and check need.
 */
#include "slurmconf/link_conf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/span_parts.h"

/* The value without YAML's quotes around it or a comment after it. */
static struct span value_of(struct span rest)
{
    struct span value = span_trim(rest);
    if (value.size > 1 && (*value.at == '"' || *value.at == '\'')) {
        const char *end = memchr(value.at + 1, *value.at, value.size - 1);
        return end ? (struct span){value.at + 1, (size_t)(end - value.at) - 1} : value;
    }
    for (size_t i = 0; i < value.size; i++)
        if (value.at[i] == '#' && (i == 0 || value.at[i - 1] == ' ' || value.at[i - 1] == '\t'))
            return span_trim((struct span){value.at, i});
    return value;
}

/* Is it a line of this setting? */
static bool find_value(struct span line, const char *key, struct span *ret_value)
{
    const char *colon = memchr(line.at, ':', line.size);
    size_t size = strlen(key);
    if (!colon || line.size <= size || memcmp(line.at, key, size) != 0 ||
        span_trim((struct span){line.at + size, (size_t)(colon - line.at) - size}).size > 0)
        return false;
    *ret_value = value_of((struct span){colon + 1, (size_t)(line.at + line.size - colon) - 1});
    return true;
}

struct link_conf link_conf_read(struct span text)
{
    struct link_conf conf = {0};
    const struct {
        const char *key;
        char *value;
        size_t size;
    } fields[] = {{"node-auth", conf.node_auth, sizeof conf.node_auth},
        {"node-key-file", conf.key_file, sizeof conf.key_file},
        {"listen", conf.listen, sizeof conf.listen}, {"socket", conf.socket, sizeof conf.socket},
        {"wake-file", conf.wake_file, sizeof conf.wake_file}};
    struct span line, value;
    while (span_next_line(&text, &line))
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
            if (find_value(line, fields[i].key, &value))
                span_copy(value, fields[i].value, fields[i].size);
    return conf;
}

bool link_conf_is_tls(const struct link_conf *conf)
{
    return strcmp(conf->node_auth, "tls") == 0;
}

/* The lines that the file lacks, at its end. */
static int add_end(
    struct span text, bool lacks_auth, const char *key_file, struct text_edits *edits)
{
    char *lines;
    if (asprintf(&lines, "%s%s%s%s", lacks_auth ? "node-auth: tls\n" : "",
            key_file ? "node-key-file: " : "", key_file ? key_file : "", key_file ? "\n" : "") < 0)
        return -ENOMEM;
    return text_edits_add(edits, (struct span){text.at + text.size, 0}, lines);
}

int link_conf_plan(
    struct span text, bool is_tls, const char *key_file, struct text_edits *ret_edits)
{
    const struct link_conf conf = link_conf_read(text);
    const char *wanted = is_tls ? "node-auth: tls\n" : "node-auth: munge\n";
    bool is_right = link_conf_is_tls(&conf) == is_tls;
    struct span rest = text, line, value;
    int r = 0;
    *ret_edits = (struct text_edits){0};
    while (r == 0 && (line = span_take_line(&rest)).size > 0) {
        if (!is_right && find_value(line, "node-auth", &value))
            r = text_edits_add(ret_edits, line, strdup(wanted));
        else if (!is_tls && *conf.key_file && find_value(line, "node-key-file", &value))
            r = text_edits_add(ret_edits, line, strdup("node-key-file: \"\"\n"));
    }
    bool lacks_auth = is_tls && !*conf.node_auth;
    bool lacks_key = is_tls && key_file && !*conf.key_file;
    if (r == 0 && (lacks_auth || lacks_key))
        r = add_end(text, lacks_auth, lacks_key ? key_file : NULL, ret_edits);
    return r;
}
