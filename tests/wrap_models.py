"""Small models of every shape that a wrap policy meets."""

# mypy: disable-error-code="misc"
import torch  # noqa: TID253 - this file is loaded in ranks
from torch import nn  # noqa: TID253

HIDDEN = 32
WORDS = 100
BLOCK = 2 * HIDDEN + (HIDDEN * 4 * HIDDEN + 4 * HIDDEN) + (4 * HIDDEN * HIDDEN + HIDDEN)
TABLE = WORDS * HIDDEN
NORM = 2 * HIDDEN


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows + self.down(self.up(self.norm(rows)).relu())


class Net(nn.Module):
    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, HIDDEN)
        self.layers = nn.ModuleList(Block() for _ in range(blocks))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        rows = self.embed(words)
        for layer in self.layers:
            rows = layer(rows)
        return self.head(self.norm(rows))


class Transformer(Net):
    """Says of itself what a transformers model says."""

    _no_split_modules = ("Block",)

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def get_output_embeddings(self) -> nn.Module:
        return self.head


def tied() -> nn.Module:
    net = Net()
    net.head.weight = net.embed.weight
    return net


def tied_transformer() -> nn.Module:
    net = Transformer()
    net.head.weight = net.embed.weight
    return net


class Stage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.out = nn.Linear(HIDDEN, HIDDEN)


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleDict({"low": Stage(), "high": Stage()})
        self.head = nn.Linear(HIDDEN, WORDS)


def shared_block() -> nn.Module:
    net = Net()
    net.layers[2] = net.layers[0]
    return net


def frozen_table() -> nn.Module:
    net = Net()
    net.embed.requires_grad_(requires_grad=False)
    return net


def half_table() -> nn.Module:
    net = Net()
    net.embed.to(torch.bfloat16)
    return net


class Normed(nn.Module):
    """BatchNorm: version 1 in mixed precision wraps each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.BatchNorm1d(HIDDEN)) for _ in "ab"))


class Stack(nn.Module):
    """Layers as attributes, no container."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = Block(), Block(), Block()


class Attentive(nn.Module):
    """MultiheadAttention: the size policy keeps it whole."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(HIDDEN, 4)
        self.block = Block()


def scheduled() -> nn.Module:
    """Read values while it is built, as drop-path rates are: not on the meta device."""
    net = Net()
    net.rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
    return net


def measured() -> nn.Module:
    """Read its own weights while it is built: not without memory."""
    net = Net()
    net.scale = net.head.weight.std().item()
    return net


def tied_scheduled() -> nn.Module:
    """Tie a parameter that is not on the meta device when it is made, in a model that reads values."""
    net = scheduled()
    shared = nn.Parameter(torch.zeros(WORDS, HIDDEN))
    net.embed.weight = shared
    net.head.weight = shared
    return net
