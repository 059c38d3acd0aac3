"""The models of a script as they turn up, a hook on each parameter, and DDP's buckets."""

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from wirebound.record.clock import CudaEvents, DeviceClock, HostClock
from wirebound.record.models import Buckets, Model, Slot
from wirebound.record.patches import Patches, compile_nothing_of
from wirebound.record.steps import Launch, StepLog


class Registry:
    """Meets modules and puts a hook on every parameter, once.

    Args:
        log: Gets a note for each gradient.
    """

    def __init__(self, log: StepLog) -> None:
        from torch.utils.weak import WeakTensorKeyDictionary

        self.models: list[Model] = []
        self.patches = Patches()
        self._log = log
        self._known = WeakTensorKeyDictionary()
        self._frozen: list[tuple[str, weakref.ref[Any]]] = []
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()
        self._wrappers: weakref.WeakKeyDictionary[Any, Model] = weakref.WeakKeyDictionary()

    def meet(self, module: Any) -> None:  # noqa: ANN401 - a torch.nn.Module
        """An outermost module runs forward; the first time its parameters are hooked."""
        if module in self._met:
            return
        self._met.add(module)
        self._meet_wrapped_before(module)
        named = list(module.named_parameters())
        self._choose_clock(named)
        new = [(name, one) for name, one in named if one not in self._known]
        trained = [(name, one) for name, one in new if one.requires_grad]
        self._frozen += [(name, weakref.ref(one)) for name, one in new if not one.requires_grad]
        if trained:
            self._add(trained, None, {})

    def _meet_wrapped_before(self, module: Any) -> None:  # noqa: ANN401
        """DDP wrappers made before the recording: their first buckets are gone, not the others."""
        from torch.nn.parallel import DistributedDataParallel

        for ddp in module.modules():
            if isinstance(ddp, DistributedDataParallel) and ddp not in self._wrappers:
                wrapper: Any = ddp
                parameters, _ = wrapper._build_params_for_reducer()  # noqa: SLF001 - its own order
                self.meet_ddp(ddp, parameters, None)

    def meet_ddp(self, ddp: Any, parameters: list[Any], buckets: Buckets | None) -> None:  # noqa: ANN401
        """A model is wrapped by DDP.

        Args:
            ddp: The wrapper.
            parameters: Those that it reduces, in its order.
            buckets: Its first buckets, in the order it launches them, where known.
        """
        import torch.distributed as dist

        names = {id(one): name for name, one in ddp.module.named_parameters()}
        named = [(names.get(id(one), f"parameter {at}"), one) for at, one in enumerate(parameters)]
        self._choose_clock(named)
        first = getattr(dist, "_DEFAULT_FIRST_BUCKET_BYTES", None)
        facts = {
            "bucket_cap_bytes": int(ddp.bucket_bytes_cap),
            "first_bucket_bytes": first if ddp.bucket_bytes_cap_default else ddp.bucket_bytes_cap,
            "find_unused_parameters": bool(ddp.find_unused_parameters),
            "static_graph": bool(ddp.static_graph),
        }
        self._wrappers[ddp] = self._add(named, buckets, facts)

    def model_of(self, ddp: Any) -> Model | None:  # noqa: ANN401
        """The model that a wrapper wraps."""
        return self._wrappers.get(ddp)

    def learn(self) -> None:
        """Between two steps: ask for rebuilt buckets, and hook what was unfrozen."""
        for ddp, model in self._wrappers.items():
            if model.rebuilt is None:
                # DDP does this itself, but only before the next step.
                ddp.logger.set_runtime_stats_and_log()
                logged = ddp._get_ddp_logging_data()  # noqa: SLF001 - the way DDP tells it
                if logged.get("rebuilt_per_bucket_param_indices"):
                    model.learn(logged["rebuilt_per_bucket_param_indices"])
        if self._frozen:
            self._unfreeze()

    def _unfreeze(self) -> None:
        alive = [(name, one) for name, ref in self._frozen if (one := ref()) is not None]
        thawed = [(name, one) for name, one in alive if one.requires_grad]
        if thawed:
            self._add(thawed, None, {})
            self._frozen = [
                (name, weakref.ref(one)) for name, one in alive if one not in self._known
            ]

    def _add(
        self, named: list[tuple[str, Any]], buckets: Buckets | None, facts: dict[str, Any]
    ) -> Model:
        index = len(self.models)
        slots = [
            Slot(
                name,
                one.numel() * one.element_size(),
                one.numel(),
                str(one.dtype).removeprefix("torch."),
                index,
                position,
            )
            for position, (name, one) in enumerate(named)
        ]
        model = Model(index, slots, buckets, facts)
        self.models.append(model)
        for slot, (_, one) in zip(slots, named, strict=True):
            if one not in self._known:
                self._known[one] = index
                handle = one.register_post_accumulate_grad_hook(gradient_hook(self._log, slot))
                self.patches.add(handle.remove)
        return model

    def _choose_clock(self, named: Iterable[tuple[str, Any]]) -> None:
        """Use the device's clock from the first model that lives on one."""
        if isinstance(self._log.clock, HostClock) and any(one.is_cuda for _, one in named):
            self._log.clock = DeviceClock(CudaEvents())


