// SPDX-License-Identifier: GPL-2.0-or-later
// Types of the parts that this page uses of d3-flame-graph and d3-selection, which come without types.
declare module 'd3-flame-graph' {
    interface FlameGraph {
        (selection: unknown): void;
        width(pixels: number): FlameGraph;
        cellHeight(pixels: number): FlameGraph;
        inverted(value: boolean): FlameGraph;
        transitionDuration(ms: number): FlameGraph;
        minFrameSize(pixels: number): FlameGraph;
        selfValue(value: boolean): FlameGraph;
        sort(value: boolean): FlameGraph;
        setColorMapper(mapper: (frame: any, original: string) => string): FlameGraph;
        setLabelHandler(label: (frame: any) => string): FlameGraph;
        getName(name: (frame: any) => string): FlameGraph;
        setSearchMatch(matches: (frame: any, term: string) => boolean): FlameGraph;
        setSearchHandler(handler: (frames: any[], sum: number, total: number) => void): FlameGraph;
        setDetailsHandler(handler: (text: string | null) => void): FlameGraph;
        onHover(handler: (frame: any) => void): FlameGraph;
        onClick(handler: (frame: any) => void): FlameGraph;
        search(term: string): void;
        clear(): void;
        zoomTo(frame: any): void;
        destroy(): void;
    }
    export default function flamegraph(): FlameGraph;
}
declare module 'd3-selection' {
    interface Selection {
        datum(): unknown;
        datum(value: unknown): Selection;
        call(f: (selection: unknown) => void): Selection;
    }
    export function select(element: Element): Selection;
}
