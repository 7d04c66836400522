# SPDX-License-Identifier: Apache-2.0
"""In place of gymnasium: environments with random observations that end now and then.

An Atari environment shows four frames of 84 x 84, as behind the usual wrappers; any other shows
four numbers. Wrappers of this package change nothing.
"""
import sys
import types

import numpy as np

EPISODE_STEPS = 200


class Space:
    def seed(self, seed=None):
        pass


class Box(Space):
    def __init__(self, low, high, shape=None, dtype=np.float32):
        self.shape, self.dtype = tuple(shape or np.shape(low)), np.dtype(dtype)
        self.low, self.high = np.full(self.shape, low), np.full(self.shape, high)

    def sample(self):
        if self.dtype == np.uint8:
            return np.random.randint(0, 256, self.shape, dtype=np.uint8)
        return np.random.uniform(-1, 1, self.shape).astype(self.dtype)


class Discrete(Space):
    def __init__(self, n):
        self.n, self.shape, self.dtype = n, (), np.dtype(np.int64)

    def sample(self):
        return np.random.randint(self.n)


class MultiDiscrete(Space):
    pass


class MultiBinary(Space):
    pass


class Dict(Space):
    pass


class Env:
    def __class_getitem__(cls, kinds):
        return cls

    @property
    def unwrapped(self):
        return self

    def close(self):
        pass


class _Random(Env):
    def __init__(self, name):
        is_atari = "NoFrameskip" in name or name.startswith("ALE/")
        frames = Box(0, 255, (4, 84, 84), np.uint8)
        self.observation_space = frames if is_atari else Box(-1, 1, (4,))
        self.action_space, self.steps = Discrete(4), 0
        self.np_random = np.random.default_rng(0)
        self.ale = types.SimpleNamespace(lives=lambda: 1)

    def get_action_meanings(self):
        return ["NOOP", "RIGHT", "LEFT", "UP"]

    def reset(self, seed=None, options=None):
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        ended = self.steps >= EPISODE_STEPS
        return self.observation_space.sample(), float(np.random.rand()), ended, False, {}


class Wrapper(Env):
    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)

    @property
    def unwrapped(self):
        return self.env.unwrapped

    def reset(self, **kwargs):
        return self.env.reset(**kwargs)

    def step(self, action):
        return self.env.step(action)


class RewardWrapper(Wrapper):
    def step(self, action):
        seen, reward, *rest = self.env.step(action)
        return (seen, self.reward(reward), *rest)


ObservationWrapper = ActionWrapper = Wrapper


class SyncVectorEnv:
    def __init__(self, makers, **kwargs):
        self.envs = [make_env() for make_env in makers]
        self.num_envs = len(self.envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space

    def reset(self, seed=None, options=None):
        return np.stack([env.reset()[0] for env in self.envs]), {}

    def step(self, actions):
        rows = [env.step(action) for env, action in zip(self.envs, actions)]
        seen = [env.reset()[0] if row[2] else row[0] for env, row in zip(self.envs, rows)]
        ends = np.array([row[2] for row in rows])
        return np.stack(seen), np.array([r[1] for r in rows]), ends, np.zeros_like(ends), {}

    def close(self):
        pass


def make(name, **kwargs):
    return _Random(name)


def _module(name, **members):
    module = types.ModuleType(f"gymnasium.{name}")
    vars(module).update(members)
    sys.modules[module.__name__] = module
    return module


def _same(env, *args, **kwargs):
    return env


spaces = _module(
    "spaces", Space=Space, Box=Box, Discrete=Discrete, Dict=Dict,
    MultiDiscrete=MultiDiscrete, MultiBinary=MultiBinary,
)  # fmt: skip
vector = _module("vector", SyncVectorEnv=SyncVectorEnv, AsyncVectorEnv=SyncVectorEnv)
wrappers = _module("wrappers")


def _wrapper(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _same


wrappers.__getattr__ = _wrapper
