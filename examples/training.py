"""The training loop that the examples share: plain PyTorch, DDP where torchrun started it."""

import argparse
import os
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

Samples = tuple[torch.Tensor, torch.Tensor]


def train(description: str, build: Callable[[], nn.Module], make: Callable[[int], Samples]) -> None:
    """Train a classifier for a few steps.

    Args:
        description: For --help.
        build: Makes the model.
        make: Makes so many samples, inputs and labels.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32, help="samples a worker and micro-step")
    parser.add_argument("--accumulation", type=int, default=1, help="micro-steps a step")
    parser.add_argument("--bucket-cap-mb", type=float, default=25, help="DDP's bucket cap, in MiB")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build()
    is_parallel = "WORLD_SIZE" in os.environ
    workers = 1
    if is_parallel:
        dist.init_process_group("gloo")
        workers = dist.get_world_size()
        model = DistributedDataParallel(model, bucket_cap_mb=options.bucket_cap_mb)

    count = options.steps * options.accumulation * options.batch
    data = TensorDataset(*make(count * workers))
    sampler = DistributedSampler(data) if is_parallel else None
    loader = DataLoader(data, batch_size=options.batch, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    for number, (inputs, labels) in enumerate(loader, start=1):
        is_last = number % options.accumulation == 0
        # DDP reduces in the last micro-step only.
        keeps_quiet = is_parallel and not is_last
        with model.no_sync() if keeps_quiet else nullcontext():
            loss = loss_of(model(inputs), labels)
            loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")
    if is_parallel:
        dist.destroy_process_group()
