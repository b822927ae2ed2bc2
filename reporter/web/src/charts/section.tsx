// SPDX-License-Identifier: GPL-2.0-or-later
//
// The view around a component, and controls whose settings an address keeps under the view's name: "calls.order".

import { type ComponentChildren, createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { type Page, settingOf } from '../runs/page.js';

/** None on the page of a fleet. */
export const ViewContext = createContext<{ page: Page; id: string; title: string } | null>(null);

/** What a control is set to, and the way to set it. `among`: what it can be; an address may say anything. */
export function useKept<T extends string>(name: string, first: T, among?: T[]): [T, (value: T) => void] {
    const view = useContext(ViewContext);
    const own = useState(first);
    if (!view) return own;
    const [value, set] = settingOf(view.page, `${view.id}.${name.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`, first);
    return [among && !among.includes(value) ? first : value, set];
}

type ChoiceProps<T extends string> = { label: string; options: [T, string][]; value: T; onChange: (value: T) => void };

/** `options`: value and text. */
export const Choice = <T extends string>({ label, options, value, onChange }: ChoiceProps<T>) => (
    <label class="choice">
        {label}{' '}
        <select onChange={(event) => onChange(event.currentTarget.value as T)}>
            {options.map(([key, text]) => (
                <option key={key} value={key} selected={key === value}>
                    {text}
                </option>
            ))}
        </select>
    </label>
);

/** Code in a sentence: what stands in backticks, a line of a file, a library, a call, a setting. */
const CODE = /`([^`]+)`|([\w./-]+\.\w{1,4}:\d+(?: \([\w.<>]+\))?|[\w.+-]+\.so[.\d]*\b|[\w.]+\(\)|[A-Z][A-Z_]{4,}[A-Z]=[\w:.]+)/;

export const Words = ({ text }: { text: string }) => <>{text.split(CODE).map((part, i) => (i % 3 && part ? <code key={i}>{part}</code> : part))}</>;

/** A name with its colour. */
export const Key = ({ name, colour }: { name: string; colour: string }) => (
    <span class="key">
        <i style={{ background: colour }} />
        {name}
    </span>
);

/** Keys of colours. */
export const Legend = ({ keys, children }: { keys: { name: string; colour: string }[]; children?: ComponentChildren }) => (
    <ul class="legend">
        {keys.map(({ name, colour }) => (
            <li key={name}>
                <Key name={name} colour={colour} />
            </li>
        ))}
        {children}
    </ul>
);

/** Names and texts, two columns. */
export const Terms = ({ rows, Name = 'span' }: { rows: [string, string][]; Name?: 'span' | 'kbd' }) => (
    <dl>{rows.map(([name, text]) => [<dt key={name} children={<Name>{name}</Name>} />, <dd key={`${name}.`}>{text}</dd>])}</dl>
);

/** The name of a table's filter among its view's settings. */
export const filterOf = (caption: string) => `filter ${caption}`;
