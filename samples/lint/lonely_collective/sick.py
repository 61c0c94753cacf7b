"""Sick: the main process alone averages the loss over all ranks, and waits for ever."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mean_over_ranks(accelerator: Accelerator, loss: torch.Tensor) -> float:
    """Return the loss, averaged over all ranks."""
    return accelerator.gather(loss.detach()).mean().item()


def main() -> None:
    """Fit a small network to sums of random numbers."""
    accelerator = Accelerator()
    set_seed(0)
    x = torch.randn(192, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(2):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.is_main_process:
            print(f"epoch {epoch}: loss {mean_over_ranks(accelerator, loss):.3f}")


if __name__ == "__main__":
    main()
