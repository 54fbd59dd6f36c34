"""A training step of an adapter with peft and transformers on the CPU: LoRA of rank 16 on all linear
modules of a Llama, 4 sequences of 512 tokens, clipping at 1, PyTorch's fused AdamW.

    python peft_step.py --make FOLDER --tokenizer FILE     a model of 50 million random weights
    python peft_step.py --model FOLDER --mode fp32 --threads 2 --steps 4

fp32    everything in fp32.
bf16    the base in bf16, the adapter in fp32: peft's default over such a base.
half    base and adapter in bf16, without an fp32 master: faster, but other numbers.

Prints the median milliseconds of the steps after the first two; --clock processor counts processor time.
"""

import argparse
import pathlib
import shutil
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

SEQUENCES, SEQ_LEN, RANK = 4, 512, 16
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def make(folder, tokenizer):
    torch.manual_seed(1)
    config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                         num_attention_heads=8, num_key_value_heads=8, vocab_size=24000,
                         max_position_embeddings=2048, tie_word_embeddings=False)
    LlamaForCausalLM(config).save_pretrained(folder)
    shutil.copy(tokenizer, pathlib.Path(folder) / "tokenizer.model")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--make")
    parser.add_argument("--tokenizer")
    parser.add_argument("--model")
    parser.add_argument("--mode", choices=("fp32", "bf16", "half"), default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    options = parser.parse_args()
    if options.make:
        make(options.make, options.tokenizer)
        return
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    base = AutoModelForCausalLM.from_pretrained(
        options.model, dtype=torch.float32 if options.mode == "fp32" else torch.bfloat16)
    lora = LoraConfig(task_type="CAUSAL_LM", r=RANK, lora_alpha=RANK, target_modules=LINEARS)
    model = get_peft_model(base, lora, autocast_adapter_dtype=options.mode != "half")
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0, fused=True)
    ids = torch.randint(0, 512, (SEQUENCES, SEQ_LEN))
    now = time.perf_counter if options.clock == "wall" else time.process_time
    times = []
    for _ in range(options.steps + 2):
        begin = now()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(1000.0 * (now() - begin))
    print(f"{sorted(times[2:])[options.steps // 2]:.1f}")


if __name__ == "__main__":
    main()
