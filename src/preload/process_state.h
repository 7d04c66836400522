/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's state in its process, and its page (page.h).
 *
 * The state lies in memory that the kernel clears for a child (MADV_WIPEONFORK): whatever the
 * threads of the parent did at that moment, a child finds no state, no lock held and no connection,
 * and begins anew when it first calls CUDA.
 */
#ifndef COLLOC_PRELOAD_PROCESS_STATE_H
#define COLLOC_PRELOAD_PROCESS_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "preload/carrier.h"
#include "preload/collectives.h"
#include "preload/exports.h"
#include "preload/imports.h"
#include "preload/ledger.h"
#include "preload/step_counter.h"
#include "preload/step_page.h"

/* Captures: chosen, more than a program has at a time. */
enum { POOLS_MAX = 16, CAPTURES_MAX = 64 };

struct process_state {
    _Atomic uint32_t status; /* private to process_state.c */
    _Atomic(struct preload_page *)
        page;                           /* never NULL; changes when another daemon hands one over */
    _Atomic uint32_t captures;          /* streams that are being captured; read without the lock */
    _Atomic uint64_t beat_ms, pools_ms; /* of the last beat, and of the last look at the pools */

    struct {
        _Atomic uint32_t lock;
        struct step_counter counter;
    } steps;

    _Atomic uint32_t lock; /* a futex_lock; for all that follows */
    struct ledger ledger;
    struct pool {
        void *pool; /* CUmemoryPool; NULL: unused */
        int device;
        bool is_own; /* the program created it; otherwise the GPU's own */
        uint64_t held_bytes, peak_bytes;
    } pools[POOLS_MAX];
    uint64_t primary_contexts[PRELOAD_DEVICES_MAX]; /* of the devices; 0: not known */
    void *captured[CAPTURES_MAX];                   /* their CUstream; NULL: unused */
    unsigned char uuids[PRELOAD_DEVICES_MAX][16];
    struct carrier carrier;
    struct collectives collectives;
    struct exports exports;
    struct imports imports;
    _Atomic uint32_t known_uuids; /* a bit for each that was read */
    struct connection *daemon;    /* NULL: none */
    struct copy_room room;        /* the last that the daemon has handed over */
    uint64_t hello_ms;            /* when the last HELLO was sent */
};

/*
 * Returns the state of this process, which at first connects to the daemon and waits for its page
 * for at most a second; NULL when there is no memory for it, or it cannot be kept from children.
 */
struct process_state *process_state_get(void);

/* The same, or NULL before the first call of process_state_get in this process. Never waits. */
struct process_state *process_state_peek(void);

/* The page of the moment: what is read and then written must be the same one. */
static inline struct preload_page *process_page(struct process_state *state)
{
    return atomic_load_explicit(&state->page, memory_order_acquire);
}

/* Says in the page what the process uses (enum preload_flag), whether there is a daemon or not. */
void process_note_use(enum preload_flag flag);

/* CLOCK_MONOTONIC in milliseconds, a few ms coarse: 5 ns. */
uint64_t coarse_ms(void);

/* Returns whether `period_ms` have passed since `*last_ms`, which is now then; to one thread only.
 * */
bool process_is_due(_Atomic uint64_t *last_ms, uint64_t period_ms);

/* Once a second, from whatever call: says in the page that the process calls CUDA, and renews the
 * connection. */
void process_beat(struct process_state *state);

/* Takes what the daemon has handed over for the next copy; the caller drops it. */
void process_take_room(struct process_state *state, struct copy_room *ret_room);

/* The rest is called with `lock` held. */

/* Copies what is counted of one device, by its ordinal, to the page. */
void process_publish(struct process_state *state, int device);

/* Connects again when the daemon was restarted, and takes its page when that has come. Never
 * waits. */
void process_renew_connection(struct process_state *state);

#endif
