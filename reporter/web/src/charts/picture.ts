// SPDX-License-Identifier: GPL-2.0-or-later
//
// A view as a file that stands by itself: an SVG without scripts or style sheets, in sRGB and ASCII, so that any
// viewer shows it alike, and a PNG of it, which a canvas makes.

import type { Page } from '../runs/page.js';

/** A picture with its head. */
export function begun(page: Page, subtitle: string) {
    const { data, run } = page;
    const picture = new Picture();
    const isAll = page.moment === run.mainMoment && page.other === null && !page.only && !data.difference;
    const summary = run.parts.together?.summary ?? run.head.reports.find(({ moment }) => moment === page.moment)?.statements ?? [];
    const texts = data.difference ? data.difference.headline.map((text) => ({ text, severity: 'note' })) : isAll ? summary : [];
    picture.head(data.title, subtitle, texts);
    return picture;
}

/** Its file. */
export const finished = (page: Page, picture: Picture, what: string) => picture.file(`${page.data.title}: ${what}`);

export const WIDTH = 1200;
export const MARGIN = 16;
export const INK = { back: '#ffffff', text: '#1b1f24', quiet: '#57606a', grid: '#e2e5e9', accent: '#0b5cad', other: '#8250df', alarm: '#b3261e' };
const FONT = "system-ui, 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif";
const SCALE = 2; // pixels of the PNG for one of the SVG
const MOST_PIXELS = 16000; // of a canvas, each way

const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', {
    willReadFrequently: true,
}) as CanvasRenderingContext2D;
const known = new Map<string, string>();

