/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This machine's settings of the link between colloc-slurm and the agents. Setup makes the key, and
 * writes `node-auth: tls` into slurm.yaml, and into collocd.yaml if this machine has an agent. It
 * cannot write on other machines, so it prints the commands for them; there `colloc slurm check`
 * prints a digest of the key, by which two machines are compared.
 *
 * A key made by setup has a second line that says so, which the programs do not read. By it
 * `remove` deletes such a key, and keeps one that the site has made.
 */
#include "cli/slurm_link.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/client.h"
#include "api/client_socket.h"
#include "base/file.h"
#include "base/sha256.h"
#include "cli/slurm_plan.h"
#include "nodelink/node_key.h"
#include "slurmconf/link_conf.h"

#define CONTROLLER_FILE "slurm.yaml"
#define AGENT_FILE      "collocd.yaml"
#define MADE_HERE       "# made by colloc slurm setup\n"

static struct link_conf read_conf(struct slurm_link *link, const char *name)
{
    const struct folder_file *file = slurm_folder_find(&link->files, name);
    return link_conf_read(span_of_optional(file ? file->old_text : NULL));
}

/* ---- the key ---- */

/* Reads the key, and writes the start of its digest. Returns 0, or -errno with a fault. */
static int read_key(const char *path, struct fault *fault, char ret_digest[static 9])
{
    uint8_t key[SHA256_SIZE], digest[SHA256_SIZE];
    char hex[SHA256_HEX_SIZE];
    struct sha256 hash;
    *ret_digest = '\0';
    int r = node_key_read(NODE_AUTH_TLS, path, fault, key);
    if (r > 0) {
        sha256_begin(&hash);
        sha256_add(&hash, key, sizeof key);
        sha256_end(&hash, digest);
        sha256_format(digest, hex);
        memcpy(ret_digest, hex, 8);
        ret_digest[8] = '\0';
    }
    explicit_bzero(key, sizeof key);
    return r < 0 ? r : 0;
}

static int write_key(int fd, const char *user)
{
    uint8_t bytes[SHA256_SIZE];
    char text[SHA256_HEX_SIZE + sizeof MADE_HERE];
    const struct passwd *entry = getpwnam(user);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return -EAGAIN;
    sha256_format(bytes, text);
    strcat(text, "\n" MADE_HERE);
    ssize_t n = write(fd, text, strlen(text));
    bool is_whole = n == (ssize_t)strlen(text);
    explicit_bzero(text, sizeof text);
    explicit_bzero(bytes, sizeof bytes);
    if (!is_whole)
        return n < 0 ? -errno : -EIO;
    if (entry && entry->pw_uid != geteuid() && fchown(fd, entry->pw_uid, entry->pw_gid) < 0)
        return -errno;
    return fsync(fd) < 0 ? -errno : 0;
}

int slurm_link_make_key(const struct slurm_link *link, const char *user, struct fault *fault)
{
    const char *path = link->key_path;
    if (!link->is_tls || link->has_key)
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    int r = fd < 0 ? -errno : write_key(fd, user);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && r < 0)
        unlink(path);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 1;
}

bool slurm_link_made_key(const struct slurm_link *link)
{
    char *text;
    size_t size;
    struct fault ignored;
    if (file_read(link->key_path, 4096, &ignored, &text, &size) < 0)
        return false;
    const char *second = strchr(text, '\n');
    bool is_made = second && strcmp(second + 1, MADE_HERE) == 0;
    explicit_bzero(text, size);
    free(text);
    return is_made;
}

int slurm_link_remove_key(const struct slurm_link *link, struct fault *fault)
{
    if (!slurm_link_made_key(link))
        return 0;
    return unlink(link->key_path) == 0
               ? 1
               : fault_set(fault, errno, "%s: %s", link->key_path, strerror(errno));
}

static void find_key(struct slurm_link *link)
{
    const struct link_conf conf = read_conf(link, CONTROLLER_FILE);
    if (*conf.key_file)
        snprintf(link->key_path, sizeof link->key_path, "%s", conf.key_file);
    else
        snprintf(link->key_path, sizeof link->key_path, "%s/node.key", link->files.path);
    link->has_key = access(link->key_path, F_OK) == 0;
}

/* ---- setup ---- */

int slurm_link_open(const char *path, struct fault *fault, struct slurm_link *ret_link)
{
    static const char *const names[] = {CONTROLLER_FILE, AGENT_FILE, NULL};
    *ret_link = (struct slurm_link){0};
    int r = slurm_folder_open_files(path, names, fault, &ret_link->files);
    if (r == 0)
        find_key(ret_link);
    return r;
}

void slurm_link_close(struct slurm_link *link)
{
    slurm_folder_close(&link->files);
}

/* Without a line it is munge. */
static bool is_without_munge(const struct slurm_folder *folder)
{
    char type[64];
    return slurm_folder_setting(folder, "AuthType", type, sizeof type) &&
           strcmp(type, "auth/munge") != 0;
}

