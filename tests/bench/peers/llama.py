"""A Llama from a config.json in plain PyTorch, the way a careful user writes it: packed projections,
scaled_dot_product_attention, fused ops where PyTorch has them. What the peers share.

The shapes, and so the work, are those of `millrace bench step --model CONFIG`.
"""

import json
import time

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Config:
    def __init__(self, path):
        with open(path) as file:
            c = json.load(file)
        self.hidden = c["hidden_size"]
        self.intermediate = c["intermediate_size"]
        self.layers = c["num_hidden_layers"]
        self.heads = c["num_attention_heads"]
        self.kv_heads = c.get("num_key_value_heads", self.heads)
        self.head_dim = c.get("head_dim") or self.hidden // self.heads
        self.vocab = c["vocab_size"]
        self.eps = c["rms_norm_eps"]
        self.theta = c.get("rope_theta", 10000.0)
        self.tied = c.get("tie_word_embeddings", False)
        self.range = c.get("initializer_range", 0.02)

    def flops_of_step(self, tokens, seq_len):
        """6 per token and weight of a product, 6 per visible pair and column of attention; what is
        computed again is not counted. As `millrace bench step`."""
        columns = self.heads * self.head_dim
        block = self.hidden * (columns + (self.heads + 2 * self.kv_heads) * self.head_dim)
        block += 3 * self.hidden * self.intermediate
        weights = self.layers * block + self.vocab * self.hidden
        return 6.0 * tokens * weights + 6.0 * self.layers * columns * seq_len * tokens


class Block(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        columns = c.heads * c.head_dim
        self.norm1 = torch.nn.RMSNorm(c.hidden, eps=c.eps)
        self.norm2 = torch.nn.RMSNorm(c.hidden, eps=c.eps)
        self.qkv = torch.nn.Linear(c.hidden, columns + 2 * c.kv_heads * c.head_dim, bias=False)
        self.out = torch.nn.Linear(columns, c.hidden, bias=False)
        self.gate_up = torch.nn.Linear(c.hidden, 2 * c.intermediate, bias=False)
        self.down = torch.nn.Linear(c.intermediate, c.hidden, bias=False)

    def forward(self, x, cos, sin):
        c = self.c
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, c.heads + 2 * c.kv_heads, c.head_dim)
        q, k, v = qkv.transpose(1, 2).split((c.heads, c.kv_heads, c.kv_heads), dim=1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=c.heads != c.kv_heads)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, c.heads * c.head_dim))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def rotate(t, cos, sin):
    a, b = t.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(t.dtype)


class Llama(torch.nn.Module):
    """forward(ids, targets) is the mean cross-entropy."""

    def __init__(self, config, seq_len, recompute=False):
        super().__init__()
        self.c = config
        self.recompute = recompute
        self.embedding = torch.nn.Embedding(config.vocab, config.hidden)
        self.blocks = torch.nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = torch.nn.RMSNorm(config.hidden, eps=config.eps)
        self.head = torch.nn.Linear(config.hidden, config.vocab, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight
        half = torch.arange(0, config.head_dim, 2).float() / config.head_dim
        # No buffer: DeepSpeed would round it to bf16. Build the model under torch.device(...).
        self.angles = torch.outer(torch.arange(seq_len).float(), config.theta ** -half)

    def initialize(self):
        with torch.no_grad():
            for p in self.parameters():
                if p.dim() == 2:
                    p.normal_(0.0, self.c.range)
        return self

    def forward(self, ids, targets):
        x = self.embedding(ids)
        cos, sin = self.angles.cos().to(x.dtype), self.angles.sin().to(x.dtype)
        for block in self.blocks:
            if self.recompute:
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, self.c.vocab).float(), targets.view(-1))


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def median_seconds(step, device, steps, warm_up=3):
    """Median wall time of `steps` calls, waited for one by one."""
    times = []
    for i in range(warm_up + steps):
        synchronize(device)
        begin = time.perf_counter()
        step()
        synchronize(device)
        if i >= warm_up:
            times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def pick_device(name):
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def device_name(device):
    return torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
