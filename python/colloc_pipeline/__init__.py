# SPDX-License-Identifier: Apache-2.0
"""Pipelines of stages that share GPUs, for `colloc bench PIPELINE.json` (docs/pipelines.md).

    spec       what a pipeline is: read from JSON, and checked
    stage      one process of a stage, as the runner sees it
    run        requests go through the stages of one or several pipelines at the same time
    statistics what the requests' times come to
    sharing    how processes share the GPUs: time-sliced, by MPS, on MIG instances
    recording  power and activity of the GPUs meanwhile, by `colloc record`
    matrix     how much each stage slows each other one down
    results    the tables and the report

Standard library only; the report needs matplotlib.
"""
