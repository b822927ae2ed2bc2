// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time, of all of it or a plot a pool, and the machine below on the same axis.

import { append, choice, h, replace } from '../base/dom.js';
import { onTheme } from '../base/theme.js';
import { MachinePlot } from '../charts/machine.js';
import { signs } from '../charts/marks.js';
import { drawMemory, MemoryPlot } from '../charts/memory.js';
import { begun, finished, pictureButtons } from '../charts/picture.js';
import { sidesOf } from '../runs/sums.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/run.js').Dimension} Dimension */
/** @typedef {import('../runs/areas.js').Side} Side */

const HINT = 'Click: choose a moment. Shift-click: compare with another. Drag: zoom in; double click or Esc: zoom out.';

/** Dimensions that this run has more than one name of. @param {Run} run */
const dimensionsOf = (run) =>
    /** @type {Dimension[]} */ (['owner', 'group', 'kind', 'library', 'line', 'role', 'thread', 'process']).filter(
        (dimension) => dimension === 'owner' || (dimension === 'role' ? run.head.roles.some((role) => role) : run.dimension(dimension).names.length > 1),
    );

export class Timeline extends View {
    static id = 'timeline';
    static title = 'Timeline';

    /** @param {Run} run */
    static fits(run) {
        return run.moments.length > 0;
    }

    /** @type {Dimension} */
    #dimension = 'owner';
    #readout = h('div', { class: 'readout' });
    /** Of the place, when the plots were made to fit. */
    #width = 0;

    /** @param {import('../runs/page.js').Page} page */
    constructor(page) {
        super(page);
        const { run } = this;
        const sides = sidesOf(run);
        const pools = /** @type {Side[]} */ (run.head.is_discrete && sides.length > 1 ? sides : ['both']);
        const key = `time-${run.head.pid}`;
        this.machine = run.parts.machine.length ? new MachinePlot(page, key) : null;
        this.plots = [...pools.map((side) => new MemoryPlot(page, side, (lines) => this.#say(lines), key)), ...(this.machine ? [this.machine] : [])];
    }

    /** @param {HTMLElement} place */
    mount(place) {
        const { hold, plots, run } = this;
        const resetAll = () => plots.forEach((plot) => plot.reset());
        const reset = h('button', { type: 'button', hidden: true, onclick: resetAll }, 'Zoom out');
        for (const plot of plots) {
            plot.onZoom = () => (reset.hidden = !plots.some((each) => each.isZoomed));
            plot.resetAll = resetAll;
            hold.add(() => plot.destroy());
        }
        const names = dimensionsOf(run).map((name) => /** @type {[Dimension, string]} */ ([name, name === 'line' ? 'Python line' : name]));
        const by = choice('Group by', names, this.#dimension, (value) => {
            this.#dimension = value;
            this.#draw();
        });
        const save = pictureButtons('timeline', () => this.#picture());
        append(place, h('div', { class: 'above' }, by, reset, save), signs(run), ...plots.map((plot) => plot.element), this.#readout, this.machine?.grid.element);
        this.#say([HINT]);
        this.#draw();
        this.#width = place.clientWidth;
        hold.listen(place, 'mouseleave', () => this.#say([HINT]));
        hold.onResize(place, () => this.#fit(place.clientWidth));
        hold.onPrint((width) => this.#fit(width ?? place.clientWidth));
        onTheme(hold, () => this.#draw());
    }

    #picture() {
        const { page, run } = this;
        const picture = begun(page, `Memory over time by ${this.#dimension === 'line' ? 'Python line' : this.#dimension}; exact at ${run.moments.length.toLocaleString('en-US')} moments`);
        for (const plot of this.plots) if (plot instanceof MemoryPlot) drawMemory(picture, plot);
        return finished(page, picture, 'memory over time');
    }

    update() {
        this.plots.forEach((plot) => plot.update());
    }

    #draw() {
        this.plots.forEach((plot) => plot.draw(this.#dimension));
    }

    /** @param {number} width of the place */
    #fit(width) {
        if (width === this.#width) return;
        this.#width = width;
        this.plots.forEach((plot) => plot.resize(width));
    }

    /** @param {string[]} lines */
    #say(lines) {
        replace(this.#readout, ...lines.filter((line) => line).map((line, i) => h('div', { class: i ? 'quiet' : '' }, line)));
    }
}
