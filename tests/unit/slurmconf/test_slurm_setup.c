/* SPDX-License-Identifier: Apache-2.0 */
/* What setup makes of gres.conf in the forms that sites write, and what it refuses. */
#include "../assert_has.h"

#include <errno.h>
#include <stdlib.h>

#include "slurmconf/slurm_setup.h"

struct planned {
    char *gres, *notes;
    struct fault fault;
    int r;
};

static struct planned plan(const char *slurm, const char *gres)
{
    struct setup_file conf = {.name = "slurm.conf", .comment = "#", .text = span_of(slurm)};
    struct setup_file devices = {.name = "gres.conf", .comment = "#", .text = span_of(gres)};
    struct setup_files files = {&conf, 1, &devices};
    const struct setup_options options = {.intake = "gpu", .run = "gpu-run", .shards = 80};
    struct planned planned = {.fault = {""}};
    size_t nodes;
    planned.r = slurm_setup_plan(&files, &options, &planned.fault, &planned.notes, &nodes);
    if (planned.r == 0)
        planned.gres = marked_text_apply(devices.text, &devices.edits, devices.comment);
    text_edits_fini(&conf.edits);
    text_edits_fini(&devices.edits);
    return planned;
}

static void forget(struct planned *planned)
{
    free(planned->gres);
    free(planned->notes);
}

static void expect_lines(const char *slurm, const char *gres, const char *const *lines)
{
    struct planned planned = plan(slurm, gres);
    if (planned.r < 0)
        fail_msg("%s", planned.fault.text);
    for (; *lines; lines++)
        assert_has(planned.gres, *lines);
    forget(&planned);
}

static void expect_refusal(const char *slurm, const char *gres, const char *why)
{
    struct planned planned = plan(slurm, gres);
    assert_int_equal(planned.r, -ENOTSUP);
    assert_has(planned.fault.text, why);
    forget(&planned);
}

#define TWO "NodeName=big1 CPUs=64 Gres=gpu:2\n"

/* The usual form: one file for all nodes, or for this one. */
static void lines_without_node_names(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "NodeName=big1 Name=gpu Type=i2 File=/dev/nvidia2 Cores=0-7 Links=-1,4\n",
        "NodeName=big1 Name=shard Type=i2 Count=80 File=/dev/nvidia2\n",
        "NodeName=big1 Name=gpu Type=i3 File=/dev/nvidia3 CPUs=8-15\n",
        "NodeName=big1 Name=shard Type=i3 Count=80 File=/dev/nvidia3\n", NULL};
    expect_lines(TWO,
        "Name=gpu File=/dev/nvidia2 Cores=0-7 Links=-1,4\n"
        "Name=gpu File=/dev/nvidia3 CPUs=8-15\n",
        wanted);
}

static void lines_with_node_names(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "NodeName=r[1-2] Name=gpu Type=i1 File=/dev/nvidia1 Cores=0-7\n",
        "NodeName=r[1-2] Name=gpu Type=i3 File=/dev/nvidia3 Cores=0-7\n", NULL};
    expect_lines("NodeName=r[1-2] Gres=gpu:a100:2\n",
        "NodeName=r[1-9] Name=gpu Type=a100 File=/dev/nvidia[1,3] Cores=0-7\n", wanted);
}

/* Slurm reads File (also as Files) as a list of files with ranges. */
static void lists_of_files(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "NodeName=big1 Name=gpu Type=i0 File=/dev/nvidia0 Cores=0-7\n",
        "NodeName=big1 Name=gpu Type=i2 File=/dev/nvidia2 Cores=0-7\n",
        "NodeName=big1 Name=gpu Type=i3 File=/dev/nvidia3 Cores=0-7\n", NULL};
    expect_lines("NodeName=big1 Gres=gpu:3\n",
        "Name=gpu Files=/dev/nvidia0,/dev/nvidia[2-3] Cores=0-7\n", wanted);
}

/* slurmd ends at two lines that switch AutoDetect of a node differently (22.05). */
static void autodetect_of_some_nodes(void **state)
{
    (void)state;
    struct planned planned = plan(TWO, "NodeName=big1 AutoDetect=nvml\n");
    assert_int_equal(planned.r, 0);
    assert_has(planned.gres, "#was: NodeName=big1 AutoDetect=nvml\n");
    assert_null(strstr(planned.gres, "\nNodeName=big1 AutoDetect=nvml\n"));
    assert_has(planned.gres, "NodeName=big1 AutoDetect=off Name=gpu Type=i0 File=/dev/nvidia0\n");
    forget(&planned);
}

/* AutoDetect finds the files, which have the usual names. */
static void no_lines_at_all(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "NodeName=big1 AutoDetect=off Name=gpu Type=i1 File=/dev/nvidia1\n", NULL};
    expect_lines(TWO, "AutoDetect=nvml\n", wanted);
}

static void what_is_no_device(void **state)
{
    (void)state;
    expect_refusal("NodeName=n1 Gres=gpu:1g.10gb:7\n", "AutoDetect=nvml\n",
        "NodeName=n1 has gpu:1g.10gb: shards are parts of whole GPUs");
    expect_refusal("NodeName=n1 Gres=gpu:1c.3g.20gb+me:2\n", "",
        "NodeName=n1 has gpu:1c.3g.20gb+me: shards are parts of whole GPUs");
    expect_refusal("NodeName=n1 Gres=gpu:a100_1g.5gb:7\n", "", "n1 has gpu:a100_1g.5gb: shards");
    expect_refusal("NodeName=DEFAULT Gres=gpu:2g.20gb:3\nNodeName=n1\n", "", "has gpu:2g.20gb");
    expect_refusal(TWO,
        "Name=gpu Type=mig MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21\n",
        "gres.conf: MultipleFiles=/dev/nvidia0");
    expect_refusal("NodeName=n1 Gres=gpu:a100:1,gpu:part:1\n",
        "Name=gpu Type=a100 File=/dev/nvidia0\n"
        "Name=gpu Type=part File=/dev/nvidia-caps/nvidia-cap21\n",
        "gres.conf: File=/dev/nvidia-caps/nvidia-cap21: colloc names a whole GPU");
    expect_refusal("NodeName=n1 Gres=gpu:l40s:2,gpu:half:4\n",
        "Name=gpu Type=l40s File=/dev/nvidia[0-1]\nName=gpu Type=half Count=4\n",
        "gres.conf: the GPUs of Type=half have Count=4 and no File");
}

