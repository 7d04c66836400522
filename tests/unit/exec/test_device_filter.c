/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device program's decisions, played step by step by a small interpreter of the instructions
 * that it uses; and the kernel's opinion of it, where this process may ask: its verifier reads the
 * program when it is set for a cgroup.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "exec/cgroup.h"
#include "exec/device_filter.h"

enum { STEPS_MAX = 200 };

static bool is_jump_taken(const struct bpf_insn *step, uint64_t value)
{
    if (BPF_CLASS(step->code) == BPF_JMP32 && BPF_OP(step->code) == BPF_JEQ)
        return (uint32_t)value == (uint32_t)step->imm;
    switch (BPF_OP(step->code)) {
    case BPF_JLE:
        return value <= (uint64_t)step->imm;
    case BPF_JEQ:
        return value == (uint64_t)step->imm;
    case BPF_JNE:
        return value != (uint64_t)step->imm;
    case BPF_JGT:
        return value > (uint64_t)step->imm;
    default:
        fail_msg("unknown jump %#x", step->code);
        return false;
    }
}

/* What the program answers to a process of the user: 1 allows the access. */
static int play(
    const struct device_program *program, const struct bpf_cgroup_dev_ctx *context, uint32_t uid)
{
    uint64_t registers[11] = {0};
    int at = 0;
    for (int n = 0; n < STEPS_MAX; n++) {
        assert_true(at >= 0 && at < program->n);
        const struct bpf_insn *step = &program->steps[at++];
        uint32_t value;
        if (step->code == (BPF_JMP | BPF_EXIT))
            return (int)registers[0];
        if (step->code == (BPF_LDX | BPF_MEM | BPF_W)) {
            assert_true(step->src_reg == 1 && step->off >= 0 &&
                        (size_t)step->off + sizeof value <= sizeof *context);
            memcpy(&value, (const char *)context + step->off, sizeof value);
            registers[step->dst_reg] = value;
        } else if (step->code == (BPF_ALU64 | BPF_MOV | BPF_K)) {
            registers[step->dst_reg] = (uint64_t)step->imm;
        } else if (step->code == (BPF_ALU64 | BPF_AND | BPF_K)) {
            registers[step->dst_reg] &= (uint64_t)step->imm;
        } else if (step->code == (BPF_JMP | BPF_CALL)) {
            assert_int_equal(step->imm, BPF_FUNC_get_current_uid_gid);
            registers[0] = (uint64_t)4711 << 32 | uid; /* and forgets the arguments */
            memset(registers + 1, 0xff, 5 * sizeof *registers);
        } else if (step->code == (BPF_ALU | BPF_MOV | BPF_X)) {
            registers[step->dst_reg] = (uint32_t)registers[step->src_reg];
        } else if (step->code == (BPF_ALU | BPF_SUB | BPF_K)) {
            registers[step->dst_reg] = (uint32_t)registers[step->dst_reg] - (uint32_t)step->imm;
        } else if (BPF_CLASS(step->code) == BPF_JMP || BPF_CLASS(step->code) == BPF_JMP32) {
            at += is_jump_taken(step, registers[step->dst_reg]) ? step->off : 0;
        } else {
            fail_msg("unknown step %#x", step->code);
        }
    }
    fail_msg("it does not end");
    return -1;
}

static bool allows(const char *minors, uint32_t type, uint32_t major, uint32_t minor)
{
    struct gpu_minors list;
    struct device_program program;
    bool answers[3];
    static const uint32_t accesses[] = {
        BPF_DEVCG_ACC_MKNOD, BPF_DEVCG_ACC_READ, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE};
    assert_int_equal(gpu_minors_parse(minors, &list), 0);
    device_program_make(&list, &program);
    assert_true(program.n <= (int)ARRAY_SIZE(program.steps));
    for (size_t i = 0; i < ARRAY_SIZE(accesses); i++) {
        struct bpf_cgroup_dev_ctx context = {accesses[i] << 16 | type, major, minor};
        int answer = play(&program, &context, 1000);
        assert_in_range(answer, 0, 1);
        answers[i] = answer;
    }
    assert_true(answers[0] == answers[1] && answers[1] == answers[2]);
    return answers[0];
}

static void gpus_of_others_are_refused(void **state)
{
    assert_true(allows("0,2", BPF_DEVCG_DEV_CHAR, 195, 0));
    assert_false(allows("0,2", BPF_DEVCG_DEV_CHAR, 195, 1));
    assert_true(allows("0,2", BPF_DEVCG_DEV_CHAR, 195, 2));
    assert_false(allows("0,2", BPF_DEVCG_DEV_CHAR, 195, 3));
    assert_false(allows("7", BPF_DEVCG_DEV_CHAR, 195, 0));
    assert_false(allows("7", BPF_DEVCG_DEV_CHAR, 195, 253));
    assert_true(allows("253", BPF_DEVCG_DEV_CHAR, 195, 253));
}

