"""Every collective of the process, seen where torch hands it to the backend.

torch dispatches its collectives (`c10d::allreduce_` and the others) like operators, also
those that DDP starts from C++. A kernel under the autograd key of such an operator runs
before the backend's; this one takes the time and passes the call on as it is. So DDP
computes as it does without a recorder, bit for bit, whatever communication hook it has.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from wirebound.record.clock import Mark
from wirebound.record.patches import Patches, compile_nothing_of
from wirebound.record.steps import Collective, StepLog

KINDS = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "allgather_coalesced_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "broadcast_": "broadcast",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all",
    "reduce_": "reduce",
    "gather_": "gather",
    "scatter_": "scatter",
    "barrier": "barrier",
}
"""Operators of torch's c10d, and what the field calls them."""

KEYS = ("AutogradCPU", "AutogradCUDA")

Fail = Callable[[Exception], None]
"""Is told that a note could not be taken."""


def watch_collectives(patches: Patches, log: StepLog, fail: Fail) -> None:
    """Note every collective from now on.

    Args:
        patches: Gets what is changed.
        log: Gets the notes.
        fail: Is told when a note cannot be taken; the collective runs all the same.
    """
    import torch
    import torch.distributed as dist

    if not dist.is_available():
        return
    patches.replace(dist.Work, "wait", functools.partial(_waiting, log))
    make: Any = torch.library.Library  # without annotations
    library = make("c10d", "IMPL")
    patches.add(library._destroy)  # noqa: SLF001 - no public name
    for name, kind in KINDS.items():
        packet = getattr(torch.ops.c10d, name, None)
        if packet is not None:
            kernel = _kernel(packet.default, kind, log, fail)
            for key in KEYS:
                library.impl(name, kernel, key)


def _kernel(operator: Any, kind: str, log: StepLog, fail: Fail) -> Callable[..., Any]:  # noqa: ANN401
    import torch

    below = torch._C._AutoDispatchBelowAutograd  # noqa: SLF001 - as torch's own kernels do
    compile_nothing_of(_note, _size, _tensors, _done)
    arguments = operator._schema.arguments  # noqa: SLF001
    group_at = next(at for at, one in enumerate(arguments) if one.name == "process_group")

    def kernel(*args: Any) -> Any:  # noqa: ANN401
        if log.step is None:
            with below():
                return operator(*args)
        enqueued = log.clock.mark()
        with below():
            result = operator(*args)
        try:
            _note(log, kind, args, args[group_at], result, enqueued)
        except Exception as error:  # noqa: BLE001 - training goes on, whatever it is
            fail(error)
        return result

    compile_nothing_of(kernel)
    return kernel


def _waiting(log: StepLog, original: Any) -> Any:  # noqa: ANN401 - the function as torch has it
    @functools.wraps(original)
    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        result = original(work, *args, **kwargs)
        if log.waited_for:
            collective = log.waited_for.pop(work, None)
            if collective is not None:
                collective.done = log.clock.mark()
        return result

    compile_nothing_of(wait)
    return wait


def _note(  # noqa: PLR0913, PLR0917 - what a call has
    log: StepLog,
    kind: str,
    args: tuple[Any, ...],
    group: Any,  # noqa: ANN401
    result: Any,  # noqa: ANN401
    enqueued: Mark,
) -> None:
    from torch.distributed import ProcessGroup, Work

    step = log.step
    if step is None:
        return
    work = Work.unbox(result[-1] if isinstance(result, tuple | list) else result)
    nbytes, numel, dtype = (0, 0, "") if kind == "barrier" else _size(args)
    hint = log.gradients[-1][0].model if log.in_backward and log.gradients else None
    name = ProcessGroup.unbox(group).group_name
    collective = Collective(kind, nbytes, numel, dtype, name, log.micro, hint, enqueued)
    if log.bucket is not None:
        collective.model, collective.bucket = log.bucket
    step.collectives.append(collective)
    try:
        done = functools.partial(_done, collective, log.clock.mark)
        work.get_future().add_done_callback(done)
    except RuntimeError:
        # gloo's reduce-scatters have no future: done is when somebody has waited for them.
        log.waited_for[work] = collective


def _done(collective: Collective, mark: Callable[[], Any], _: Any) -> None:  # noqa: ANN401
    collective.done = mark()


def _size(args: tuple[Any, ...]) -> tuple[int, int, str]:
    """Bytes, elements and type of a collective, as nccl-tests counts its size.

    What a rank gives and what it gets differ by the number of ranks in a gather or
    scatter; the size is the larger of both.
    """
    nbytes, numel, dtype = 0, 0, ""
    for arg in args:
        tensors = list(_tensors(arg))
        size = sum(one.numel() * one.element_size() for one in tensors)
        if size > nbytes:
            nbytes, numel = size, sum(one.numel() for one in tensors)
            dtype = str(tensors[0].dtype).removeprefix("torch.")
    return nbytes, numel, dtype


def _tensors(arg: Any) -> Iterator[Any]:  # noqa: ANN401
    if hasattr(arg, "element_size"):
        yield arg
    elif isinstance(arg, list | tuple):
        for one in arg:
            yield from _tensors(one)
