"""A decoder of 1.4 B parameters, as small as its source can be. Built on the meta device it takes no memory."""

import torch
from torch import nn

WIDTH, HEADS, LAYERS, WORDS = 2048, 16, 24, 50_000


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        split = self.query_key_value(self.attention_norm(rows)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*split, is_causal=True)
        rows = rows + self.out(attended.transpose(1, 2).flatten(2))
        return rows + self.down(nn.functional.gelu(self.up(self.norm(rows))))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        rows = self.words(words)
        for layer in self.layers:
            rows = layer(rows)
        return self.head(self.norm(rows))


def build() -> nn.Module:
    return Decoder()
