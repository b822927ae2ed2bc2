// SPDX-License-Identifier: GPL-2.0-or-later

import { defineConfig } from 'eslint/config';
import { configs } from 'typescript-eslint';

export default defineConfig({
    ignores: ['**/*.d.ts'],
    files: ['src/**/*.ts', 'src/**/*.tsx'],
    extends: [configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
});