/** Any colour of CSS as "#rrggbb": what is not a browser knows little else. */
export function rgb(colour: string) {
    let found = known.get(colour);
    if (!found) {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
        found = `#${[red, green, blue].map((value) => value.toString(16).padStart(2, '0')).join('')}`;
        known.set(colour, found);
    }
    return found;
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escaped = (text: string) =>
    [...text].map((c) => ENTITIES[c] ?? (/[\x20-\x7e]/.test(c) ? c : /[\p{C}\p{Zl}\p{Zp}]/u.test(c) ? ' ' : `&#${c.codePointAt(0)};`)).join('');

/** As short as a tenth of a pixel allows. */
export const number = (value: number) => String(Math.round(value * 10) / 10);

function widthOf(text: string, size: number, isBold = false) {
    pen.font = `${isBold ? '600 ' : ''}${size}px ${FONT}`;
    // Fonts may be others where the picture is shown.
    return 1.06 * pen.measureText(text).width;
}

/** As much of a text as there is room for; '' where that says nothing. */
export function fitted(text: string, width: number, size: number) {
    if (widthOf(text.slice(0, 1000), size) <= width && text.length <= 1000) return text;
    let [least, most] = [0, Math.min(text.length, Math.ceil(width / (0.2 * size)))];
    while (least < most) {
        const middle = Math.ceil((least + most) / 2);
        if (widthOf(`${text.slice(0, middle)}…`, size) <= width) least = middle;
        else most = middle - 1;
    }
    return least > 1 ? `${text.slice(0, least)}…` : '';
}

/** Words for who points at an element, and for who cannot see it. */
export const title = (text: string) => `<title>${escaped(text.slice(0, 300))}</title>`;

type Look = { size?: number; fill?: string; anchor?: string; isBold?: boolean };

/** Elements, from the top down. */
export class Picture {
    #parts: string[] = [];
    /** Top of the next part. */
    top = 0;

    add(...parts: string[]) {
        this.#parts.push(...parts);
    }

    text(x: number, y: number, words: string, { size = 13, fill = INK.text, anchor = 'start', isBold = false }: Look = {}) {
        this.add(
            `<text x="${number(x)}" y="${number(y)}" font-size="${size}" fill="${fill}" text-anchor="${anchor}"${isBold ? ' font-weight="600"' : ''}>${escaped(words)}</text>`,
        );
    }

    line(x1: number, y1: number, x2: number, y2: number, stroke: string, dash = '') {
        this.add(
            `<line x1="${number(x1)}" y1="${number(y1)}" x2="${number(x2)}" y2="${number(y2)}" stroke="${stroke}"${dash && ` stroke-dasharray="${dash}"`}/>`,
        );
    }

    /** A line down from a name, which stands on the side that has room. */
    flag(x: number, y: number, bottom: number, right: number, words: string, fill: string, dash: string) {
        const isLeft = x + widthOf(words, 12, true) + 12 > right;
        this.line(x, y - 9, x, bottom, fill, dash);
        this.text(x + (isLeft ? -6 : 6), y, words, { size: 12, fill, anchor: isLeft ? 'end' : 'start', isBold: true });
    }

    /** The name of the run, a subtitle, and statements. */
    head(name: string, subtitle: string, statements: { text: string; severity: string }[]) {
        const room = WIDTH - 2 * MARGIN;
        this.text(MARGIN, 30, fitted(name, room, 19), { size: 19, isBold: true });
        this.text(MARGIN, 50, fitted(subtitle, room, 13), { fill: INK.quiet });
        this.top = 74;
        for (const { text, severity } of statements) this.paragraph(text, severity === 'note' ? INK.text : INK.alarm);
    }

    paragraph(text: string, fill: string) {
        const room = WIDTH - 2 * MARGIN;
        const rows = [''];
        for (const word of text.slice(0, 1500).split(' ')) {
            const longer = rows[rows.length - 1] ? `${rows[rows.length - 1]} ${word}` : word;
            if (widthOf(longer, 14) <= room) rows[rows.length - 1] = longer;
            else rows.push(fitted(word, room, 14));
        }
        const [most, isCut] = [3, rows.length > 3];
        for (const [i, row] of rows.slice(0, most).entries()) {
            this.text(MARGIN, this.top, isCut && i === most - 1 ? `${row} …` : row, { size: 14, fill });
            this.top += 20;
        }
    }

    legend(keys: { colour: string; name: string; figure?: string }[]) {
        let x = MARGIN;
        for (const { colour, name, figure = '' } of keys) {
            const shown = fitted(name, WIDTH / 3, 13);
            const width = 18 + widthOf(`${shown} `, 13) + widthOf(figure, 13, true) + 22;
            if (x > MARGIN && x + width > WIDTH - MARGIN) [x, this.top] = [MARGIN, this.top + 22];
            this.add(`<rect x="${number(x)}" y="${number(this.top + 2)}" width="12" height="12" rx="2" fill="${rgb(colour)}"/>`);
            this.add(
                `<text x="${number(x + 18)}" y="${number(this.top + 13)}" font-size="13" fill="${INK.text}">${escaped(shown)} <tspan font-weight="600">${escaped(figure)}</tspan></text>`,
            );
            x += width;
        }
        this.top += 30;
    }

    /** The file. */
    file(name: string) {
        const size = `width="${WIDTH}" height="${Math.ceil(this.top)}" viewBox="0 0 ${WIDTH} ${Math.ceil(this.top)}"`;
        const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${FONT}" role="img">\n${title(name)}\n<rect x="0" y="0" width="${WIDTH}" height="${Math.ceil(this.top)}" fill="${INK.back}"/>`;
        return `<?xml version="1.0" encoding="UTF-8"?>\n${head}\n${this.#parts.join('\n')}\n</svg>\n`;
    }
}

/** `svg`: in ASCII. */
export async function png(svg: string): Promise<Blob> {
    const image = new Image();
    image.src = `data:image/svg+xml;base64,${btoa(svg)}`;
    await image.decode();
    const scale = Math.min(SCALE, MOST_PIXELS / image.height);
    const size = { width: Math.round(image.width * scale), height: Math.round(image.height * scale) };
    const canvas = Object.assign(document.createElement('canvas'), size);
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done, fail) =>
        canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error('this browser makes no PNG of it'))), 'image/png'),
    );
}
