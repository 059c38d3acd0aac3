"""What the hook on a gradient costs, measured where it was paid."""

import time
from typing import Any

PARAMETERS = 256
ROUNDS = 5

NS_PER_US = 1000


def hook_us_per_gradient() -> float:
    """Cost of the hook on one gradient, of torch's call into Python and of the note [µs].

    A sum of many scalars is differentiated with the hook and without; the shortest of a
    few rounds counts on each side.
    """
    import torch

    from wirebound.record.models import Slot
    from wirebound.record.registry import gradient_hook
    from wirebound.record.steps import StepLog

    with torch.enable_grad():
        leaves: list[Any] = [torch.zeros((), requires_grad=True) for _ in range(PARAMETERS)]
        bare_ns = min(_backward_ns(leaves) for _ in range(ROUNDS))
        log = StepLog(lambda _: None)
        slot = Slot("", 4, 1, "float32", 0, 0)
        for leaf in leaves:
            leaf.register_post_accumulate_grad_hook(gradient_hook(log, slot))
        hooked_ns = min(_backward_ns(leaves) for _ in range(ROUNDS))
    return max(0.0, (hooked_ns - bare_ns) / PARAMETERS / NS_PER_US)


def _backward_ns(leaves: list[Any]) -> int:
    import torch

    total: Any = torch.stack(leaves).sum()
    start = time.perf_counter_ns()
    total.backward()
    return time.perf_counter_ns() - start
