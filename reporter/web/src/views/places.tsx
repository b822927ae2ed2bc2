// SPDX-License-Identifier: GPL-2.0-or-later
//
// Every stack, branch by branch, also those that the page leaves out for their size, and every block in them: asked of the server.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { size, whole } from '../base/units.js';
import { Name, Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run, Side } from '../runs/run.js';
import { type Amount, type Branch, blocksOf, type Children, childrenOf, isServed, type ServedBlocks } from '../runs/served.js';

// A chain of calls without branches is opened at once, so far.
const MOST_AT_ONCE = 40;
const MOST_BLOCKS = 5000;

/** What is open, by node; 0 is the root. */
type Opened = Map<number, Children>;

const ROOT: Branch = { node: 0, name: 'all', type: '', children: 1, around: '', host: 0, device: 0, blocks: 0 };

function View({ page }: { page: Page }) {
    const { whole: run, moment } = page;
    const [opened, open] = useState<Opened>(new Map());
    const [problem, setProblem] = useState('');
    const [blocks, showBlocks] = useState<ServedBlocks | null>(null);
    const [chosen, choose] = useState(-1);
    const [isReady, setReady] = useState(false);
    const body = useRef<HTMLTableSectionElement>(null);
    // Answers to what was asked before another moment was chosen are for nobody.
    const turn = useRef(0);
    const { id, reason } = run.moments[moment];
    const place = (node: number, first = 0) => ({ process: run.head.key, at: id ? String(id) : reason, node, first });
    const sides = (['host', 'device'] as const).filter((side) => run.uses(side));
    const fail = (error: unknown) => setProblem(error instanceof Error ? error.message : String(error));
    const hasOwn = ({ own }: Children) => own.host || own.device || own.blocks;

    /** Asks for what is below a node, and what `isWanted` below that. */
    async function load(into: Opened, node: number, isWanted: (branch: Branch, isOnly: boolean, depth: number) => boolean, depth = 0) {
        const found = await childrenOf(place(node));
        into.set(node, found);
        const isOnly = found.rows.length === 1 && !hasOwn(found);
        for (const branch of found.rows) if (branch.children && isWanted(branch, isOnly, depth)) await load(into, branch.node, isWanted, depth + 1);
    }

    const isChain = (_: Branch, isOnly: boolean, depth: number) => isOnly && depth < MOST_AT_ONCE;
    const toggle = async (node: number) => {
        if (opened.has(node)) {
            open(new Map([...opened].filter(([key]) => key !== node)));
            return;
        }
        const now = turn.current;
        const found = new Map(opened);
        await load(found, node, isChain);
        if (now === turn.current) open(found);
    };
    const more = async (node: number) => {
        const now = turn.current;
        const before = opened.get(node) as Children;
        const { rows } = await childrenOf(place(node, before.rows.length));
        if (now === turn.current) open(new Map(opened).set(node, { ...before, rows: [...before.rows, ...rows] }));
    };
    const look = async (node: number) => {
        const now = turn.current;
        const found = await blocksOf(place(node));
        while (found.rows.length < found.n && found.rows.length < MOST_BLOCKS)
            found.rows = found.rows.concat((await blocksOf({ ...place(node), first: found.rows.length })).rows);
        if (now === turn.current) showBlocks(found);
    };

    useLayoutEffect(() => {
        const now = ++turn.current;
        const path = page.taken(Places.id)?.path ?? [];
        const found: Opened = new Map();
        let last = -1;
        // Along the path as far as there are such places.
        const isOnPath = (branch: Branch, depth: number) => {
            if (path[depth] !== branch.name) return false;
            last = branch.node;
            return true;
        };
        setReady(false);
        showBlocks(null);
        load(found, 0, (branch, isOnly, depth) => isOnPath(branch, depth) || isChain(branch, isOnly, depth) || opened.has(branch.node))
            .then(() => {
                if (now !== turn.current) return;
                open(found);
                choose(last);
                setReady(true);
            })
            .catch(fail);
    }, [page.version]);
    useLayoutEffect(() => {
        const row = body.current?.querySelector('.chosen');
        row?.scrollIntoView({ block: 'center' });
        row?.querySelector('button')?.focus({ preventScroll: true });
    }, [chosen, isReady]);

    return (
        <>
            <p class="quiet" role="status">
                {problem ? <span class="problem">{problem}</span> : isReady && `at ${run.label(moment)}, of the whole trace`}
            </p>
            <div class="scroll" tabIndex={0} role="region" aria-label="All stacks: table">
                <table aria-label="All stacks">
                    <thead>
                        <tr>
                            <th scope="col">frame</th>
                            {[...sides, 'blocks'].map((head) => (
                                <th key={head} scope="col" class="figure">
                                    {head}
                                </th>
                            ))}
                            <th scope="col">
                                <span class="unseen">blocks of it</span>
                            </th>
                        </tr>
                    </thead>
                    <tbody ref={body}>
                        <Below
                            branch={opened.has(0) ? { ...ROOT, ...opened.get(0)?.all } : null}
                            depth={0}
                            opened={opened}
                            sides={sides}
                            chosen={chosen}
                            toggle={(node) => void toggle(node).catch(fail)}
                            more={(node) => void more(node).catch(fail)}
                            look={(node) => void look(node).catch(fail)}
                        />
                    </tbody>
                </table>
            </div>
            {blocks && (
                <Table
                    caption="Blocks"
                    limit={25}
                    empty="no block with a record (small heap blocks have none)"
                    note={`${whole(blocks.n)} with records, ${size(blocks.bytes)}${blocks.rows.length < blocks.n ? `, the largest ${whole(blocks.rows.length)} of them` : ''}, in ${blocks.stack.at(-1) ?? 'all'}`}
                    columns={[
                        { head: 'size', as: 'bytes', value: (block) => block.bytes },
                        { head: 'since', as: 'time', value: (block) => block.begin },
                        { head: 'address', value: (block) => `0x${block.address}` },
                        { head: 'kind', value: (block) => block.kind },
                        { head: 'owner', value: (block) => block.owner },
                    ]}
                    rows={blocks.rows}
                />
            )}
        </>
    );
}