static void another_number_of_files(void **state)
{
    (void)state;
    expect_refusal("NodeName=n1 Gres=gpu:6\n", "Name=gpu File=/dev/nvidia[0-3]\n",
        "NodeName=n1 has 6 GPUs in slurm.conf, and 4 device files in gres.conf");
    expect_refusal(TWO, "NodeName=big1 Name=gpu File=/dev/nvidia0\n",
        "NodeName=big1 has 2 GPUs in slurm.conf, and 1 device file in gres.conf");
}

/* One of them would get the device files of the other, which may be other people's GPUs. */
static void nodes_of_a_line_that_differ(void **state)
{
    (void)state;
    static const char files[] = "NodeName=n01 Name=gpu File=/dev/nvidia[0-1]\n"
                                "NodeName=n02 Name=gpu File=/dev/nvidia[2-3]\n";
    static const char *const wanted[] = {"NodeName=n01 Name=gpu Type=i0 File=/dev/nvidia0\n",
        "NodeName=n02 Name=gpu Type=i2 File=/dev/nvidia2\n", NULL};
    expect_refusal(
        "NodeName=n[01-02] Gres=gpu:2\n", files, "gres.conf gives n01 and n02 other device files");
    expect_lines("NodeName=n01 Gres=gpu:2\nNodeName=n02 Gres=gpu:2\n", files, wanted);
    static const char *const alike[] = {
        "NodeName=n[01-02] Name=gpu Type=i1 File=/dev/nvidia1\n", NULL};
    expect_lines("NodeName=n[01-02] Gres=gpu:2\n",
        "NodeName=n01 Name=gpu File=/dev/nvidia[0-1]\n"
        "NodeName=n02 Name=gpu Count=2 File=/dev/nvidia[0-1]\n",
        alike);
}

/* A GPU is named by the number of its file; what has none, or the same, is refused. */
static void numbers_of_files(void **state)
{
    (void)state;
    expect_refusal(
        "NodeName=n1 Gres=gpu:1\n", "Name=gpu File=/dev/nvidia-first\n", "and this has none");
    expect_refusal("NodeName=n1 Gres=gpu:1\n", "Name=gpu File=/dev/nvidia64\n", "from 0 to 63");
    expect_refusal(TWO, "Name=gpu File=/dev/nvidia1\nName=gpu File=/mnt/nvidia1\n",
        "two device files of NodeName=big1 have the number 1");
    expect_refusal("NodeName=DEFAULT Gres=gpu:2\nNodeName=n1\n", "Name=gpu File=/dev/nvidia[2-3]\n",
        "give the line its own Gres=gpu:2");
}

/* slurm.conf has the same types as gres.conf, whatever the order of the files. */
static void types_of_both_files(void **state)
{
    (void)state;
    struct setup_file conf = {
        .name = "slurm.conf", .comment = "#", .text = span_of("NodeName=n1 Gres=gpu:2\n")};
    struct setup_file devices = {.name = "gres.conf",
        .comment = "#",
        .text = span_of("Name=gpu File=/dev/nvidia3\nName=gpu File=/dev/nvidia2\n")};
    struct setup_files files = {&conf, 1, &devices};
    const struct setup_options options = {.intake = "gpu", .run = "gpu-run", .shards = 80};
    struct fault fault;
    char *notes;
    size_t nodes;
    assert_int_equal(slurm_setup_plan(&files, &options, &fault, &notes, &nodes), 0);
    char *slurm = marked_text_apply(conf.text, &conf.edits, conf.comment);
    assert_has(slurm, "NodeName=n1 Gres=gpu:i2:1,gpu:i3:1,shard:i2:80,shard:i3:80\n");
    free(slurm);
    free(notes);
    text_edits_fini(&conf.edits);
    text_edits_fini(&devices.edits);
}

static void shards_that_are_there(void **state)
{
    (void)state;
    static const char files[] = "Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/nvidia1\n"
                                "Name=shard Count=100 File=/dev/nvidia0\n"
                                "Name=shard Count=100 File=/dev/nvidia1\n";
    struct planned planned = plan("NodeName=w1 Gres=gpu:2,shard:200\n", files);
    assert_int_equal(planned.r, 0);
    assert_has(planned.notes, "NodeName=w1 has 100 shards of a GPU, and gets 80");
    assert_has(planned.notes, "--shards=100 keeps the number");
    forget(&planned);
    planned = plan("NodeName=w1 Gres=gpu:2,shard:160\n", files);
    assert_null(strstr(planned.notes, "shards of a GPU, and gets"));
    forget(&planned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_without_node_names),
        cmocka_unit_test(lines_with_node_names),
        cmocka_unit_test(lists_of_files),
        cmocka_unit_test(autodetect_of_some_nodes),
        cmocka_unit_test(no_lines_at_all),
        cmocka_unit_test(what_is_no_device),
        cmocka_unit_test(another_number_of_files),
        cmocka_unit_test(nodes_of_a_line_that_differ),
        cmocka_unit_test(numbers_of_files),
        cmocka_unit_test(types_of_both_files),
        cmocka_unit_test(shards_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