def gradient_hook(log: StepLog, slot: Slot) -> Callable[[Any], None]:
    """Notes that a gradient is ready; runs before DDP's own hook on the parameter."""
    note, mark = log.gradients.append, log.clock.mark

    def ready(_: Any) -> None:  # noqa: ANN401 - the parameter
        note((slot, mark()))

    compile_nothing_of(ready)
    return ready


def watch_ddp(patches: Patches, log: StepLog, registry: Registry) -> None:
    """Meet every DDP wrapper at its construction, and know which bucket a user's hook gets."""
    from torch.nn.parallel import DistributedDataParallel

    patches.replace(DistributedDataParallel, "__init__", functools.partial(_construction, registry))
    patches.replace(
        DistributedDataParallel, "register_comm_hook", functools.partial(_hooking, log, registry)
    )


def _construction(registry: Registry, original: Any) -> Any:  # noqa: ANN401
    import torch.distributed as dist

    @functools.wraps(original)
    def construct(ddp: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        made: list[tuple[list[Any], Buckets]] = []

        def spy(assign: Any) -> Any:  # noqa: ANN401
            @functools.wraps(assign)
            def assignment(tensors: list[Any], *rest: Any, **options: Any) -> Any:  # noqa: ANN401
                result = assign(tensors, *rest, **options)
                # DDP launches the last parameters first and turns the list around.
                made.append((list(tensors), tuple(tuple(one) for one in reversed(result[0]))))
                return result

            return assignment

        spying = Patches()
        spying.replace(dist, "_compute_bucket_assignment_by_size", spy)
        try:
            original(ddp, *args, **kwargs)
        finally:
            spying.undo()
        if made:
            registry.meet_ddp(ddp, *made[0])

    return construct


def _hooking(log: StepLog, registry: Registry, original: Any) -> Any:  # noqa: ANN401
    @functools.wraps(original)
    def register(ddp: Any, state: object, hook: Any) -> Any:  # noqa: ANN401
        wrapper = weakref.ref(ddp)

        @functools.wraps(hook)
        def named_bucket(state: object, bucket: Any) -> Any:  # noqa: ANN401
            alive = wrapper()
            model = None if alive is None else registry.model_of(alive)
            if model is None or log.step is None:
                return hook(state, bucket)
            number = bucket.index()
            log.step.launches.append(
                Launch(model.index, number, bucket.buffer().numel(), log.micro)
            )
            log.bucket = (model.index, number)
            try:
                return hook(state, bucket)
            finally:
                log.bucket = None

        return original(ddp, state=state, hook=named_bucket)

    return register
