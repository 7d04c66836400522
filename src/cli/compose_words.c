/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Docker's reference of the compose file, and compose 2.26's output. A service asks for GPUs in one
 * of four ways:
 *
 *     deploy: {resources: {reservations: {devices: [{driver: nvidia, capabilities: [gpu]}]}}}
 *     gpus: all                                            since 2.30
 *     devices: [nvidia.com/gpu=all]                        CDI; or /dev/nvidia0
 *     runtime: nvidia, environment: {NVIDIA_VISIBLE_DEVICES: all}
 *
 * All become the first, with the task's GPUs. The variable is set in each service: images have it.
 */
#include "cli/compose_words.h"

#include <string.h>

#include "base/array.h"
#include "base/text.h"

/* ---- the command line ---- */

/* compose 2.26: docker compose --help. All other options before its verb have a value. */
static const char *const flags[] = {"--all-resources", "--compatibility", "--dry-run", "--verbose",
    "--help", "-h", "--version", "-v"};

static bool is_flag(const char *word)
{
    return span_place(span_of(word), flags, ARRAY_SIZE(flags)) >= 0;
}

/* How many words the option at `words` has: "-f a" two, "-fa" and "--file=a" one. */
static int count_words(const char *const *words)
{
    bool has_value_within = strncmp(words[0], "--", 2) == 0 ? strchr(words[0], '=') != NULL
                                                            : words[0][2] != '\0';
    return has_value_within || is_flag(words[0]) || !words[1] ? 1 : 2;
}

/* The value of the option at `words`, if it is the one of these names; else NULL. */
static const char *value_of(const char *const *words, const char *name, char letter)
{
    size_t size = strlen(name);
    if (strncmp(words[0], name, size) == 0 && words[0][size] == '=')
        return words[0] + size + 1;
    if (strcmp(words[0], name) == 0)
        return words[1];
    if (letter && words[0][0] == '-' && words[0][1] == letter)
        return words[0][2] == '=' ? words[0] + 3 : words[0][2] ? words[0] + 2 : words[1];
    return NULL;
}

static const char *file_of(const char *const *words)
{
    return value_of(words, "--file", 'f');
}

struct compose_call compose_parse(const char *const *words)
{
    struct compose_call call = {.compose = docker_find_verb(words)};
    int i = call.compose + (words[call.compose] != NULL);
    for (; words[i] && *words[i] == '-'; i += count_words(words + i)) {
        const char *directory = value_of(words + i, "--project-directory", '\0');
        if (!call.file)
            call.file = file_of(words + i);
        if (directory)
            call.directory = directory;
    }
    call.verb = i;
    return call;
}

bool compose_starts_project(const char *const *words)
{
    static const char *const verbs[] = {"up", "run", "create", "scale", "watch"};
    const struct compose_call call = compose_parse(words);
    if (!words[call.compose] || strcmp(words[call.compose], "compose") != 0 || !words[call.verb])
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(verbs[i], words[call.verb]) == 0)
            return true;
    return false;
}

void compose_add_config(struct word_list *list, const char *const *words)
{
    const struct compose_call call = compose_parse(words);
    for (int i = 0; i < call.verb; i++)
        word_list_add(list, "%s", words[i]);
    word_list_add(list, "--profile=*");
    word_list_add(list, "config");
    word_list_add(list, "--format=json");
}

void compose_add_replaced(struct word_list *list, const char *const *words, const char *file,
    const char *directory, const char *name)
{
    const struct compose_call call = compose_parse(words);
    for (int i = 0; words[i];) {
        bool is_option = i > call.compose && i < call.verb;
        int n = is_option ? count_words(words + i) : 1;
        bool is_kept = !is_option || !file_of(words + i);
        if (i == call.verb) {
            word_list_add(list, "--file=%s", file);
            word_list_add(list, "--project-directory=%s", directory);
            word_list_add(list, "--project-name=%s", name);
        }
        for (; n > 0; n--, i++)
            if (is_kept)
                word_list_add(list, "%s", words[i]);
    }
}

/* ---- the project ---- */

