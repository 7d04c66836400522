/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two means, since each has what the other lacks: the user's rights decide which files can be
 * opened, a filter of system calls (seccomp) what can be done without any file. The filter is a
 * list of what is refused, not of what is allowed: it is not published which calls NVIDIA's driver
 * library makes.
 *
 * The address space itself is not limited: CUDA reserves as many addresses as the machine and its
 * GPUs have memory, without a right to write there. RLIMIT_DATA counts private pages that can be
 * written (Linux, mm/internal.h: is_data_mapping). Shared memory has no limit for a process; where
 * the machine's is out, this process is ended before any other.
 */
#include "kernels/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0 /* the filter is not known to be right here */
#endif

#define FIRST_TO_END "1000" /* of /proc/self/oom_score_adj: proc(5) */

enum { STEPS_MAX = 128, GROUPS_MAX = 256, X32_BIT = 0x40000000 };

/* ---- the user ---- */

struct account {
    uid_t uid;
    gid_t groups[GROUPS_MAX]; /* the first is its own */
    int n_groups;
};

/* A number without an account is a user, too: it has the group of the same number. */
static int find_account(const char *user, struct fault *fault, struct account *ret_account)
{
    const struct passwd *found = getpwnam(user);
    int64_t number;
    if (!found && parse_int64(user, 0, INT32_MAX, &number) == 0)
        found = getpwuid((uid_t)number);
    else if (!found)
        return fault_set(fault, EINVAL, "there is no user %s", user);
    *ret_account = (struct account){.uid = found ? found->pw_uid : (uid_t)number,
        .groups = {found ? found->pw_gid : (gid_t)number},
        .n_groups = 1};
    if (ret_account->uid == 0)
        return fault_set(fault, EINVAL, "the user of colloc-cudnn must not be root");
    if (!found)
        return 0;
    ret_account->n_groups = GROUPS_MAX;
    if (getgrouplist(found->pw_name, found->pw_gid, ret_account->groups, &ret_account->n_groups) >=
        0)
        return 0;
    return fault_set(fault, E2BIG, "user %s has more than %d groups", user, (int)GROUPS_MAX);
}

static int become_account(const struct account *account, struct fault *fault)
{
    gid_t gid = account->groups[0];
    if (setgroups((size_t)account->n_groups, account->groups) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(account->uid, account->uid, account->uid) < 0)
        return fault_set(
            fault, errno, "cannot become user %u: %s", (unsigned)account->uid, strerror(errno));
    return 0;
}

/* A process of another user may have capabilities by its service. */
static int drop_capabilities(struct fault *fault)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(SYS_capset, &head, none) < 0)
        return fault_set(fault, errno, "cannot drop capabilities: %s", strerror(errno));
    return 0;
}

/* ---- limits ---- */

static int limit_resource(int resource, rlim_t most, struct fault *fault)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return fault_set(fault, errno, "getrlimit: %s", strerror(errno));
    if (limit.rlim_max > most)
        limit.rlim_max = most;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(resource, &limit) < 0)
        return fault_set(fault, errno, "setrlimit: %s", strerror(errno));
    return 0;
}

static int limit_resources(struct fault *fault)
{
    int r = limit_resource(RLIMIT_CORE, 0, fault);
    if (r == 0)
        r = limit_resource(RLIMIT_CPU, CONFINE_CPU_S, fault);
    if (r == 0 && !CONFINE_IS_SANITIZED)
        r = limit_resource(RLIMIT_DATA, (rlim_t)CONFINE_DATA_BYTES, fault);
    return r;
}

/* Where the kernel or a container does not allow it, the value stays. */
static void end_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    file_write_fd(fd, FIRST_TO_END, sizeof FIRST_TO_END - 1);
    close(fd);
}

/* ---- system calls ---- */

/* Calls that are refused, and with what they fail. clone3's flags are in memory, where no filter
 * sees them: the C library then uses clone. A connection fails as if there were no service. */
