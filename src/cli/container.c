/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podman starts a container below the process that calls it, as the same user, and with
 * --cgroups=disabled leaves it in that process's cgroup: the kernel keeps the container in the
 * task, whatever runs there. It is limited like the task and ends with it.
 *
 *     submit --container=IMAGE -- python train.py    in a task with GPU 2 becomes
 *
 *     podman run --rm --cgroups=disabled --device=nvidia.com/gpu=2 --volume=/home/ada/a:/home/ada/a
 *         --workdir=/home/ada/a --env=COLLOC_TASK_ID ... IMAGE python train.py
 *
 * The GPUs come by CDI (nvidia-ctk cdi generate), which names them as NVML counts them. The
 * container has no others, so CUDA counts them from 0 there: CUDA_VISIBLE_DEVICES is not passed on.
 *
 * The first process of a container ignores SIGTERM unless it handles it, which a training does not.
 * So an init comes first and passes the signal on, and a cancelled task ends at once. docker brings
 * its own, podman needs catatonit.
 */
#include "cli/container.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/docker_words.h"
#include "cli/word_list.h"

static void add_list(struct word_list *words, const char *const *list)
{
    for (; list && *list; list++)
        word_list_add(words, "%s", *list);
}

/* ---- what is checked ---- */

/* "docker.io/nvidia/cuda:12.4", "localhost/a@sha256:..."; never an option. */
static bool is_image(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-/:@";
    return *text && *text != '-' && strlen(text) < 512 && text[strspn(text, letters)] == '\0';
}

static bool are_gpus(const char *text)
{
    return text[strspn(text, "0123456789:,")] == '\0';
}

int container_check_image(const char *image, struct fault *fault)
{
    if (is_image(image))
        return 0;
    return fault_set(fault, EINVAL,
        "container: '%.100s' is no name of an image, such as docker.io/pytorch/pytorch:latest",
        image);
}

static int check_order(const struct container_order *order, struct fault *fault)
{
    int r = container_check_image(order->image, fault);
    if (r < 0)
        return r;
    if (order->folder[0] != '/' || strchr(order->folder, ':'))
        return fault_set(fault, EINVAL,
            "container: the folder %.200s cannot be mounted: a mount takes no colon in a path",
            order->folder);
    if (!are_gpus(order->gpus))
        return fault_set(
            fault, EINVAL, "container: COLLOC_GPUS=%.100s is no list of GPUs", order->gpus);
    return 0;
}

/* ---- the words ---- */

/* Variables of colloc that hold in the container, too. */
static const char *const variables[] = {"COLLOC_TASK_ID", "COLLOC_ATTEMPT", "COLLOC_GPU_COUNT",
    "COLLOC_ARRAY_ID", "COLLOC_ARRAY_INDEX", "COLLOC_ARRAY_COUNT", "MASTER_ADDR", "MASTER_PORT",
    "PYTHONUNBUFFERED"};

int container_words(const struct container_order *order, struct fault *fault, char ***ret_words)
{
    static const char *const podman[] = {"podman", "run", "--rm", "--cgroups=disabled", NULL};
    static const char *const docker[] = {"docker", "run", "--rm", "--init", NULL};
    struct word_list words = {0};
    char mount[2 * 4096 + 2];
    int r = check_order(order, fault);
    if (r < 0)
        return r;
    if (snprintf(mount, sizeof mount, "%s:%s", order->folder, order->folder) >= (int)sizeof mount)
        return fault_set(fault, ENAMETOOLONG, "container: the folder's path is too long");
    add_list(&words, order->docker ? docker : podman);
    if (order->docker)
        docker_add_task(&words, order->docker, true);
    if (order->docker && order->docker->parent) /* root's dockerd starts it as root, unless it says
                                                   whose; in a user's, root is that user */
        word_list_add(&words, "--user=%u:%u", order->uid, order->gid);
    if (!order->docker && order->name)
        word_list_add(&words, "--name=%s", order->name);
    if (!order->docker && order->init) {
        word_list_add(&words, "--init");
        word_list_add(&words, "--init-path=%s", order->init);
    }
    const char *devices = order->docker ? "" : order->gpus;
    for (const char *at = devices; *at; at += strcspn(at, ","), at += *at == ',')
        word_list_add(&words, "--device=nvidia.com/gpu=%.*s", (int)strcspn(at, ","), at);
    word_list_add(&words, "--volume=%s", mount);
    word_list_add(&words, "--workdir=%s", order->folder);
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
        word_list_add(&words, "--env=%s", variables[i]);
    word_list_add(&words, "%s", order->image);
    add_list(&words, order->command);
    if (word_list_end(&words)) {
        *ret_words = words.words;
        return 0;
    }
    word_list_fini(&words);
    return fault_set(fault, ENOMEM, "out of memory");
}

void container_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}
