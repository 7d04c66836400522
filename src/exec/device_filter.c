/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_VISIBLE_DEVICES is a request: a program that unsets it opens any GPU. Where the kernel has
 * BPF programs for the devices of a cgroup (4.15, CONFIG_CGROUP_BPF), each open() and mknod() of a
 * device by a process of the cgroup asks such a program, and fails with EPERM when it answers 0. It
 * is assembled here by hand, since it is a dozen steps long. For the GPUs 0 and 2:
 *
 *     r2 = access & 0xffff             the lower half is the type of the device
 *     if r2 != character: allow
 *     r2 = major
 *     if r2 != 195: allow              NVIDIA's (Documentation/admin-guide/devices.txt)
 *     r2 = minor
 *     if r2 > 253: allow               254 nvidia-modeset, 255 nvidiactl
 *     if r2 == 0: allow
 *     if r2 == 2: allow
 *     return 0
 *     allow: return 1
 *
 * Other devices are not filtered: nvidia-uvm has another major, and holds no GPU's memory by
 * itself. All MIG instances of a card are behind its one /dev/nvidiaN.
 *
 * The program for processes outside of tasks compares the real user id of the opening process, as
 * the host's user namespace has it, instead of the minor number: to be root of a container, or of
 * another user namespace, does not help.
 */
#include "exec/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/cgroup_path.h"

enum { NVIDIA_MAJOR = 195, GPU_MINOR_MAX = 253, TYPE_MASK = 0xffff };

/* Users of services: systemd's "Users, Groups, UIDs and GIDs" (SYSTEM_UID_MAX, DYNAMIC_UID). */
enum { SYSTEM_UID_MAX = 999, DYNAMIC_UID_MIN = 61184, DYNAMIC_UID_MAX = 65519 };

int gpu_minors_parse(const char *text, struct gpu_minors *ret_minors)
{
    ret_minors->n = 0;
    if (strcmp(text, "none") == 0)
        return 0;
    for (;; text++) {
        char *end;
        if (*text < '0' || *text > '9' || ret_minors->n == FILTER_GPUS_MAX)
            return -EINVAL;
        long minor = strtol(text, &end, 10);
        if (minor > GPU_MINOR_MAX || (*end && *end != ','))
            return -EINVAL;
        ret_minors->list[ret_minors->n++] = (int)minor;
        if (!*end)
            return 0;
        text = end;
    }
}

/* ---- the program ---- */

static void add_step(struct device_program *program, struct bpf_insn step)
{
    program->steps[program->n++] = step;
}

/* r2 = a member of struct bpf_cgroup_dev_ctx, which r1 points to */
static void add_load(struct device_program *program, size_t offset)
{
    add_step(program, (struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_W,
                          .dst_reg = BPF_REG_2,
                          .src_reg = BPF_REG_1,
                          .off = (__s16)offset});
}

/* Goes to the last two steps, which allow it; `set_jumps` fills the distance in. */
static void add_allow_if(struct device_program *program, int jump, int value)
{
    add_step(
        program, (struct bpf_insn){
                     .code = (__u8)(BPF_JMP | jump | BPF_K), .dst_reg = BPF_REG_2, .imm = value});
}

