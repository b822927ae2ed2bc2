// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: node breakdown.js MODULE MODEL
// As generate.js, by the Node.js module of node-llama-cpp; also prints the bytes that llama.cpp itself counts: of the model
// and of its context, on the GPU and on the host.
const path = require("path");
const [, , module_, file] = process.argv;
const addon = require(module_);

async function run() {
    addon.setLogger((level, message) => process.stderr.write(message));
    addon.setLoggerLogLevel(6);
    addon.loadBackends();
    if (!addon.getGpuType()) addon.loadBackends(path.dirname(path.resolve(module_)));
    await addon.init();
    const model = new addon.AddonModel(file, { gpuLayers: 99, addonExports: addon });
    await model.init();
    const context = new addon.AddonContext(model, { contextSize: 512, batchSize: 128, threads: 1, flashAttention: false });
    await context.init();
    const sampler = new addon.AddonSampler(model);
    sampler.applyConfig({ temperature: 0, seed: 1 });
    let tokens = model.tokenize("a small model ".repeat(9), false);
    const made = [];
    for (let at = 0; made.length < 24; at += tokens.length, tokens = Uint32Array.of(made[made.length - 1])) {
        context.initBatch(tokens.length);
        const [last] = context.addToBatch(0, at, tokens, Uint32Array.of(tokens.length - 1));
        await context.decodeBatch();
        made.push(await context.sampleToken(last, sampler));
    }
    console.log(JSON.stringify({ made, model: model.getMemoryBreakdown(), context: context.getMemoryBreakdown() }));
    await context.dispose();
    await model.dispose();
}
run();
