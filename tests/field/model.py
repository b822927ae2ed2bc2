#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: model.py FILE
Writes a small llama model with random weights as a GGUF file, and prints the bytes of each tensor as JSON."""

import json
import random
import struct
import sys
from typing import BinaryIO, Dict, List, Tuple

LAYERS, WIDTH, INNER, HEADS, KV_HEADS, CONTEXT = 4, 512, 1536, 8, 4, 512
ALIGNMENT = 32
UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
F32, F16 = 0, 1
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
BYTES_OF = {F32: 4, F16: 2}
Tensor = Tuple[str, Tuple[int, ...], int]


def vocabulary() -> List[Tuple[str, float, int]]:
    """Three control tokens, all bytes, and words of one and two letters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["\u2581", *letters, *(f"\u2581{letter}" for letter in letters)]
    return [
        ("<unk>", 0.0, UNKNOWN),
        ("<s>", 0.0, CONTROL),
        ("</s>", 0.0, CONTROL),
        *((f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)),
        *((word, -float(rank), NORMAL) for rank, word in enumerate(words)),
    ]


def tensors(n_tokens: int) -> List[Tensor]:
    kv_width = WIDTH // HEADS * KV_HEADS
    all_of_them: List[Tensor] = [
        ("token_embd.weight", (WIDTH, n_tokens), F16),
        ("output_norm.weight", (WIDTH,), F32),
        ("output.weight", (WIDTH, n_tokens), F16),
    ]
    for layer in range(LAYERS):
        parts: List[Tensor] = [
            ("attn_norm", (WIDTH,), F32),
            ("attn_q", (WIDTH, WIDTH), F16),
            ("attn_k", (WIDTH, kv_width), F16),
            ("attn_v", (WIDTH, kv_width), F16),
            ("attn_output", (WIDTH, WIDTH), F16),
            ("ffn_norm", (WIDTH,), F32),
            ("ffn_gate", (WIDTH, INNER), F16),
            ("ffn_up", (WIDTH, INNER), F16),
            ("ffn_down", (INNER, WIDTH), F16),
        ]
        all_of_them += [(f"blk.{layer}.{part}.weight", shape, of) for part, shape, of in parts]
    return all_of_them


def n_bytes(tensor: Tensor) -> int:
    _, shape, of = tensor
    total = BYTES_OF[of]
    for length in shape:
        total *= length
    return total


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def array(of: int, items: List[bytes]) -> bytes:
    return struct.pack("<IQ", of, len(items)) + b"".join(items)


def metadata() -> Dict[str, Tuple[int, bytes]]:
    def number(value: int) -> Tuple[int, bytes]:
        return UINT32, struct.pack("<I", value)

    tokens = vocabulary()
    return {
        "general.architecture": (STRING, text("llama")),
        "general.name": (STRING, text("random")),
        "llama.block_count": number(LAYERS),
        "llama.context_length": number(CONTEXT),
        "llama.embedding_length": number(WIDTH),
        "llama.feed_forward_length": number(INNER),
        "llama.attention.head_count": number(HEADS),
        "llama.attention.head_count_kv": number(KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": (FLOAT32, struct.pack("<f", 1e-5)),
        "llama.rope.dimension_count": number(WIDTH // HEADS),
        "general.file_type": number(1),
        "tokenizer.ggml.model": (STRING, text("llama")),
        "tokenizer.ggml.tokens": (ARRAY, array(STRING, [text(token) for token, _, _ in tokens])),
        "tokenizer.ggml.scores": (ARRAY, array(FLOAT32, [struct.pack("<f", score) for _, score, _ in tokens])),
        "tokenizer.ggml.token_type": (ARRAY, array(INT32, [struct.pack("<i", sort) for _, _, sort in tokens])),
        "tokenizer.ggml.unknown_token_id": number(0),
        "tokenizer.ggml.bos_token_id": number(1),
        "tokenizer.ggml.eos_token_id": number(2),
    }


def write(file: BinaryIO) -> Dict[str, int]:
    fields, all_of_them = metadata(), tensors(len(vocabulary()))
    file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(all_of_them), len(fields)))
    for key, (of, value) in fields.items():
        file.write(text(key) + struct.pack("<I", of) + value)
    at = 0
    for tensor in all_of_them:
        name, shape, of = tensor
        file.write(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, of, at))
        at += -(-n_bytes(tensor) // ALIGNMENT) * ALIGNMENT
    random_bytes = random.Random(1)
    small = bytes(byte & 0xB7 for byte in range(256))  # of an F16, the sign and an exponent below 1
    for tensor in all_of_them:
        file.write(bytes(-file.tell() % ALIGNMENT))
        if tensor[2] == F32:
            file.write(struct.pack("<f", 1) * tensor[1][0])
        else:
            half = n_bytes(tensor) // 2
            data = bytearray(2 * half)
            data[::2] = random_bytes.getrandbits(8 * half).to_bytes(half, "little")
            data[1::2] = random_bytes.getrandbits(8 * half).to_bytes(half, "little").translate(small)
            file.write(data)
    return {tensor[0]: n_bytes(tensor) for tensor in all_of_them}


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as made:
        print(json.dumps(write(made)))
