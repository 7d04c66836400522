/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dockerd starts a container in the cgroup that --cgroup-parent names. Below the task's, or in the
 * task's slice, it is limited with the task and ends with it, its processes are the task's
 * (exec/process_owner.c), and no label has to be believed:
 *
 *     docker run --gpus all -v /d:/d IMAGE train --gpus 2        in a task with GPU 1 becomes
 *
 *     docker run --cgroup-parent=/colloc/1f0c9a77-12.1 --label=colloc.task=12 --gpus=device=1
 *         -v /d:/d IMAGE train --gpus 2
 *
 * So the image has to be found: the first word that is no option, nor an option's value. Docker's
 * options that have no value are listed here; all others have one.
 */
#include "cli/docker_words.h"

#include <string.h>

#include "base/array.h"
#include "base/text.h"

/* docker 20.10 to 28: docker(1), docker-run(1). */
static const char *const flags[] = {"--detach", "--disable-content-trust", "--help", "--init",
    "--interactive", "--no-healthcheck", "--oom-kill-disable", "--privileged", "--publish-all",
    "--quiet", "--read-only", "--rm", "--sig-proxy", "--tty", "--use-api-socket"};
static const char flag_letters[] = "diPqt";
static const char *const global_flags[] = {"--debug", "-D", "--tls", "--tlsverify"};

/* How many words the option has: "-v /a:/a" two, "-v/a:/a", "--gpus=all" and "-it" one. */
static int count_words(const char *option)
{
    if (strncmp(option, "--", 2) == 0)
        return strchr(option, '=') || span_place(span_of(option), flags, ARRAY_SIZE(flags)) >= 0
                   ? 1
                   : 2;
    const char *letter = option + 1 + strspn(option + 1, flag_letters);
    return *letter && !letter[1] ? 2 : 1;
}

int docker_find_verb(const char *const *words)
{
    int i = 0;
    while (words[i] && *words[i] == '-') {
        bool is_alone = strchr(words[i], '=') ||
                        span_place(span_of(words[i]), global_flags, ARRAY_SIZE(global_flags)) >= 0;
        i += is_alone || !words[i + 1] ? 1 : 2;
    }
    return i;
}

/* Returns how many words stand before the verb's options; 0: no container is made. */
static int find_options(const char *const *words)
{
    int i = docker_find_verb(words);
    if (words[i] && strcmp(words[i], "container") == 0)
        i++;
    bool makes = words[i] && (strcmp(words[i], "run") == 0 || strcmp(words[i], "create") == 0);
    return makes ? i + 1 : 0;
}

bool docker_makes_container(const char *const *words)
{
    return find_options(words) > 0;
}

void docker_add_task(struct word_list *list, const struct docker_task *task, bool wants_gpus)
{
    bool has_several = strchr(task->gpus, ',');
    if (task->parent)
        word_list_add(list, "--cgroup-parent=%s", task->parent);
    word_list_add(list, "--label=colloc.task=%s", task->id);
    /* an image may have it: "all", which counts where nvidia is docker's usual runtime */
    word_list_add(list, "--env=" DOCKER_VISIBLE "=%s", *task->gpus ? task->gpus : "void");
    /* the value is a row of CSV: several GPUs are one field, in quotes */
    if (wants_gpus && *task->gpus)
        word_list_add(list, has_several ? "--gpus=\"device=%s\"" : "--gpus=device=%s", task->gpus);
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The value of an option at `words`, if it is that one; else NULL. */
static const char *value_of(const char *const *words, const char *name)
{
    size_t size = strlen(name);
    if (!begins_with(words[0], name))
        return NULL;
    if (words[0][size] == '=')
        return words[0] + size + 1;
    return !words[0][size] && words[1] ? words[1] : NULL;
}

/* The variable of "--env A=1", "-e A=1", "-eA=1", "-e=A=1" and "-ite A=1", if it is such an option;
 * else NULL. `ret_letters`: how many letters stand before the e. */
static const char *variable_of(const char *const *words, size_t *ret_letters)
{
    const char *value = value_of(words, "--env");
    *ret_letters = strspn(words[0] + 1, flag_letters);
    const char *letter = words[0] + 1 + *ret_letters;
    if (value || *letter != 'e')
        return value;
    return letter[1] == '=' ? letter + 2 : letter[1] ? letter + 1 : words[1];
}

bool docker_is_gpu(const char *device)
{
    return begins_with(device, "nvidia.com/gpu") || begins_with(device, "/dev/nvidia");
}

/* Does the option choose GPUs, or a place that is the task's to choose? `ret_letters`: letters of
 * the word that are no part of that. */
static bool is_replaced(
    const char *const *words, const struct docker_task *task, bool *ret_gpus, size_t *ret_letters)
{
    const char *device = value_of(words, "--device"), *variable = variable_of(words, ret_letters);
    if (value_of(words, "--gpus") || (device && docker_is_gpu(device)) ||
        (variable && begins_with(variable, DOCKER_VISIBLE)))
        return *ret_gpus = true;
    const char *runtime = value_of(words, "--runtime");
    *ret_gpus |= runtime && strcmp(runtime, "nvidia") == 0;
    /* dockerd would start it again after the task's end */
    return task->parent && (value_of(words, "--cgroup-parent") || value_of(words, "--restart"));
}

void docker_add_words(
    struct word_list *list, const char *const *words, const struct docker_task *task)
{
    int i = find_options(words);
    struct word_list kept = {0};
    bool wants_gpus = false;
    for (int k = 0; k < i; k++)
        word_list_add(list, "%s", words[k]);
    while (words[i] && *words[i] == '-' && words[i][1] && strcmp(words[i], "--") != 0) {
        int n = count_words(words[i]);
        size_t letters;
        bool is_kept = !is_replaced(words + i, task, &wants_gpus, &letters);
        if (!is_kept && letters > 0)
            word_list_add(&kept, "-%.*s", (int)letters, words[i] + 1);
        for (; n > 0 && words[i]; n--, i++)
            if (is_kept)
                word_list_add(&kept, "%s", words[i]);
    }
    docker_add_task(list, task, wants_gpus);
    for (size_t k = 0; k < kept.n; k++)
        word_list_add(list, "%s", kept.words[k]);
    list->is_cut |= kept.is_cut;
    word_list_fini(&kept);
    for (; words[i]; i++)
        word_list_add(list, "%s", words[i]);
}
