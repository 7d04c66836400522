/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmunge behind named answers. munged checks signature, age and replay; the user is checked here.
 * A credential is refused whatever of it is wrong, also where libmunge could still read it (it
 * decodes expired and replayed ones).
 */
#include "nodelink/munge_seal.h"

#include <errno.h>
#include <munge.h>
#include <stdlib.h>

struct munge_seal {
    munge_ctx_t encoding, decoding; /* apart: munge_decode changes the options of its context */
    uid_t writer;
    const char *socket; /* for messages */
};

/* Returns NULL when memory is out. */
static munge_ctx_t create_context(const char *socket)
{
    munge_ctx_t context = munge_ctx_create();
    if (context && socket && *socket &&
        munge_ctx_set(context, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
        munge_ctx_destroy(context);
        return NULL;
    }
    return context;
}

struct munge_seal *munge_seal_create(const char *socket, uid_t reader, uid_t writer)
{
    struct munge_seal *seal = calloc(1, sizeof *seal);
    if (!seal)
        return NULL;
    seal->writer = writer;
    seal->encoding = create_context(socket);
    seal->decoding = create_context(socket);
    if (!seal->encoding || !seal->decoding ||
        munge_ctx_set(seal->encoding, MUNGE_OPT_TTL, SEAL_TTL_S) != EMUNGE_SUCCESS ||
        munge_ctx_set(seal->encoding, MUNGE_OPT_UID_RESTRICTION, reader) != EMUNGE_SUCCESS) {
        munge_seal_destroy(seal);
        return NULL;
    }
    munge_ctx_get(seal->encoding, MUNGE_OPT_SOCKET, &seal->socket);
    return seal;
}

void munge_seal_destroy(struct munge_seal *seal)
{
    if (!seal)
        return;
    if (seal->encoding)
        munge_ctx_destroy(seal->encoding);
    if (seal->decoding)
        munge_ctx_destroy(seal->decoding);
    free(seal);
}

static const char *error_text(munge_ctx_t context, munge_err_t error)
{
    const char *text = munge_ctx_strerror(context);
    return text ? text : munge_strerror(error);
}

static int fault_of_munged(
    const struct munge_seal *seal, munge_ctx_t context, munge_err_t error, struct fault *fault)
{
    if (error == EMUNGE_NO_MEMORY)
        return fault_set(fault, ENOMEM, "out of memory");
    return fault_set(fault, EAGAIN, "munge (%s): %s: is munged running?",
        seal->socket ? seal->socket : "?", error_text(context, error));
}

int munge_seal_encode(struct munge_seal *seal, const char *text, size_t size, struct fault *fault,
    char **ret_credential)
{
    char *credential = NULL;
    *ret_credential = NULL;
    munge_err_t error = munge_encode(&credential, seal->encoding, text, (int)size);
    if (error == EMUNGE_SUCCESS) {
        *ret_credential = credential;
        return 0;
    }
    free(credential);
    if (error == EMUNGE_BAD_LENGTH || error == EMUNGE_OVERFLOW)
        return fault_set(fault, EMSGSIZE, "munge: %zu bytes are too many", size);
    return fault_of_munged(seal, seal->encoding, error, fault);
}

/* Returns the seal_answer that a refusal of munged is; 0: it is none. */
static int answer_of(munge_err_t error)
{
    switch (error) {
    case EMUNGE_CRED_EXPIRED:
        return SEAL_EXPIRED;
    case EMUNGE_CRED_REWOUND:
        return SEAL_REWOUND;
    case EMUNGE_CRED_REPLAYED:
        return SEAL_REPLAYED;
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
    case EMUNGE_NO_MEMORY:
        return 0;
    default:
        return SEAL_INVALID;
    }
}

static int judge_credential(
    const struct munge_seal *seal, munge_err_t error, uid_t writer, struct fault *fault)
{
    int answer = answer_of(error);
    if (error == EMUNGE_SUCCESS && (writer == seal->writer || seal->writer == SEAL_ANY_WRITER))
        return 0;
    if (error == EMUNGE_SUCCESS) {
        fault_set(fault, EPERM, "signed by user %u instead of user %u", (unsigned)writer,
            (unsigned)seal->writer);
        return SEAL_WRONG_USER;
    }
    if (answer == 0)
        return fault_of_munged(seal, seal->decoding, error, fault);
    fault_set(fault, EPERM, "%s%s", error_text(seal->decoding, error),
        answer == SEAL_EXPIRED || answer == SEAL_REWOUND ? ": do the clocks of the two machines "
                                                           "differ?"
                                                         : "");
    return answer;
}

int munge_seal_decode(struct munge_seal *seal, const char *credential, struct fault *fault,
    char **ret_text, size_t *ret_size)
{
    struct seal_writer writer;
    return munge_seal_decode_from(seal, credential, fault, &writer, ret_text, ret_size);
}

int munge_seal_decode_from(struct munge_seal *seal, const char *credential, struct fault *fault,
    struct seal_writer *ret_writer, char **ret_text, size_t *ret_size)
{
    void *text = NULL;
    int size = 0;
    *ret_writer = (struct seal_writer){(uid_t)-1, (gid_t)-1};
    *ret_text = NULL;
    munge_err_t error = munge_decode(
        credential, seal->decoding, &text, &size, &ret_writer->uid, &ret_writer->gid);
    int r = judge_credential(seal, error, ret_writer->uid, fault);
    if (r == 0 && !text)
        text = calloc(1, 1);
    if (r != 0 || !text) {
        free(text);
        return r != 0 ? r : fault_set(fault, ENOMEM, "out of memory");
    }
    *ret_text = text;
    *ret_size = (size_t)size;
    return 0;
}
