/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of docker 20.10 to 28, before and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "cli/docker_words.h"

enum { WORDS_MAX = 32 };

/* Splits at '|', a word may have blanks. */
static void split(char *text, const char *ret_words[WORDS_MAX])
{
    int n = 0;
    for (char *word; n < WORDS_MAX - 1 && (word = strsep(&text, "|"));)
        ret_words[n++] = word;
    ret_words[n] = NULL;
}

static void check(const char *given, const char *expected, const struct docker_task *task)
{
    char text[512], joined[1024] = "";
    const char *words[WORDS_MAX];
    struct word_list list = {0};
    snprintf(text, sizeof text, "%s", given);
    split(text, words);
    docker_add_words(&list, words, task);
    assert_true(word_list_end(&list));
    for (size_t i = 0; list.words[i]; i++) {
        size_t size = strlen(joined);
        snprintf(joined + size, sizeof joined - size, "%s%s", i ? "|" : "", list.words[i]);
    }
    assert_string_equal(joined, expected);
    word_list_fini(&list);
}

#define SEEN "--env=NVIDIA_VISIBLE_DEVICES=0,2"
#define PART "--cgroup-parent=/colloc/a-12.1|--label=colloc.task=12|" SEEN
#define GPUS "--gpus=\"device=0,2\""

static void test_containers_of_a_task(void **state)
{
    static const struct docker_task task = {"12", "0,2", "/colloc/a-12.1"};
    static const char *const rows[][2] = {
        {"run|busybox", "run|" PART "|busybox"},
        {"run|--rm|-it|-v|/a:/a|-e|A=1|img|sh|-c|x --gpus all",
            "run|" PART "|--rm|-it|-v|/a:/a|-e|A=1|img|sh|-c|x --gpus all"},
        {"run|--gpus|all|img|train|--gpus|2", "run|" PART "|" GPUS "|img|train|--gpus|2"},
        {"run|--gpus=all|--gpus|1|img", "run|" PART "|" GPUS "|img"},
        {"run|--device|nvidia.com/gpu=all|--device=/dev/fuse|img",
            "run|" PART "|" GPUS "|--device=/dev/fuse|img"},
        {"run|--runtime=nvidia|-e|NVIDIA_VISIBLE_DEVICES=all|img",
            "run|" PART "|" GPUS "|--runtime=nvidia|img"},
        {"-H|unix:///d.sock|--debug|container|create|--cgroup-parent|/x|--name|n|img",
            "-H|unix:///d.sock|--debug|container|create|" PART "|--name|n|img"},
        {"run|-ditv/a:/a|-w|/gpus|--|img|-v", "run|" PART "|-ditv/a:/a|-w|/gpus|--|img|-v"},
        {"run|-eNVIDIA_VISIBLE_DEVICES=all|-e=NVIDIA_VISIBLE_DEVICES|img",
            "run|" PART "|" GPUS "|img"},
        {"run|-ite|NVIDIA_VISIBLE_DEVICES=all|-dieA=1|-it|img",
            "run|" PART "|" GPUS "|-it|-dieA=1|-it|img"},
        {"run|--device|/dev/nvidia1:/dev/nvidia0|--device=/dev/nvidiactl|--env-file=f|img",
            "run|" PART "|" GPUS "|--env-file=f|img"},
        /* dockerd would start it again after the task's end */
        {"run|--restart=always|--restart|no|img", "run|" PART "|img"},
        {"run", "run|" PART},
        {"run|--gpus", "run|" PART "|--gpus"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        check(rows[i][0], rows[i][1], &task);
}

static void test_other_tasks(void **state)
{
    static const struct docker_task none = {"7", "", "/c"}, apart = {"7", "0:1", NULL};
    (void)state;
    check("run|--gpus=all|img",
        "run|--cgroup-parent=/c|--label=colloc.task=7|--env=NVIDIA_VISIBLE_DEVICES=void|img",
        &none);
    check("run|--cgroup-parent=x.slice|--gpus=all|img",
        "run|--label=colloc.task=7|--env=NVIDIA_VISIBLE_DEVICES=0:1|--gpus=device=0:1|"
        "--cgroup-parent=x.slice|img",
        &apart);
}

static void test_what_makes_no_container(void **state)
{
    static const char *const rows[] = {"ps", "container|ls", "exec|-it|x|run", "-H|run|ps", "",
        "compose|run|x", "image|build|.", "--version"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[64];
        const char *words[WORDS_MAX];
        snprintf(text, sizeof text, "%s", rows[i]);
        split(text, words);
        assert_false(docker_makes_container(words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_containers_of_a_task),
        cmocka_unit_test(test_other_tasks),
        cmocka_unit_test(test_what_makes_no_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