type BelowProps = {
    branch: Branch | null;
    depth: number;
    opened: Opened;
    sides: Side[];
    chosen: number;
    toggle: (node: number) => void;
    more: (node: number) => void;
    look: (node: number) => void;
};

/** A branch, and what is open below it. */
function Below({ branch, ...props }: BelowProps) {
    const { depth, opened, sides, chosen, toggle, more, look } = props;
    if (!branch) return null;
    const { node, name, around, children } = branch;
    const below = opened.get(node);
    const fold = node > 0 && children > 0 && (
        <button type="button" class="fold" aria-expanded={!!below} aria-label={`${below ? 'Close' : 'Open'} ${name}`} onClick={() => toggle(node)}>
            {below ? '▾' : '▸'}
        </button>
    );
    const blocks = (
        <button type="button" aria-label={`Blocks of ${name}`} onClick={() => look(node)}>
            blocks
        </button>
    );
    const left = below ? below.n - below.rows.length : 0;
    const own = below?.own;
    return (
        <>
            <Line depth={depth} name={name} title={around} amount={branch} sides={sides} fold={fold} isChosen={node === chosen}>
                {blocks}
            </Line>
            {own && (own.host > 0 || own.device > 0 || own.blocks > 0) && (
                <Line depth={depth + 1} name={node ? '(ends here)' : '(no stack)'} amount={own} sides={sides} />
            )}
            {below?.rows.map((each) => (
                <Below key={each.node} {...props} branch={each} depth={depth + 1} />
            ))}
            {left > 0 && (
                <tr data-depth={depth + 1}>
                    <td colSpan={sides.length + 3}>
                        <button type="button" onClick={() => more(node)}>
                            {whole(left)} smaller ones
                        </button>
                    </td>
                </tr>
            )}
        </>
    );
}

type LineProps = {
    depth: number;
    name: string;
    amount: Amount;
    sides: Side[];
    title?: string;
    fold?: ComponentChildren;
    isChosen?: boolean;
    children?: ComponentChildren;
};

function Line({ depth, name, amount, sides, title, fold, isChosen, children }: LineProps) {
    const figure = (key: string, value: number, shown: string) => (
        <td key={key} class="figure" data-value={value} title={whole(value)}>
            {shown}
        </td>
    );
    return (
        <tr class={isChosen ? 'chosen' : children ? '' : 'quiet'} data-depth={depth}>
            <td class="long" title={title || undefined} style={{ paddingLeft: `${Math.min(depth, 30) * 0.8 + 0.3}rem` }}>
                {fold || <span class="fold" />} <Name text={name} />
            </td>
            {sides.map((side) => figure(side, amount[side], amount[side] ? size(amount[side]) : '–'))}
            {figure('blocks', amount.blocks, whole(amount.blocks))}
            <td>{children}</td>
        </tr>
    );
}

export const Places = {
    id: 'places',
    title: 'All stacks',
    isWhole: true,
    fits: (run: Run) => isServed() && run.moments.length > 0 && !run.parts.together,
    View,
};
