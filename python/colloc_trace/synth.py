# SPDX-License-Identifier: Apache-2.0
"""Draws synthetic jobs with the published figures of a cluster.

Those are a median length over all jobs and a mean length for each size. `fit` finds the log-normal
distributions that have them: for a given shape (sigma), bisection finds each size's median from its
mean; an outer bisection finds the sigma at which half of all jobs are below the published median.
The wider lengths are spread, the more jobs are short for the same mean, so both searches are of a
rising function.

Jobs are then drawn one by one: the size by its share, the length from its distribution, cut at the
longest, the arrival by rejection from a rate that is half the mean at four in the morning and one
and a half times the mean at four in the afternoon.
"""

import math
from typing import List, NamedTuple, Tuple

from colloc_trace.jobs import Job, Jobs
from colloc_trace.parse import SECOND_US, llround
from colloc_trace.random import SeededRandom

DAY_S = 86400.0
# The rate of arrivals over the day: its swing around the mean, and when it is lowest. Assumed: no
# source has figures for these clusters.
SWING, QUIETEST_HOUR = 0.5, 4
BISECTIONS = 60  # halvings of a range, more than the digits of a double
SIGMA_LEAST, SIGMA_MOST = 0.1, 6.0  # the bounds of the search; chosen: wider than any cluster's


class Size(NamedTuple):
    """The jobs with one number of GPUs."""

    gpus: int
    share: float  # of the jobs
    mean_s: float  # of their lengths


class Profile(NamedTuple):
    """The published figures of a cluster."""

    median_s: float  # of the lengths of all jobs
    longest_s: float
    sizes: Tuple[Size, ...]


# helios: SenseTime's Venus cluster (Hu et al., "Characterization and Prediction of Deep Learning
# Workloads in Large-Scale GPU Datacenters", SC 2021): 52.5 % of the jobs take one GPU, 22.6 %
# eight, 10.3 % more, here sixteen; the other 14.6 % are two and four in equal parts. Half take less
# than ten minutes, the mean is 6,652 s, the longest 50 days. One-GPU jobs take 4.7 % of the GPU
# time, those with eight or more 85.7 %, from which the means follow, which are taken to be the same
# for two and four, and for eight and sixteen: of 41,424 GPU-seconds a job, 4.7 % / 0.525 jobs;
# 9.6 % / (0.073 x 2 + 0.073 x 4); 85.7 % / (0.226 x 8 + 0.103 x 16).
#
# philly: Microsoft's Philly. The same paper's table 2 has a mean of 28,329 s, and a longest job of
# 60 days; 70 % with one GPU, 10 % with two, 15 % with four and 5 % with eight are what Gavel's
# generator draws for Philly (Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for
# Deep Learning Workloads", OSDI 2020). Half under ten minutes, and one mean for all sizes, are
# assumed.
PROFILES = {
    "helios": Profile(
        600,
        50 * DAY_S,
        (
            Size(1, 0.525, 3708),
            Size(2, 0.073, 9079),
            Size(4, 0.073, 9079),
            Size(8, 0.226, 10272),
            Size(16, 0.103, 10272),
        ),
    ),
    "philly": Profile(
        600,
        60 * DAY_S,
        (
            Size(1, 0.70, 28329),
            Size(2, 0.10, 28329),
            Size(4, 0.15, 28329),
            Size(8, 0.05, 28329),
        ),
    ),
}


def share_up_to(profile: Profile, gpus_max: int) -> float:
    """The share of the profile's jobs with at most this number of GPUs; 0: any number."""
    share = 0.0
    for size in profile.sizes:
        share += size.share if gpus_max == 0 or size.gpus <= gpus_max else 0.0
    return share


def normal_below(z: float) -> float:
    """The probability of a standard normal number to be less."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def cut_mean(median: float, sigma: float, longest: float) -> float:
    """The mean of a log-normal number that is at most `longest`."""
    z = math.log(longest / median) / sigma
    body = median * math.exp(sigma * sigma / 2) * normal_below(z - sigma)
    return body + longest * normal_below(-z)


def median_for(mean: float, sigma: float, longest: float) -> float:
    """The median at which the cut mean is this."""
    low, high = math.log(mean) - 30, math.log(longest)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if cut_mean(math.exp(middle), sigma, longest) < mean:
            low = middle
        else:
            high = middle
    return math.exp(low)


class Lengths(NamedTuple):
    """Log-normal distributions of the lengths."""

    sigma: float
    median_s: List[float]  # by size


def _fit_medians(profile: Profile, sigma: float) -> Tuple[float, List[float]]:
    """The share of the jobs below the published median, and the medians."""
    below = 0.0
    medians: List[float] = []
    for size in profile.sizes:
        median_s = median_for(size.mean_s, sigma, profile.longest_s)
        medians.append(median_s)
        below += size.share * normal_below(math.log(profile.median_s / median_s) / sigma)
    return below, medians


def fit(profile: Profile) -> Lengths:
    """The distributions that have the profile's median and means."""
    low, high = SIGMA_LEAST, SIGMA_MOST  # a wider spread with the same mean makes more jobs short
    sigma = 0.0
    medians: List[float] = []
    for _ in range(BISECTIONS):
        sigma = (low + high) / 2
        below, medians = _fit_medians(profile, sigma)
        if below < 0.5:
            low = sigma
        else:
            high = sigma
    return Lengths(sigma, medians)


def _draw_size(profile: Profile, gpus_max: int, random: SeededRandom) -> int:
    left, last = random.fraction() * share_up_to(profile, gpus_max), 0
    for i, size in enumerate(profile.sizes):
        if gpus_max and size.gpus > gpus_max:
            continue
        last = i
        left -= size.share
        if left < 0:
            break
    return last


def _draw_arrival_s(days: float, random: SeededRandom) -> float:
    while True:
        at = random.fraction() * days
        rate = 1 - SWING * math.cos(2 * math.pi * (at - QUIETEST_HOUR / 24.0))
        if random.fraction() * (1 + SWING) < rate:
            return at * DAY_S


def make_jobs(profile: Profile, n: int, days: float, gpus_max: int, seed: int) -> Jobs:
    """The jobs, in order of time. gpus_max: sizes above it are left out, and the others' shares
    rise; 0: none is. The profile must have sizes up to it."""
    random, lengths, jobs = SeededRandom(seed), fit(profile), Jobs()
    for _ in range(n):
        size = _draw_size(profile, gpus_max, random)
        length_s = lengths.median_s[size] * math.exp(lengths.sigma * random.normal())
        length_s = min(max(1.0, length_s), profile.longest_s)
        submit_us = llround(_draw_arrival_s(days, random)) * SECOND_US
        jobs.add(Job(submit_us, llround(length_s) * SECOND_US, profile.sizes[size].gpus))
    jobs.sort()
    return jobs
