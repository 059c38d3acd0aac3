"""Two ranks that train in many ways, each recorded in a folder of its own, and once without."""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

import wirebound

FOLDER = Path(sys.argv[1])

Train = Callable[[], list[nn.Module]]


def net() -> nn.Sequential:
    """The same parameters every time."""
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.Linear(64, 4))


def batches(steps: int) -> list[torch.Tensor]:
    """Data of this rank, the last batch smaller."""
    made = torch.Generator().manual_seed(dist.get_rank())
    sizes = [8] * (steps - 1) + [3]
    return [torch.randn(size, 32, generator=made) for size in sizes]


def loop(model: nn.Module, steps: int = 4) -> None:
    """The plain loop."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(steps):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


def plain() -> list[nn.Module]:
    """DDP as it comes, with several buckets."""
    model = DistributedDataParallel(net(), bucket_cap_mb=0.01)
    loop(model)
    return [model]


def accumulation() -> list[nn.Module]:
    """Two micro-steps, of which the second is synchronised."""
    model = DistributedDataParallel(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(3):
        optimizer.zero_grad()
        with model.no_sync():
            model(batch).square().mean().backward()
        model(batch).square().mean().backward()
        optimizer.step()
    return [model]


def two_models() -> list[nn.Module]:
    """Two DDP models of the same shape, one backward pass, two optimizers."""
    models = [DistributedDataParallel(net()), DistributedDataParallel(net())]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    for batch in batches(3):
        loss = sum(model(batch).square().mean() for model in models)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return models


class Partial(nn.Module):
    """One layer is frozen and one is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.used = net()
        self.unused = nn.Linear(8, 8)
        self.used[0].requires_grad_(False)  # noqa: FBT003 - torch's own signature

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Leave the unused layer out."""
        return self.used(batch)


def unused() -> list[nn.Module]:
    """Frozen and unused parameters."""
    model = DistributedDataParallel(Partial(), find_unused_parameters=True)
    loop(model)
    return [model]


def hooked() -> list[nn.Module]:
    """A communication hook of the user: half precision."""
    model = DistributedDataParallel(net(), bucket_cap_mb=0.01)
    model.register_comm_hook(None, fp16_compress_hook)
    loop(model)
    return [model]


def views() -> list[nn.Module]:
    """Gradients are views of their buckets."""
    model = DistributedDataParallel(net(), gradient_as_bucket_view=True)
    loop(model)
    return [model]


def mixed() -> list[nn.Module]:
    """Autocast and a scaler of gradients."""
    model = DistributedDataParallel(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for batch in batches(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(batch).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return [model]


def sharded() -> list[nn.Module]:
    """FSDP2."""
    from torch.distributed.fsdp import fully_shard

    model = net()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    loop(model)
    return []


EARLY: list[nn.Module] = []


def wrapped_before() -> list[nn.Module]:
    """A model that was wrapped and trained before the recording began."""
    if not EARLY:
        EARLY.append(DistributedDataParallel(net(), bucket_cap_mb=0.01))
        loop(EARLY[0])
        return []
    loop(EARLY[0])
    return []


VARIANTS: dict[str, Train] = {
    train.__name__: train
    for train in (
        plain,
        accumulation,
        two_models,
        unused,
        hooked,
        views,
        mixed,
        sharded,
        wrapped_before,
    )
}


def main() -> None:
    """Train each way without a recorder and with one, and compare every parameter."""
    dist.init_process_group("gloo")
    for name, train in VARIANTS.items():
        bare = train()
        with wirebound.Recorder(FOLDER / name, monitor=False):
            recorded = train()
        for one, other in zip(bare, recorded, strict=True):
            for expected, actual in zip(one.parameters(), other.parameters(), strict=True):
                if not torch.equal(expected, actual) or not torch.equal(
                    torch.nan_to_num(expected.grad if expected.grad is not None else expected),
                    torch.nan_to_num(actual.grad if actual.grad is not None else actual),
                ):
                    sys.exit(f"{name}: the recorder changed the result")
    dist.barrier()
    dist.destroy_process_group()


main()