static void all_else_is_allowed(void **state)
{
    assert_true(allows("1", BPF_DEVCG_DEV_CHAR, 195, 254)); /* nvidia-modeset */
    assert_true(allows("1", BPF_DEVCG_DEV_CHAR, 195, 255)); /* nvidiactl */
    assert_true(allows("1", BPF_DEVCG_DEV_CHAR, 195, 256));
    assert_true(allows("1", BPF_DEVCG_DEV_CHAR, 1, 3));   /* null */
    assert_true(allows("1", BPF_DEVCG_DEV_CHAR, 510, 0)); /* nvidia-uvm */
    assert_true(allows("1", BPF_DEVCG_DEV_BLOCK, 195, 0));
    assert_true(allows("1", BPF_DEVCG_DEV_BLOCK, 8, 0));
}

static bool lets_user(
    const struct allowed_users *users, uint32_t uid, uint32_t major, uint32_t minor)
{
    struct device_program program;
    const struct bpf_cgroup_dev_ctx context = {
        BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_CHAR, major, minor};
    device_program_make_outside(users, &program);
    assert_true(program.n <= (int)ARRAY_SIZE(program.steps));
    return play(&program, &context, uid);
}

static void outside_of_tasks_persons_are_refused(void **state)
{
    static const struct {
        uint32_t uid;
        bool may;
    } users[] = {{0, true}, {999, true}, {1000, false}, {4242, true}, {4243, false}, {61183, false},
        {61184, true}, {65519, true}, {65520, false}, {65534, false}, {100000, false},
        {0x7fffffff, false}, {0xfffffff0, true}, {0xfffffff1, false}};
    struct allowed_users listed = {.list = {4242, 0xfffffff0}, .n = 2};
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        if (lets_user(&listed, users[i].uid, 195, 0) != users[i].may)
            fail_msg("user %u", users[i].uid);
        assert_true(lets_user(&listed, users[i].uid, 195, 255));
        assert_true(lets_user(&listed, users[i].uid, 1, 3));
    }
    assert_false(lets_user(&listed, 1000, 195, 253));
    for (listed.n = 0; listed.n < FILTER_USERS_MAX; listed.n++)
        listed.list[listed.n] = 2000 + (uint32_t)listed.n;
    assert_true(lets_user(&listed, 2000 + FILTER_USERS_MAX - 1, 195, 0));
    assert_false(lets_user(&listed, 2000 + FILTER_USERS_MAX, 195, 0));
}

static void lists_of_minors_are_read(void **state)
{
    static const char *const wrong[] = {
        "", ",", "1,", ",1", "a", "-1", "254", "99999999999999999999", "1 ", "1;2", "0x1"};
    struct gpu_minors minors;
    char many[4 * (FILTER_GPUS_MAX + 1)] = "0";
    assert_int_equal(gpu_minors_parse("0,253,12", &minors), 0);
    assert_int_equal(minors.n, 3);
    assert_int_equal(minors.list[1], 253);
    assert_int_equal(gpu_minors_parse("none", &minors), 0);
    assert_int_equal(minors.n, 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (gpu_minors_parse(wrong[i], &minors) != -EINVAL)
            fail_msg("\"%s\"", wrong[i]);
    for (int i = 1; i < FILTER_GPUS_MAX; i++)
        strcat(many, ",9");
    assert_int_equal(gpu_minors_parse(many, &minors), 0);
    strcat(many, ",9");
    assert_int_equal(gpu_minors_parse(many, &minors), -EINVAL);
}

static void the_kernel_takes_it_where_it_may(void **state)
{
    char home[CGROUP_PATH_SIZE];
    struct cgroup_controllers enabled;
    struct fault fault = {""};
    if (cgroup_open_home(home, &enabled, &fault) < 0 || device_filter_try(home, &fault) == -EPERM) {
        print_message("not asked: %s\n", fault.text);
        skip();
    }
    if (device_filter_try(home, &fault) < 0)
        fail_msg("%s", fault.text);
    assert_int_equal(device_filter_set("/nowhere", &(struct gpu_minors){.n = 0}), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_of_others_are_refused),
        cmocka_unit_test(all_else_is_allowed),
        cmocka_unit_test(outside_of_tasks_persons_are_refused),
        cmocka_unit_test(lists_of_minors_are_read),
        cmocka_unit_test(the_kernel_takes_it_where_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
