/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the controller of a Slurm cluster on another machine. Each request gets a new
 * credential (nodelink/signed_request.h), which munged on this machine makes for the user of this
 * process. Only the user that the controller runs as can read it, so another program at that
 * address can neither use it nor sign an answer.
 */
#include "cli/controller_link.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { CONF_MAX_BYTES = 64 * 1024 };

const char *slurm_conf_folder(char *buffer, size_t size)
{
    const char *conf = getenv("SLURM_CONF"), *slash = conf ? strrchr(conf, '/') : NULL;
    if (!slash || !span_copy((struct span){conf, (size_t)(slash - conf)}, buffer, size))
        snprintf(buffer, size, "/etc/slurm");
    return buffer;
}

static int read_conf(struct fault *fault, struct login_conf *conf)
{
    char folder[4096], path[4128], *text;
    size_t size;
    snprintf(path, sizeof path, "%s/" LOGIN_CONF_NAME, slurm_conf_folder(folder, sizeof folder));
    *conf = (struct login_conf){.user = "root"};
    int r = file_read(path, CONF_MAX_BYTES, fault, &text, &size);
    if (r < 0)
        return r == -ENOENT || r == -ENOTDIR ? 0 : r;
    r = login_conf_read((struct span){text, strlen(text)}, fault, conf);
    free(text);
    return r < 0 ? fault_prefix(fault, r, "%s", path) : 0;
}

int controller_find(const char *given, struct fault *fault, struct login_conf *ret_conf)
{
    int r = read_conf(fault, ret_conf);
    if (r < 0)
        return r;
    if (!given || !*given)
        given = getenv("COLLOC_CONTROLLER");
    if (given && *given)
        snprintf(ret_conf->controller, sizeof ret_conf->controller, "%s", given);
    return *ret_conf->controller ? 0 : -ENOENT;
}

#if HAVE_SLURM

#include "nodelink/munge_seal.h"
#include "nodelink/signed_request.h"

/* What signs requests, and to which controller. */
struct link_signer {
    struct munge_seal *seal;
    char controller[LOGIN_HOST_SIZE];
};

static int sign_request(void *context, const char *method, const char *path, const char *body,
    size_t size, struct fault *fault, char **ret_credential, uint8_t ret_key[static SHA256_SIZE])
{
    const struct link_signer *link = context;
    struct signed_request request;
    char *text;
    int r = signed_request_make(link->controller, method, path, body, size, fault, &request);
    if (r < 0)
        return r;
    if (signed_request_encode(&request, &text) < 0)
        return fault_set(fault, EILSEQ, "%s: not UTF-8 text", path);
    memcpy(ret_key, request.key, SHA256_SIZE);
    r = munge_seal_encode(link->seal, text, strlen(text), fault, ret_credential);
    free(text);
    return r;
}

static void release_signer(void *context)
{
    struct link_signer *link = context;
    munge_seal_destroy(link->seal);
    free(link);
}

static int find_controller_user(const char *name, struct fault *fault, uid_t *ret_uid)
{
    const struct passwd *entry = getpwnam(name);
    if (!entry && !isdigit((unsigned char)*name))
        return fault_set(fault, EINVAL,
            "ControllerUser: this machine has no user %s: give the number of the user that "
            "colloc-slurm runs as",
            name);
    *ret_uid = entry ? entry->pw_uid : (uid_t)strtoul(name, NULL, 10);
    return 0;
}

int controller_open(const struct login_conf *conf, struct fault *fault, struct client **ret_client)
{
    uid_t reader = 0;
    int r = find_controller_user(conf->user, fault, &reader);
    if (r < 0)
        return r;
    struct link_signer *link = calloc(1, sizeof *link);
    if (link)
        link->seal = munge_seal_create(conf->munge_socket, reader, reader);
    if (!link || !link->seal) {
        free(link);
        return fault_set(fault, ENOMEM, "out of memory");
    }
    strcpy(link->controller, conf->controller);
    const struct client_signer signer = {
        .context = link, .sign = sign_request, .release = release_signer};
    return client_open_remote(conf->controller, &signer, fault, ret_client);
}

#else

int controller_open(const struct login_conf *conf, struct fault *fault, struct client **ret_client)
{
    return fault_set(fault, ENOSYS,
        "%s: this colloc was built without libmunge, which signs requests to another machine",
        conf->controller);
}

#endif
