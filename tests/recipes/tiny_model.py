"""Make the folder tiny: a Llama of random weights that writes letters, with its tokenizer."""

import string

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

letters = {letter: number for number, letter in enumerate(["<pad>", "<end>", *string.ascii_lowercase])}
tokenizer = Tokenizer(models.WordLevel(letters, unk_token="<pad>"))
tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>").save_pretrained("tiny")
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(letters),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    pad_token_id=0,
    eos_token_id=1,
    bos_token_id=None,
)
LlamaForCausalLM(config).save_pretrained("tiny")
