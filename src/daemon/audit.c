/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit trail: the daemon's log has one line for each thing that happens to a task, by which
 * user. Lines are pairs key=value, the first of them always the same:
 *
 *     audit event=submit task=12 user=ada uid=1000 name=resnet50 gpus=1
 *     audit event=start task=12 user=ada uid=1000 gpus=0 sharing=mps attempt=1
 *     audit event=cancel task=12 user=ada uid=1000 by=root by_uid=0
 *     audit event=update task=12 user=ada uid=1000 by=ada by_uid=1000 priority=low
 *     audit event=hold task=12 user=ada uid=1000 by=bob by_uid=1001      (bob is an operator)
 *     audit event=suspend-request task=12 user=ada uid=1000 by=bob by_uid=1001
 *     audit event=suspend task=12 user=ada uid=1000                      (it has left its GPUs)
 *     audit event=crash task=12 user=ada uid=1000 class=gpu-oom exit=1 signal=0
 *     audit event=end task=12 user=ada uid=1000 state=COMPLETED
 *
 * A value with other characters than letters, digits and _.,:/+-@ is put in double quotes, in which
 * a backslash stands before " and \. Control characters become '?', and long values are cut, so a
 * user's text can neither end its line nor look like another key. Scripts, environments and output
 * are never in it.
 */
#include "daemon/audit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure_class.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "core/sharing_choice.h"

enum { VALUE_MAX = 128 }; /* bytes of a user's text in a line; chosen: names are cut there, too */

static bool is_plain(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_.,:/+-@", *text))
            return false;
    return true;
}

static void put_value(FILE *out, const char *text)
{
    if (is_plain(text) && strlen(text) <= VALUE_MAX) {
        fputs(text, out);
        return;
    }
    size_t n = strnlen(text, VALUE_MAX);
    while (n > 0 && text[n] && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    fputc('"', out);
    for (size_t i = 0, size; i < n; i += size) {
        unsigned number;
        bool is_control = (size = text_control(text + i, &number)) > 0;
        size = is_control ? size : 1;
        if (text[i] == '"' || text[i] == '\\')
            fputc('\\', out);
        fputc(is_control ? '?' : text[i], out);
    }
    fputc('"', out);
}

static void put_field(FILE *out, const char *key, const char *value)
{
    fprintf(out, " %s=", key);
    put_value(out, value ? value : "");
}

static void put_author(FILE *out, const struct job *job, const json_t *detail)
{
    const json_t *by = json_object_get(detail, "by_uid");
    uid_t uid = (uid_t)json_integer_value(by);
    if (!by)
        return;
    put_field(out, "by", job_author(job, uid, detail));
    fprintf(out, " by_uid=%u", (unsigned)uid);
}

static void put_gpus(FILE *out, const struct core *core, const struct task *task)
{
    const struct cluster_view *view = core_view(core);
    fputs(" gpus=", out);
    for (int i = 0; i < task->n_gpus; i++)
        fprintf(out, "%s%s", i ? "," : "", view->gpus[task->gpus[i]].id.label);
}

static void put_update(FILE *out, const struct task_update *update, const json_t *detail)
{
    const json_t *name = json_object_get(detail, "name");
    if (update->sets_time_limit)
        fprintf(out, " time_limit_s=%lld", (long long)(update->time_limit_us / SECOND_US));
    if (update->sets_priority)
        put_field(out, "priority", priority_name(update->priority));
    if (update->sets_need)
        fprintf(out, " memory_mib=%lld", (long long)(update->need.bytes / MIB));
    if (update->sets_begin)
        fputs(" begin=yes", out);
    if (update->sets_after)
        fprintf(out, " after=%d", update->n_after);
    if (name)
        put_field(out, "name", json_string_value(name));
}

static const char *audit_word(const struct event *event, bool has_author)
{
    switch (event->kind) {
    case EVENT_SUSPEND:
        return has_author ? "suspend-request" : NULL;
    case EVENT_RESUME:
        return has_author ? "resume-request" : NULL;
    case EVENT_MOVE:
        return has_author ? "move-request" : NULL;
    case EVENT_SUBMIT:
        return "submit";
    case EVENT_STARTED:
        return "start";
    case EVENT_EXITED:
        return event->exited.failure == FAILURE_NONE ||
                       event->exited.failure == FAILURE_CANCELLED ||
                       event->exited.failure == FAILURE_REQUEUED
                   ? NULL
                   : "crash";
    case EVENT_CANCEL:
        return "cancel";
    case EVENT_RUN_AGAIN:
        return "run-again";
    case EVENT_HOLD:
        return "hold";
    case EVENT_RELEASE:
        return "release";
    case EVENT_UPDATE:
        return "update";
    case EVENT_SUSPENDED:
        return "suspend";
    case EVENT_RESUMED:
        return "resume";
    case EVENT_MOVED:
        return "move";
    case EVENT_PAUSE:
        return "pause";
    case EVENT_CONTINUE:
        return "continue";
    case EVENT_RECOVER:
    case EVENT_REQUEUE:
    case EVENT_RESTART:
        return "requeue";
    case EVENT_END:
        return "end";
    default:
        return NULL;
    }
}

static void put_details(FILE *out, const struct core *core, const struct job *job,
    const struct task *task, const struct event *event, const json_t *detail)
{
    switch (event->kind) {
    case EVENT_SUBMIT:
        put_field(out, "name", job->name);
        fprintf(out, " gpus=%d", event->submit.request.gpus);
        if (event->submit.n_elements > 0)
            fprintf(out, " tasks=%d", event->submit.n_elements);
        break;
    case EVENT_UPDATE:
        put_update(out, &event->update, detail);
        break;
    case EVENT_RESUMED:
    case EVENT_MOVED:
        put_gpus(out, core, task);
        break;
    case EVENT_STARTED:
        put_gpus(out, core, task);
        put_field(out, "sharing", sharing_name(task->run->share.sharing));
        fprintf(out, " attempt=%d", task->attempts);
        break;
    case EVENT_EXITED:
        put_field(out, "class", failure_name(event->exited.failure));
        fprintf(out, " exit=%d signal=%d", event->exited.code, event->exited.signal);
        break;
    case EVENT_END:
        put_field(out, "state", task_state_word(event->end));
        break;
    default:
        break;
    }
}

/* Of an array that is submitted: its first task's. */
static uint64_t job_id(const struct event *event)
{
    bool is_array = event->kind == EVENT_SUBMIT && event->submit.n_elements > 0;
    return is_array ? event->submit.elements[0].task : event->task;
}

void audit_event(const struct core *core, const struct jobs *jobs, const struct event *event,
    const json_t *detail)
{
    const char *word = audit_word(event, json_object_get(detail, "by_uid"));
    struct job *job = word ? jobs_find(jobs, job_id(event)) : NULL;
    const struct task *task = word ? core_task(core, event->task) : NULL;
    char line[1000] = "";
    if (!job || (!task && event->kind != EVENT_SUBMIT))
        return;
    if (event->kind == EVENT_STARTED) { /* fed again after a restart */
        if (job->started_attempt == task->attempts)
            return;
        job->started_attempt = task->attempts;
    }
    FILE *out = fmemopen(line, sizeof line - 1, "w");
    if (!out)
        return;
    fprintf(out, "audit event=%s task=%llu", word, (unsigned long long)event->task);
    put_field(out, "user", job->user);
    fprintf(out, " uid=%u", (unsigned)job->uid);
    put_author(out, job, detail);
    put_details(out, core, job, task, event, detail);
    fclose(out);
    log_info("%s", line);
}
