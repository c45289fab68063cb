"""A small Llama with random weights and a tokenizer of bytes, both made here: `python tiny_engine.py FOLDER`. Nothing is fetched."""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

START, END = "<s>", "</s>"


def main(folder: str) -> None:
    """Write model and tokenizer into the folder."""
    letters = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab={**letters, START: 256, END: 257}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=START, eos_token=END, pad_token=END)
    fast.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=258, max_position_embeddings=4096, bos_token_id=256, eos_token_id=257, **shape))
    # Random weights say "end" at random: then no length could be asked for.
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
