"""Where the phases of a step are noted: input, forward, backward, optimizer.

The hooks run inside somebody's training. They note a mark and go; nothing is formatted
or looked up in them, and none looks at a tensor's values.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

from wirebound.record.patches import Patches
from wirebound.record.registry import Registry
from wirebound.record.steps import StepLog


def watch_phases(patches: Patches, log: StepLog, registry: Registry) -> None:
    """Note the phases of every step from now on.

    Args:
        patches: Gets what is changed.
        log: Gets the notes.
        registry: Is shown each outermost module that runs forward.
    """
    import torch
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    patches.replace(dataloader._BaseDataLoaderIter, "__next__", _input(log))  # noqa: SLF001 - both loaders' base
    patches.replace(torch.nn.Module, "__call__", _forward(log, registry))
    patches.replace(torch.autograd, "backward", _backward(log))
    before = optimizer.register_optimizer_step_pre_hook(
        lambda *_: log.optimizer_begins() if _is_ours(log) else None
    )
    after = optimizer.register_optimizer_step_post_hook(
        lambda *_: log.optimizer_ends() if _is_ours(log) else None
    )
    patches.add(before.remove)
    patches.add(after.remove)


def _is_ours(log: StepLog) -> bool:
    return threading.get_ident() == log.thread


def _input(log: StepLog) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:  # noqa: ANN401 - the function as torch has it
        @functools.wraps(original)
        def wait_for_input(loader: Any) -> Any:  # noqa: ANN401
            if log.is_inside or not _is_ours(log):
                return original(loader)
            start = log.begin()
            log.is_inside = True
            try:
                return original(loader)
            finally:
                log.is_inside = False
                log.note("input", start)

        return wait_for_input

    return wrap


def _forward(log: StepLog, registry: Registry) -> Callable[[Any], Any]:
    """Around the call of a module: global hooks would be compiled into every module."""
    import torch

    is_compiling = torch.compiler.is_compiling
    needs_gradients = torch.is_grad_enabled

    def wrap(original: Any) -> Any:  # noqa: ANN401
        @functools.wraps(original)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if is_compiling() or log.is_inside or not _is_ours(log):
                return original(module, *args, **kwargs)
            if not needs_gradients():
                log.forget_input()
                return original(module, *args, **kwargs)
            registry.meet(module)
            start = log.begin()
            log.is_inside = True
            try:
                return original(module, *args, **kwargs)
            finally:
                log.is_inside = False
                log.note("forward", start)

        return call

    return wrap


def _backward(log: StepLog) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:  # noqa: ANN401
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if log.is_inside or not _is_ours(log):
                return original(*args, **kwargs)
            start = log.begin()
            step = log.step
            gradients = len(log.gradients)
            collectives = 0 if step is None else len(step.collectives)
            log.is_inside = log.in_backward = True
            try:
                return original(*args, **kwargs)
            finally:
                log.is_inside = log.in_backward = False
                log.backward_ends(start, gradients, collectives)

        return backward

    return wrap
