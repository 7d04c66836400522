/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line runs, and its text. */
#include "base/array.h"
#include "taskfile/command_line.h"

#include <stdlib.h>
#include <string.h>

#include "../assert_has.h"
#include "taskfile/word_split.h"

static void assert_name(const char *line, const char *expected)
{
    char name[COMMAND_NAME_SIZE];
    const char **words;
    assert_true(word_split(span_of(line), NULL, &words) > 0);
    command_line_name(words, name);
    if (strcmp(name, expected) != 0)
        fail_msg("%s: named '%s', not '%s'", line, name, expected);
    free(words);
}

static void test_names(void **state)
{
    static const struct {
        const char *line, *name;
    } lines[] = {
        /* programs */
        {"./train --lr 0.1", "train"},
        {"/opt/app/bin/train", "train"},
        {"true", "true"},
        {"python-config --libs x.py", "python-config"},
        /* interpreters */
        {"python train.py --lr 0.1", "train.py"},
        {"python3 -u train.py", "train.py"},
        {"/opt/conda/bin/python3.11 -W ignore -X dev src/train.py other.py", "train.py"},
        {"python -Wignore -OO train.py", "train.py"},
        {"python -- -odd.py", "-odd.py"},
        {"python --check-hash-based-pycs=never train.py", "train.py"},
        {"python -m pkg.mod --x", "pkg.mod"},
        {"python -um pkg.mod", "pkg.mod"},
        {"python -mpkg.mod", "pkg.mod"},
        {"python -c 'import torch' train.py", "python"},
        {"python -uc 'import torch'", "python"},
        {"python", "python"},
        {"python -", "python"},
        {"python -m", "python"},
        {"python -W", "python"},
        {"python .", "python"},
        {"python pkg/", "python"},
        {"bash x.sh a b", "x.sh"},
        {"bash -ex scripts/x.sh", "x.sh"},
        {"bash -o pipefail run", "run"},
        {"bash -c 'cd x; python train.py'", "bash"},
        {"sh -lc ls", "sh"},
        {"perl -e 1 x.pl", "perl"},
        {"Rscript fit.R", "fit.R"},
        {"julia --project=. fit.jl", "fit.jl"},
        /* launchers */
        {"torchrun train.py", "train.py"},
        {"torchrun --nproc_per_node=2 --rdzv-backend c10d train.py --epochs 3", "train.py"},
        {"torchrun --nproc-per-node 2 -m pkg.mod", "pkg.mod"},
        {"torchrun --nproc-per-node 2 --module pkg.mod", "pkg.mod"},
        {"python -m torch.distributed.run --nproc_per_node 2 train.py", "train.py"},
        {"python -m torch.distributed.launch", "torch.distributed.launch"},
        {"accelerate launch --config_file two.yaml train.py", "train.py"},
        {"accelerate launch -m pkg.mod", "pkg.mod"},
        {"deepspeed --num_gpus 2 train.py --deepspeed ds.json", "train.py"},
        {"mpirun -np 2 python train.py", "train.py"},
        {"srun --gres gpu:1 ./train 3", "train"},
        {"env A=b C=d python train.py", "train.py"},
        {"env -i ./train", "train"},
        {"nice -n 10 ./train", "train"},
        {"timeout -s KILL 2h ./train", "train"},
        {"timeout 60 torchrun --nproc-per-node 2 train.py", "train.py"},
        {"conda run -n torch2 python -m pkg.mod", "pkg.mod"},
        {"uv run train.py", "train.py"},
        {"nohup bash -c 'x'", "bash"},
        {"numactl --cpunodebind 0 train", "train"},
        {"time", "time"},
        {"nice -n 10", "nice"},
        {"nice nice nice nice nice nice nice nice nice nice nice nice train.py", "nice"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_name(lines[i].line, lines[i].name);
}

static void test_names_are_fit_to_be_shown(void **state)
{
    char name[COMMAND_NAME_SIZE], module[600];
    command_line_name((const char *const[]){"python", "a\nb.py", NULL}, name);
    assert_string_equal(name, "python");
    command_line_name((const char *const[]){"python", "a\xff.py", NULL}, name);
    assert_string_equal(name, "python");
    command_line_name((const char *const[]){"/x/a\033[2J", NULL}, name);
    assert_string_equal(name, "command");
    command_line_name((const char *const[]){"", NULL}, name);
    assert_string_equal(name, "command");

    memset(module, 'x', sizeof module); /* cut between characters: an "é" stands across the end */
    memcpy(module + COMMAND_NAME_SIZE - 2, "é", 2);
    module[sizeof module - 1] = '\0';
    command_line_name((const char *const[]){"python", "-m", module, NULL}, name);
    assert_int_equal(strlen(name), COMMAND_NAME_SIZE - 2);
}

static void test_text_can_be_copied_into_a_shell(void **state)
{
    char *text = command_line_text(
        (const char *const[]){"python", "train.py", "--name=a b", "it's", "", "$HOME", "é", NULL});
    assert_string_equal(text, "python train.py '--name=a b' 'it'\\''s' '' '$HOME' é");
    free(text);
}

static void test_long_text_is_cut_between_characters(void **state)
{
    char word[COMMAND_TEXT_MAX * 2 + 1];
    for (size_t i = 0; i < sizeof word / 2; i++)
        memcpy(word + 2 * i, "é", 2);
    word[sizeof word - 1] = '\0';
    char *text = command_line_text((const char *const[]){word, NULL});
    assert_int_equal(strlen(text), COMMAND_TEXT_MAX - 1); /* 996 bytes of "é", and "..." */
    assert_string_equal(text + strlen(text) - 5, "é...");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_are_fit_to_be_shown),
        cmocka_unit_test(test_text_can_be_copied_into_a_shell),
        cmocka_unit_test(test_long_text_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