/* The key's path is written if it is not the programs' default. */
static int plan_file(const struct slurm_link *link, struct folder_file *file, struct fault *fault)
{
    struct text_edits edits;
    const char *key = strcmp(link->key_path, NODE_KEY_USUAL) == 0 ? NULL : link->key_path;
    int r = link_conf_plan(span_of(file->text), link->is_tls, key, &edits);
    if (r == 0 && (file->old_text || edits.count > 0)) {
        file->new_text = marked_text_apply(span_of(file->text), &edits, file->comment);
        r = file->new_text ? 0 : -ENOMEM;
    }
    text_edits_fini(&edits);
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

int slurm_link_plan(struct slurm_link *link, const struct slurm_folder *folder,
    enum link_choice choice, struct fault *fault)
{
    struct folder_file *ours = slurm_folder_find(&link->files, CONTROLLER_FILE);
    struct folder_file *agent = slurm_folder_find(&link->files, AGENT_FILE);
    const struct link_conf own = link_conf_read(span_of(ours->text));
    char digest[9];
    link->is_tls = choice == LINK_TLS || (choice == LINK_AS_SLURM &&
                                             (link_conf_is_tls(&own) || is_without_munge(folder)));
    int r = plan_file(link, ours, fault);
    if (r == 0 && agent->old_text)
        r = plan_file(link, agent, fault);
    if (r == 0 && link->is_tls && link->has_key)
        r = read_key(link->key_path, fault, digest);
    return r == -EACCES ? 0 : r; /* printing does not need root */
}

void slurm_link_print_nodes(const struct slurm_link *link)
{
    const char *path = link->key_path;
    bool is_usual = strcmp(path, NODE_KEY_USUAL) == 0;
    printf("The agents prove themselves by TLS. Each node with GPUs needs the key of this machine, "
           "and a setting. As root, here, for each NODE:\n"
           "    scp -p %s NODE:%s\n"
           "    ssh NODE \"echo 'node-auth: tls' >>%s/" AGENT_FILE "\"\n",
        path, path, link->files.path);
    if (!is_usual)
        printf("    ssh NODE \"echo 'node-key-file: %s' >>%s/" AGENT_FILE "\"\n", path,
            link->files.path);
    printf(
        "Then restart colloc-slurm, and colloc-node on the nodes. `colloc slurm check` there and "
        "here has to print the same key.\n\n");
}

/* ---- checks ---- */

static void find_side(struct slurm_link *link, const char *name, struct link_side *ret_side)
{
    const struct folder_file *file = slurm_folder_find(&link->files, name);
    const struct link_conf conf = read_conf(link, name);
    struct fault fault = {0};
    *ret_side = (struct link_side){
        .is_there = file->old_text != NULL, .is_tls = link_conf_is_tls(&conf)};
    snprintf(ret_side->path, sizeof ret_side->path, "%s", file->path);
    if (ret_side->is_tls &&
        read_key(*conf.key_file ? conf.key_file : NODE_KEY_USUAL, &fault, ret_side->key_digest) < 0)
        snprintf(ret_side->key_fault, sizeof ret_side->key_fault, "%s", fault.text);
}

void slurm_link_find_sides(
    struct slurm_link *link, struct link_side *ret_controller, struct link_side *ret_agent)
{
    find_side(link, CONTROLLER_FILE, ret_controller);
    find_side(link, AGENT_FILE, ret_agent);
}

void slurm_link_find_wake_file(struct slurm_link *link, char *ret_path, size_t size)
{
    const struct link_conf conf = read_conf(link, CONTROLLER_FILE);
    snprintf(ret_path, size, "%s", *conf.wake_file ? conf.wake_file : WAKE_FILE_USUAL);
}

/* A healthy GPU with a text: its node's agent is silent, or has never reported. */
static void count_agents(const json_t *gpus, struct agents_seen *seen)
{
    const char *last = "";
    size_t i;
    json_t *gpu;
    json_array_foreach(gpus, i, gpu) {
        const char *node = json_string_value(json_object_get(gpu, "node"));
        const char *health = json_string_value(json_object_get(gpu, "health"));
        const char *text = json_string_value(json_object_get(gpu, "health_text"));
        if (!node || !health || !text || strcmp(health, "lost") == 0 || strcmp(node, last) == 0)
            continue;
        last = node;
        seen->nodes++;
        if (strcmp(health, "ok") == 0 && *text && seen->silent++ == 0)
            snprintf(seen->first_silent, sizeof seen->first_silent, "%s", node);
    }
}

struct agents_seen slurm_link_ask_agents(struct slurm_link *link)
{
    const struct link_conf conf = read_conf(link, CONTROLLER_FILE);
    struct agents_seen seen = {.is_wanted = *conf.listen && strcmp(conf.listen, "none") != 0};
    struct client *client = NULL;
    struct fault ignored;
    json_auto_t *reply = NULL;
    int status = 0;
    int r = client_open(*conf.socket ? conf.socket : SLURM_SOCKET_USUAL, &ignored, &client);
    if (r == 0)
        r = client_request(client, "GET", "/v1/gpus", NULL, &ignored, &status, &reply);
    seen.is_known = r == 0 && status == 200;
    if (seen.is_known)
        count_agents(json_object_get(reply, "gpus"), &seen);
    client_close(client);
    return seen;
}
