"""A whole optimizer step of a Llama of 50 million parameters in PyTorch on the CPU.

The same shapes, tokens and work as the second case of `millrace bench step`: 8 layers, hidden 640,
10 heads of 64, intermediate 1728, vocabulary 16,384 (tied), 2 sequences of 512 tokens, clipping at 1,
AdamW. Attention is scaled_dot_product_attention, the optimizer is PyTorch's fused AdamW.

fp32   everything in fp32.
bf16   weights, activations and gradients in bf16, an fp32 master with fp32 moments, as Millrace does.
auto   fp32 weights under torch.autocast(bfloat16), the other usual way.

Prints the fastest of the steps after the first three, as tokens/s and as GFLOP/s by the same count
(matrix products and the lower triangle of attention, backward twice forward).

    python tests/bench/peers/torch_step.py --threads 2 --mode fp32 --steps 8
"""

import argparse
import time

import torch
import torch.nn.functional as F

HIDDEN, INTERMEDIATE, LAYERS, HEADS, HEAD_DIM, VOCAB = 640, 1728, 8, 10, 64, 16384
SEQUENCES, SEQ_LEN = 2, 512


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = torch.nn.RMSNorm(HIDDEN, eps=1e-5)
        self.norm2 = torch.nn.RMSNorm(HIDDEN, eps=1e-5)
        self.qkv = torch.nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.out = torch.nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.gate_up = torch.nn.Linear(HIDDEN, 2 * INTERMEDIATE, bias=False)
        self.down = torch.nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, HEAD_DIM).unbind(2)
        q, k = (rotate(t.transpose(1, 2), cos, sin) for t in (q, k))
        a = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, HIDDEN))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def rotate(t, cos, sin):
    a, b = t.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCAB, HIDDEN)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.RMSNorm(HIDDEN, eps=1e-5)
        angles = torch.outer(torch.arange(SEQ_LEN).float(),
                             10000.0 ** (-torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids, targets):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = F.linear(self.norm(x), self.embedding.weight)
        return F.cross_entropy(logits.float().view(-1, VOCAB), targets.view(-1))


def flops_of_step():
    tokens = SEQUENCES * SEQ_LEN
    block = HIDDEN * (3 * HIDDEN + HIDDEN + 2 * INTERMEDIATE + INTERMEDIATE)
    forward = 2.0 * tokens * (LAYERS * block + VOCAB * HIDDEN)
    forward += LAYERS * 2.0 * HEADS * HEAD_DIM * SEQ_LEN * tokens
    return 3.0 * forward


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mode", choices=("fp32", "bf16", "auto"), default="fp32")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = Model()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 2:
                p.normal_(0.0, 0.02)
    master = [p.detach().clone().requires_grad_() for p in model.parameters()]
    if options.mode == "bf16":
        model = model.to(torch.bfloat16)
    trained = master if options.mode == "bf16" else list(model.parameters())
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.1, betas=(0.9, 0.99), fused=True)
    ids = torch.randint(0, VOCAB, (SEQUENCES, SEQ_LEN))
    targets = torch.randint(0, VOCAB, (SEQUENCES, SEQ_LEN))
    times = []
    for _ in range(options.steps + 3):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.mode == "auto"):
            loss = model(ids, targets)
        loss.backward()
        if options.mode == "bf16":
            for m, p in zip(master, model.parameters()):
                m.grad = p.grad.float()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        if options.mode == "bf16":
            with torch.no_grad():
                torch._foreach_copy_(list(model.parameters()), master)
        optimizer.zero_grad(set_to_none=True)
        model.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
    best = min(times[3:])
    parameters = sum(p.numel() for p in model.parameters())
    print(f"torch {torch.__version__} {options.mode}, {options.threads} threads, {parameters} parameters: "
          f"fastest of {options.steps} steps {best * 1000:.1f} ms, "
          f"{SEQUENCES * SEQ_LEN / best:.0f} tokens/s, {flops_of_step() / best / 1e9:.1f} GFLOP/s")


if __name__ == "__main__":
    main()
