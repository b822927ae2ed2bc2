// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs in a page before its own scripts, and counts what they hold on to: listeners, observers and timers that are not let go
// of. What a thing that nobody can reach any more has is not counted: `window.counted()` is asked after a garbage collection.
// With `window.forgetful` set the page's own efforts to let go are in vain, as if it had forgotten them.

(() => {
    const isForgetful = window.forgetful ?? false;
    /** Targets by weak reference; what each has, for as long as it is reachable. */
    const targets = new Set();
    const had = new WeakMap();
    const listsOf = (target) => {
        if (!had.has(target)) {
            had.set(target, new Map());
            targets.add(new WeakRef(target));
        }
        return had.get(target);
    };
    const note = (target, what, who) => {
        const lists = listsOf(target);
        if (!lists.has(what)) lists.set(what, new Set());
        lists.get(what).add(who);
    };

    const { addEventListener, removeEventListener } = EventTarget.prototype;
    const key = (type, options) => ((typeof options === 'object' ? options?.capture : options) ? `${type} captured` : type);
    EventTarget.prototype.addEventListener = function (type, listener, options) {
        if (listener) note(this ?? window, key(type, options), listener);
        return addEventListener.call(this ?? window, type, listener, options);
    };
    EventTarget.prototype.removeEventListener = function (type, listener, options) {
        if (isForgetful) return;
        had.get(this ?? window)?.get(key(type, options))?.delete(listener);
        removeEventListener.call(this ?? window, type, listener, options);
    };

    for (const name of ['ResizeObserver', 'IntersectionObserver', 'MutationObserver']) {
        window[name] = class extends window[name] {
            #observed = [];

            observe(target, options) {
                this.#observed.push(new WeakRef(target));
                note(target, name, this);
                super.observe(target, options);
            }

            unobserve(target) {
                if (isForgetful) return;
                had.get(target)?.get(name)?.delete(this);
                super.unobserve(target);
            }

            disconnect() {
                if (isForgetful) return;
                for (const target of this.#observed.splice(0)) had.get(target.deref() ?? this)?.get(name)?.delete(this);
                super.disconnect();
            }
        };
    }

    const timers = new Map();
    for (const [start, stop, isOnce] of [['setTimeout', 'clearTimeout', true], ['setInterval', 'clearInterval', false], ['requestAnimationFrame', 'cancelAnimationFrame', true]]) {
        const [begin, end] = [window[start], window[stop]];
        window[start] = (action, ...rest) => {
            const id = begin.call(window, (...values) => {
                if (isOnce) timers.delete(`${start} ${id}`);
                return action(...values);
            }, ...rest);
            timers.set(`${start} ${id}`, start);
            return id;
        };
        window[stop] = (id) => {
            timers.delete(`${start} ${id}`);
            end.call(window, id);
        };
    }

    const nameOf = (target) => {
        if (!(target instanceof Element)) return target.constructor.name;
        return `${target.isConnected ? '' : 'lost '}${target.localName}${target.id ? `#${target.id}` : target.classList[0] ? `.${target.classList[0]}` : ''}`;
    };
    /** By what it is, how many there are. */
    window.counted = () => {
        const found = {};
        const add = (what, n) => (n ? (found[what] = (found[what] ?? 0) + n) : 0);
        for (const reference of targets) {
            const target = reference.deref();
            if (!target) targets.delete(reference);
            else for (const [what, who] of had.get(target)) add(`${nameOf(target)}: ${what}`, who.size);
        }
        for (const start of timers.values()) add(start, 1);
        return found;
    };
})();