static const struct refusal {
    unsigned call;
    int error;
} refused[] = {
    {__NR_connect, ENOENT},
    {__NR_io_uring_setup, ENOSYS}, /* makes sockets beside the filter */
    {__NR_unshare, EPERM},
    {__NR_setns, EPERM},
    {__NR_bpf, EPERM},
    {__NR_perf_event_open, EPERM},
    {__NR_keyctl, EPERM}, /* collocd's keyrings are inherited */
    {__NR_add_key, EPERM},
    {__NR_request_key, EPERM},
#if !CONFINE_IS_SANITIZED
    {__NR_clone3, ENOSYS},
    {__NR_execve, EPERM},
    {__NR_execveat, EPERM},
    {__NR_ptrace, EPERM},
#endif
    {__NR_process_vm_readv, EPERM},
    {__NR_process_vm_writev, EPERM},
    {__NR_kill, EPERM},
    {__NR_tkill, EPERM},
    {__NR_rt_sigqueueinfo, EPERM},
    {__NR_rt_tgsigqueueinfo, EPERM},
    {__NR_pidfd_open, EPERM},
#if defined(__x86_64__)
    {__NR_fork, EPERM},
    {__NR_vfork, EPERM},
#endif
};

/* Calls that are refused unless the lower half of the first argument is as given. */
struct condition {
    unsigned call, comparison, wanted;
    int error;
};

struct filter {
    struct sock_filter steps[STEPS_MAX];
    unsigned short n;
};

static void add_step(struct filter *filter, struct sock_filter step)
{
    filter->steps[filter->n++] = step;
}

static void add_load(struct filter *filter, size_t offset)
{
    add_step(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (__u32)offset));
}

static void add_return(struct filter *filter, unsigned answer)
{
    add_step(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

/* Goes over the next `skipped` steps unless the comparison holds. */
static void add_unless(
    struct filter *filter, unsigned comparison, unsigned value, unsigned char skipped)
{
    add_step(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, skipped));
}

static void add_condition(struct filter *filter, const struct condition *condition)
{
    add_unless(filter, BPF_JEQ, condition->call, 4);
    add_load(
        filter, offsetof(struct seccomp_data, args)); /* both architectures: lower half first */
    add_unless(filter, condition->comparison, condition->wanted, 1);
    add_return(filter, SECCOMP_RET_ALLOW);
    add_return(filter, SECCOMP_RET_ERRNO | (unsigned)condition->error);
}

static void make_filter(struct filter *filter)
{
    const struct condition conditions[] = {
        {__NR_socket, BPF_JEQ, AF_UNIX, EAFNOSUPPORT},
        {__NR_clone, BPF_JSET, CONFINE_IS_SANITIZED ? ~0U : CLONE_THREAD, EPERM},
        {__NR_prlimit64, BPF_JEQ, 0, EPERM}, /* its own */
        {__NR_tgkill, BPF_JEQ, (unsigned)getpid(), EPERM},
    };
    add_load(filter, offsetof(struct seccomp_data, arch));
    add_step(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add_return(filter, SECCOMP_RET_KILL_PROCESS);
    add_load(filter, offsetof(struct seccomp_data, nr));
    add_unless(filter, BPF_JGE, X32_BIT, 1); /* x86's third way to call */
    add_return(filter, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        add_unless(filter, BPF_JEQ, refused[i].call, 1);
        add_return(filter, SECCOMP_RET_ERRNO | (unsigned)refused[i].error);
    }
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
        add_condition(filter, &conditions[i]);
    add_return(filter, SECCOMP_RET_ALLOW);
}

static int filter_calls(struct fault *fault)
{
    struct filter filter = {0};
    make_filter(&filter);
    const struct sock_fprog program = {.len = filter.n, .filter = filter.steps};
    if (ARCHITECTURE == 0)
        return fault_set(fault, ENOSYS, "no filter of system calls for this kind of processor");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
        return fault_set(fault, errno, "cannot filter system calls: %s", strerror(errno));
    return 0;
}

int confine_process(const char *user, struct fault *fault)
{
    struct account account;
    bool is_root = geteuid() == 0;
    int r = is_root ? find_account(user, fault, &account) : 0;
    if (r < 0)
        return r;
    end_first();
    if (close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
        return fault_set(fault, errno, "cannot close descriptors: %s", strerror(errno));
    if (is_root)
        r = become_account(&account, fault);
    if (r == 0)
        r = drop_capabilities(fault);
    if (r == 0)
        r = limit_resources(fault);
    prctl(PR_SET_DUMPABLE, 0); /* a change of user resets both */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return r < 0 ? r : filter_calls(fault);
}
