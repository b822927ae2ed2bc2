// SPDX-License-Identifier: GPL-2.0-or-later

import { defineConfig } from 'eslint/config';
import { configs } from 'typescript-eslint';

export default defineConfig({
    ignores: ['**/*.d.ts'],
    files: ['src/**/*.ts', 'src/**/*.tsx'],
    extends: [configs.recommendedTypeChecked],
    rules: { '@typescript-eslint/unbound-method': 'off' }, // uPlot's methods need no `this`
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
});
