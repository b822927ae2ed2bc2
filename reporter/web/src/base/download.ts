// SPDX-License-Identifier: GPL-2.0-or-later
//
// A file for the reader to keep, made here.

import { h } from './dom.js';

export function download(name: string, blob: Blob) {
    const url = URL.createObjectURL(blob);
    const link = h('a', { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}
