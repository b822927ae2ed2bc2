// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: node build.mjs DIRECTORY
// Bundles the page's script and style into DIRECTORY, with the shell and the licences of what was bundled.

import { build } from 'esbuild';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2];
if (!target) {
    console.error('usage: node build.mjs DIRECTORY');
    process.exit(2);
}

const result = await build({
    absWorkingDir: here,
    entryPoints: { page: 'src/main.tsx', fleet: 'src/fleet.tsx' },
    outdir: 'out',
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'iife',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    target: ['chrome103', 'firefox113', 'safari16.4'],
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
});

/** The packages that went into the bundle. */
const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
    const found = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) packages.add(found[1]);
}

const licences = [];
for (const name of [...packages].sort()) {
    const directory = join(here, 'node_modules', name);
    const { version } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'));
    let text = '';
    for (const file of ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE']) {
        text ||= await readFile(join(directory, file), 'utf8').catch(() => '');
    }
    if (!text) throw new Error(`${name} has no licence file`);
    licences.push(`${name} ${version}\n\n${text.trim()}\n`);
}

await mkdir(target, { recursive: true });
for (const file of result.outputFiles) {
    const name = basename(file.path);
    if (name === 'fleet.css') continue; // one style for all pages
    // Inside a page, these would end the element around them.
    const text = file.text.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--').replaceAll('</style', '<\\/style');
    await writeFile(join(target, name), text);
}
await writeFile(join(target, 'page.html'), await readFile(join(here, 'src/page.html'), 'utf8'));
await writeFile(join(target, 'licences.txt'), licences.join('\n' + '-'.repeat(78) + '\n\n'));