static bool begins_with(const json_t *text, const char *prefix)
{
    const char *value = json_string_value(text);
    return value && strncmp(value, prefix, strlen(prefix)) == 0;
}

static bool asks_for_gpu(const json_t *device)
{
    const json_t *capability;
    size_t i;
    json_array_foreach(json_object_get(device, "capabilities"), i, capability) {
        if (begins_with(capability, "gpu"))
            return true;
    }
    return begins_with(json_object_get(device, "driver"), "nvidia");
}

static bool is_gpu(const json_t *device)
{
    const char *text = json_string_value(device),
               *source = json_string_value(json_object_get(device, "source"));
    return (text && docker_is_gpu(text)) || (source && docker_is_gpu(source));
}

/* Returns whether there was one. */
static bool remove_from(json_t *list, bool (*is_one)(const json_t *item))
{
    bool found = false;
    for (size_t i = json_array_size(list); i-- > 0;)
        if (is_one(json_array_get(list, i))) {
            json_array_remove(list, i);
            found = true;
        }
    return found;
}

/* Returns the member, an object, which is made where it is missing. */
static json_t *object_member(json_t *parent, const char *name)
{
    if (!json_is_object(json_object_get(parent, name)))
        json_object_set_new(parent, name, json_object());
    return json_object_get(parent, name);
}

static json_t *find_devices(json_t *service)
{
    static const char *const path[] = {"deploy", "resources", "reservations", "devices"};
    json_t *at = service;
    for (size_t i = 0; i < ARRAY_SIZE(path); i++)
        at = json_object_get(at, path[i]);
    return at;
}

static bool take_requests(json_t *service)
{
    bool wants = remove_from(find_devices(service), asks_for_gpu);
    wants |= remove_from(json_object_get(service, "devices"), is_gpu);
    wants |= json_object_del(service, "gpus") == 0;
    wants |= begins_with(json_object_get(service, "runtime"), "nvidia");
    return wants || json_object_get(json_object_get(service, "environment"), DOCKER_VISIBLE);
}

/* "0,2" */
static json_t *list_of(const char *gpus)
{
    json_t *list = json_array();
    for (const char *at = gpus; *at; at += strcspn(at, ","), at += *at == ',')
        json_array_append_new(list, json_stringn(at, strcspn(at, ",")));
    return list;
}

static bool give_gpus(json_t *service, const char *gpus)
{
    json_t *reservations = object_member(
        object_member(object_member(service, "deploy"), "resources"), "reservations");
    if (!json_is_array(json_object_get(reservations, "devices")))
        json_object_set_new(reservations, "devices", json_array());
    return !*gpus || json_array_append_new(json_object_get(reservations, "devices"),
                         json_pack("{s:s, s:[s], s:o}", "driver", "nvidia", "capabilities", "gpu",
                             "device_ids", list_of(gpus))) == 0;
}

static bool join_service(json_t *service, const struct docker_task *task)
{
    json_object_del(service, "restart"); /* dockerd would start it again after the task's end */
    json_object_del(json_object_get(service, "deploy"), "restart_policy");
    if (!task->parent) /* its dockerd is in the task, and all that it starts */
        json_object_del(service, "cgroup_parent");
    else if (json_object_set_new(service, "cgroup_parent", json_string(task->parent)) < 0)
        return false;
    bool wants_gpus = take_requests(service);
    const char *visible = *task->gpus ? task->gpus : "void";
    return json_object_set_new(
               object_member(service, "labels"), "colloc.task", json_string(task->id)) == 0 &&
           json_object_set_new(
               object_member(service, "environment"), DOCKER_VISIBLE, json_string(visible)) == 0 &&
           (!wants_gpus || give_gpus(service, task->gpus));
}

bool compose_join_task(json_t *project, const struct docker_task *task)
{
    json_t *services = json_object_get(project, "services"), *service;
    const char *name;
    json_object_foreach(services, name, service) {
        if (!json_is_object(service) || !join_service(service, task))
            return false;
    }
    return json_is_object(services) && json_is_string(json_object_get(project, "name"));
}
