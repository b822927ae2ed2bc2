// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: node generate.js MODULE MODEL [WAIT]
// Loads a model into llama.cpp, as the Node.js module of that path has it, with all layers on the GPU, generates 24 tokens
// and prints them as JSON. llama.cpp's log goes to standard error.
const [, , path, model] = process.argv;
const { LlamaContext } = require(path);
LlamaContext.toggleNativeLog(true, () => {});
const context = new LlamaContext({
    model,
    n_ctx: 512,
    n_batch: 128,
    n_ubatch: 128,
    n_threads: 1,
    n_gpu_layers: 99,
    flash_attn_type: "off",
});
const options = { prompt: "a small model ".repeat(9), n_predict: 24, temperature: 0, seed: 1, ignore_eos: true };
context.completion(options, () => {}).then(async (made) => {
    const { text, tokens_evaluated: evaluated, tokens_predicted: predicted } = made;
    console.log(JSON.stringify({ text, evaluated, predicted }));
    await context.release();
    LlamaContext.toggleNativeLog(false);
});
