import { join } from 'node:path'
import { ROOT } from './spawn-postern.ts'

/** Which configurations with secret values build on, alone or by another file. */
export const UPSTREAM_BASE = join(ROOT, 'config/upstream.yaml')

/** A configuration whose businesses have a secret value each, of the environment, which one operation sends. */
export const secretValues = (base: string, more: string): string =>
  [
    `extends: ${base}`,
    more,
    'directory:',
    '  businesses:',
    ...['ACME', 'GLOBEX', 'INITECH'].map(
      (code) => `    ${code}: { name: ${code}, funds: any, values: { db: db-${code}, key: { env: KEY } } }`,
    ),
    'actions:',
    '  - level: business',
    '    area: fund-data',
    '    action: fund-list',
    '    methods:',
    '      GET:',
    '        scopes: { any: [fund.read] }',
    `        upstream: { path: '/{business.db}', headers: { X-Key: '{business.key}' } }`,
  ].join('\n')
