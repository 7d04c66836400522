# SPDX-License-Identifier: Apache-2.0
"""Logs of clusters and synthetic jobs as traces for `colloc simulate` (docs/trace.md).

    log       a file of formats/ reads it row by row -> jobs.Jobs, and counts of what is left out
    select    a period, a sample, sizes, scaled times
    mapping   the task of the catalogue that is like a job
    write     the trace, and with --tasks-out a catalogue in which each job is a task

A format is a file in formats/ with a function `read`, a line of formats.READERS, and one of the
table in src/cli/trace_format.c, which recognises it.
"""
