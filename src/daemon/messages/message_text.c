/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line says what happened, and is the subject of a mail and the text of Slack's form:
 *
 *     task 12 resnet50 on gpu-server: FAILED after 2:13:05 (NonZeroExitCode)
 *
 * Further lines of a mail give the details that the task has. A webhook gets the line and the task.
 */
#include "daemon/messages/message_text.h"

#include <stdio.h>
#include <string.h>

#include "base/json_member.h"
#include "base/text.h"

enum { LINE_SIZE = 700, TEXT_SIZE = 4000 };

/* "2:13:05", "3-00:00:00" */
static const char *seconds_text(double seconds, char text[32])
{
    long long s = (long long)seconds;
    if (s >= 86400)
        snprintf(
            text, 32, "%lld-%02lld:%02lld:%02lld", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60);
    else
        snprintf(text, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

/* The same, or "?" where it is not known. */
static const char *duration_text(const json_t *seconds, char text[32])
{
    double s = json_number_value(seconds);
    return json_is_number(seconds) && s >= 0 ? seconds_text(s, text) : "?";
}

/* What happened, without the task's name. */
static void write_event(FILE *out, const struct message_facts *facts)
{
    char after[32];
    const char *ran = duration_text(json_object_get(facts->task, "exec_s"), after);
    switch (facts->kind) {
    case MESSAGE_START:
        fprintf(out, "starts on GPU %s", *facts->gpus ? facts->gpus : "?");
        break;
    case MESSAGE_END:
    case MESSAGE_FAIL:
        fprintf(out, "%s after %s", member_text(facts->task, "state", ""), ran);
        if (*member_text(facts->task, "reason", "") &&
            strcmp(member_text(facts->task, "reason", ""), "None") != 0)
            fprintf(out, " (%s)", member_text(facts->task, "reason", ""));
        break;
    case MESSAGE_REQUEUE:
        if (strcmp(member_text(facts->task, "failure", ""), "requeued") == 0)
            fputs("is run again", out);
        else
            fprintf(out, "failed (%s) and is run again", member_text(facts->task, "failure", ""));
        break;
    case MESSAGE_SUSPEND:
        fputs("has been suspended for long", out);
        break;
    case MESSAGE_IDLE:
        fprintf(out, "has not used its GPUs for %s; %s", seconds_text(facts->idle_s, after),
            strcmp(member_text(facts->task, "reason", ""), "SuspendedUnused") == 0
                ? "it is suspended until it calls CUDA again"
                : "others wait for them, perhaps");
        break;
    case MESSAGE_GPU:
        fprintf(out, "its GPU %s is %s: %s", facts->gpus, facts->health, facts->why);
        break;
    default:
        break;
    }
}

/* Of no task. */
static void write_gpu(FILE *out, const struct message_facts *facts)
{
    bool is_well = strcmp(facts->health, "ok") == 0;
    fprintf(out, "GPU %s on %s: %s%s", facts->gpus, facts->host,
        is_well ? "nothing is wrong with it any more" : facts->health, is_well ? "" : ": ");
    if (!is_well)
        fputs(facts->why, out);
}

/* Of a process of the user. */
static void write_outside(FILE *out, const struct message_facts *facts)
{
    fprintf(out, "your process %s uses GPU %s of %s outside of colloc. %s", facts->process,
        facts->gpus, facts->host, facts->why);
}

static void write_line(char line[LINE_SIZE], const struct message_facts *facts)
{
    FILE *out = fmemopen(line, LINE_SIZE, "w");
    line[0] = '\0';
    if (!out)
        return;
    if (facts->task) {
        fprintf(out, "task %lld %s on %s: ",
            (long long)json_integer_value(json_object_get(facts->task, "id")),
            member_text(facts->task, "name", ""), facts->host);
        write_event(out, facts);
    } else if (facts->kind == MESSAGE_OUTSIDE) {
        write_outside(out, facts);
    } else {
        write_gpu(out, facts);
    }
    fclose(out);
    line[LINE_SIZE - 1] = '\0';
    text_mend(line);
}

static void write_detail(FILE *out, const char *label, const char *value)
{
    if (*value)
        fprintf(out, "%-12s%s\n", label, value);
}

static void write_text(char text[TEXT_SIZE], const char *line, const json_t *task, bool is_of_gpu)
{
    char after[32], memory[64] = "";
    const json_t *peak = json_object_get(task, "mem_peak_mib");
    FILE *out = fmemopen(text, TEXT_SIZE, "w");
    text[0] = '\0';
    if (!out)
        return;
    if (json_is_number(peak))
        snprintf(memory, sizeof memory, "%.1f GiB", json_number_value(peak) / 1024);
    fprintf(out, "%s\n\n", line);
    if (!task) {
        fputs(!is_of_gpu ? "`colloc gpus` shows all processes on GPUs.\n"
                         : "`colloc gpus` has more; docs/monitor.md says what each state means.\n",
            out);
        fclose(out);
        return;
    }
    write_detail(out, "Command", member_text(task, "command", ""));
    write_detail(out, "Reason", member_text(task, "reason_text", ""));
    write_detail(out, "Evidence", member_text(task, "evidence", ""));
    write_detail(out, "Waited", duration_text(json_object_get(task, "wait_s"), after));
    write_detail(out, "Ran", duration_text(json_object_get(task, "exec_s"), after));
    write_detail(out, "Peak memory", memory);
    write_detail(out, "Memory", member_text(task, "mem_text", ""));
    fprintf(out, "\n`colloc show %lld` has more.\n",
        (long long)json_integer_value(json_object_get(task, "id")));
    fclose(out);
    text[TEXT_SIZE - 1] = '\0';
    text_mend(text);
}

static json_t *make_body(
    const struct message_facts *facts, enum message_form form, const char *line)
{
    if (form == MESSAGE_BY_SLACK)
        return json_pack("{s:s}", "text", line);
    json_t *body = json_pack("{s:s, s:s, s:s, s:I, s:f, s:O?}", "event",
        message_kind_name(facts->kind), "text", line, "host", facts->host, "seq",
        (json_int_t)facts->seq, "at", facts->at, "task", facts->task);
    if (facts->kind == MESSAGE_GPU)
        json_object_set_new(
            body, "gpu", json_pack("{s:s, s:s}", "name", facts->gpus, "health", facts->health));
    return body;
}

json_t *message_make(const struct message_facts *facts, const struct message_address *to,
    const char *server, const char *from)
{
    char line[LINE_SIZE], text[TEXT_SIZE], subject[LINE_SIZE + 16];
    write_line(line, facts);
    if (to->form == MESSAGE_ON_TERMINALS)
        return json_pack("{s:s, s:s}", "form", "terminal", "text", line);
    if (to->form != MESSAGE_BY_MAIL)
        return json_pack("{s:s, s:s, s:o}", "form", "webhook", "to", to->target, "body",
            make_body(facts, to->form, line));
    write_text(text, line, facts->task, facts->kind == MESSAGE_GPU);
    snprintf(subject, sizeof subject, "[colloc] %s", line);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "form", "mail", "to", to->target, "server",
        server, "from", from, "subject", subject, "text", text);
}
