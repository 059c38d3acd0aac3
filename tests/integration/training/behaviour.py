"""One process, or ranks of torchrun, that train and then misbehave as told."""

import os
import resource
import signal
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

how = sys.argv[1]
model: nn.Module = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 2))
if how == "lose":
    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(40, 16), torch.randint(2, (40,)))
workers = 2 if how == "workers" else 0
if how == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

if __name__ == "__main__":
    for number, (inputs, labels) in enumerate(DataLoader(data, batch_size=4, num_workers=workers)):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        if how == "never":
            continue
        if number == 5 and how == "raise":
            raise ValueError("as told")
        if number == 5 and how == "exit":
            os._exit(7)
        if number == 5 and how == "status":
            sys.exit(3)
        if number == 5 and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 5 and how == "lose" and torch.distributed.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 2 and how == "monitor":
            [child] = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
            os.kill(int(child), signal.SIGKILL)
        optimizer.step()
        optimizer.zero_grad()
    print(f"done {__name__} {sys.argv[1:]}")  # noqa: T201 - a script
