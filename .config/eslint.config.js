import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'
import { NO_UNUSED_RESULTS } from './unused-results.ts'

export default defineConfig(
  { ignores: ['node_modules', 'dist', 'data'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: new URL('..', import.meta.url).pathname },
    },
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      eqeqeq: 'error',
      'no-restricted-syntax': NO_UNUSED_RESULTS,
    },
  },
  {
    // Node makes these globals getters. Each use costs a lookup, and a call has a dozen: an import has none.
    files: ['src/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        ...NO_UNUSED_RESULTS,
        {
          selector: 'ObjectExpression > SpreadElement > ObjectExpression.argument',
          message: 'Write the members by themselves, without `...{ }` around them.',
        },
      ],
      'no-restricted-globals': [
        'error',
        { name: 'Buffer', message: "Import it from 'node:buffer'." },
        { name: 'performance', message: "Import it from 'node:perf_hooks'." },
        { name: 'setImmediate', message: "Import it from 'node:timers'." },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      'no-restricted-properties': [
        'error',
        {
          object: 'vi',
          property: 'waitFor',
          message: 'It gives up after a second: use eventually (test/support/eventually.ts).',
        },
      ],
    },
  },
  {
    // Tests with programs of others start processes, and nobody can inject their clocks.
    files: ['test/**/*.test.ts'],
    ignores: ['test/interop/**', 'test/**/*.interop.test.ts'],
    rules: {
      'no-restricted-syntax': [
        ...NO_UNUSED_RESULTS,
        {
          selector:
            'CallExpression[callee.name="expect"] > BinaryExpression[operator="-"] > CallExpression[callee.object.name=/^(?:performance|Date)$/][callee.property.name="now"]',
          message:
            'A machine may be slow: inject the clock and its timers (test/support/movable-clock.ts), and move them.',
        },
      ],
    },
  },
  { files: ['test/support/eventually.ts'], rules: { 'no-restricted-properties': 'off' } },
  // Scripts of pages, which a browser runs, programs of packages that are installed elsewhere, and those that the
  // machine's own Node runs have no types.
  {
    files: [
      '.ci/*.js',
      '.config/*.{js,cjs}',
      'src/identity/pages/*.js',
      'src/extensions/*/*.js',
      'test/support/clients/*.mjs',
    ],
    extends: [tseslint.configs.disableTypeChecked],
  },
  { files: ['.config/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
)
