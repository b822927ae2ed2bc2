// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine's memory over time, and its figures.

import { onTheme } from '../base/theme.js';
import { MachinePlot } from '../charts/machine.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */

export class Machine extends View {
    static id = 'machine';
    static title = 'System memory over time';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.parts.machine.length > 0 && run.moments.length > 0;
    }

    plot = new MachinePlot(this.page, `time-${this.run.head.pid}`);

    /** @param {HTMLElement} place */
    mount(place) {
        const { plot, hold } = this;
        place.append(plot.element, plot.grid.element);
        plot.draw();
        hold.add(() => plot.destroy());
        hold.add(this.page.onChange(() => plot.follow()));
        hold.onResize(place, () => place.clientWidth && plot.resize(place.clientWidth));
        hold.onPrint((width) => plot.resize(width ?? place.clientWidth));
        onTheme(hold, () => plot.draw());
    }

    update() {
        this.plot.update();
    }
}