static void add_return(struct device_program *program, int answer)
{
    add_step(
        program, (struct bpf_insn){
                     .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = answer});
    add_step(program, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
}

/* A distance counts from the step behind the jump. */
static void set_jumps(struct device_program *program, int target)
{
    for (int i = 0; i < program->n; i++) {
        struct bpf_insn *step = &program->steps[i];
        bool is_jump = BPF_CLASS(step->code) == BPF_JMP || BPF_CLASS(step->code) == BPF_JMP32;
        if (is_jump && BPF_OP(step->code) != BPF_EXIT && BPF_OP(step->code) != BPF_CALL)
            step->off = (__s16)(target - i - 1);
    }
}

/* All that is not a GPU is allowed. */
static void begin_program(struct device_program *program)
{
    *program = (struct device_program){0};
    add_load(program, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    add_step(
        program, (struct bpf_insn){
                     .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = TYPE_MASK});
    add_allow_if(program, BPF_JNE, BPF_DEVCG_DEV_CHAR);
    add_load(program, offsetof(struct bpf_cgroup_dev_ctx, major));
    add_allow_if(program, BPF_JNE, NVIDIA_MAJOR);
    add_load(program, offsetof(struct bpf_cgroup_dev_ctx, minor));
    add_allow_if(program, BPF_JGT, GPU_MINOR_MAX);
}

static void end_program(struct device_program *program)
{
    add_return(program, 0);
    int allow = program->n;
    add_return(program, 1);
    set_jumps(program, allow);
}

void device_program_make(const struct gpu_minors *minors, struct device_program *ret_program)
{
    begin_program(ret_program);
    for (int i = 0; i < minors->n; i++)
        add_allow_if(ret_program, BPF_JEQ, minors->list[i]);
    end_program(ret_program);
}

/* r2 = the lower half of what bpf_get_current_uid_gid() returns: the real user id */
static void add_uid(struct device_program *program)
{
    add_step(program,
        (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_uid_gid});
    add_step(program,
        (struct bpf_insn){
            .code = BPF_ALU | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_0});
}

/* r2 -= value, in 32 bits */
static void add_subtraction(struct device_program *program, int value)
{
    add_step(program,
        (struct bpf_insn){.code = BPF_ALU | BPF_SUB | BPF_K, .dst_reg = BPF_REG_2, .imm = value});
}

/* An immediate value is extended by its sign: the upper half of the ids would never be equal. */
static void add_allow_if_uid(struct device_program *program, uint32_t uid)
{
    add_step(
        program, (struct bpf_insn){
                     .code = BPF_JMP32 | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_2, .imm = (__s32)uid});
}

bool user_is_person(uint32_t uid)
{
    return uid > SYSTEM_UID_MAX && (uid < DYNAMIC_UID_MIN || uid > DYNAMIC_UID_MAX);
}

void device_program_make_outside(
    const struct allowed_users *users, struct device_program *ret_program)
{
    begin_program(ret_program);
    add_uid(ret_program);
    add_allow_if(ret_program, BPF_JLE, SYSTEM_UID_MAX);
    for (int i = 0; i < users->n; i++)
        add_allow_if_uid(ret_program, users->list[i]);
    add_subtraction(ret_program, DYNAMIC_UID_MIN);
    add_allow_if(ret_program, BPF_JLE, DYNAMIC_UID_MAX - DYNAMIC_UID_MIN);
    end_program(ret_program);
}

/* ---- the kernel ---- */

static int call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
    long r = syscall(SYS_bpf, command, attributes, sizeof *attributes);
    return r < 0 ? -errno : (int)r;
}

/* Returns a descriptor or -errno. */
static int load_program(const struct device_program *program)
{
    static const char license[] = "Apache-2.0";
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insns = (__u64)(uintptr_t)program->steps;
    attributes.insn_cnt = (__u32)program->n;
    attributes.license = (__u64)(uintptr_t)license;
    return call_bpf(BPF_PROG_LOAD, &attributes);
}

/* Beside programs of others, such as systemd's: all have to allow a device. */
static int attach_program(int cgroup, int program)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.target_fd = (__u32)cgroup;
    attributes.attach_bpf_fd = (__u32)program;
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    return call_bpf(BPF_PROG_ATTACH, &attributes);
}

/* The same for the time of the link's descriptor, which is closed by execve(2). */
static int link_program(int cgroup, int program)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.link_create.prog_fd = (__u32)program;
    attributes.link_create.target_fd = (__u32)cgroup;
    attributes.link_create.attach_type = BPF_CGROUP_DEVICE;
    return call_bpf(BPF_LINK_CREATE, &attributes);
}

static int set_program(
    const char *path, const struct device_program *program, int (*set)(int cgroup, int program))
{
    int loaded = load_program(program);
    if (loaded < 0)
        return loaded;
    int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = cgroup < 0 ? -errno : set(cgroup, loaded);
    if (cgroup >= 0)
        close(cgroup);
    close(loaded); /* the cgroup, or the link, holds it */
    return r;
}

int device_program_link(const char *path, const struct device_program *program)
{
    return set_program(path, program, link_program);
}

int device_filter_set(const char *path, const struct gpu_minors *minors)
{
    struct device_program program;
    device_program_make(minors, &program);
    return set_program(path, &program, attach_program);
}

int device_filter_try(const char *home, struct fault *fault)
{
    static const struct gpu_minors none;
    char path[CGROUP_PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/filter-%d", home, (int)getpid());
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    int r = device_filter_set(path, &none);
    rmdir(path);
    return r < 0 ? fault_set(fault, -r, "the kernel takes no device program of a cgroup: %s",
                       strerror(-r))
                 : 0;
}
