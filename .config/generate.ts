/**
 * Writes the files that are generated from the code: the schema for editors, the reference of the configuration, tables
 * in other pages, the dashboard, the binary that checks JSON. With `--check` it writes nothing, and fails if a file would change.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { format, resolveConfig } from 'prettier'
import { OVERRIDES } from '../src/operate/settings/configuration.ts'
import { SETTINGS } from '../src/serve/start/settings.ts'
import { expectationsSchema } from '../src/operate/settings/expectations.ts'
import { auditEventTable } from './audit-event-table.ts'
import { dashboardJson } from './dashboard/dashboard.ts'
import { decisionTable } from './decision-table.ts'
import { faultTable } from './fault-table.ts'
import { jsonCheckModule } from './json-check-module.ts'
import { publishedSchema } from './published-schema.ts'
import { referencePage } from './reference.ts'

interface Generated {
  /** The path from the top of the repository. */
  readonly file: string
  /** Makes the new text of the file; `now` is the old one. */
  readonly render: (now: string) => string
}

/** Replaces the text between `<!-- generated: NAME -->` and `<!-- end -->`. Throws if there is no such place. */
function between(now: string, name: string, text: string): string {
  const start = `<!-- generated: ${name} -->`
  const from = now.indexOf(start)
  const to = now.indexOf('<!-- end -->', from)
  if (from < 0 || to < 0) throw new Error(`no place for "${name}"`)
  return `${now.slice(0, from + start.length)}\n\n${text}\n\n${now.slice(to)}`
}

const environmentTable = (): string =>
  [
    '| Variable | Expects | What it sets |',
    '|---|---|---|',
    ...Object.entries(OVERRIDES).map(
      ([name, row]) => `| \`${name}\` | ${row.expected} | ${row.description} |`,
    ),
  ].join('\n')

/** The page is missing where its extension was deleted. */
const AUDIT_PAGE = 'src/extensions/audit/protocol.md'

const GENERATED: readonly Generated[] = [
  {
    file: 'config/schema.json',
    render: () => JSON.stringify(publishedSchema(SETTINGS.schema, 'Configuration of Postern')),
  },
  {
    file: 'config/access.schema.json',
    render: () => JSON.stringify(publishedSchema(expectationsSchema, 'Who may call what, as expected')),
  },
  { file: 'deploy/grafana/postern.json', render: dashboardJson },
  {
    file: 'src/base/http/body/json-check.wasm.ts',
    render: () => jsonCheckModule(read('src/base/http/body/json-check.wat')),
  },
  { file: 'config/reference.md', render: () => referencePage(SETTINGS.schema) },
  { file: 'config/running.md', render: (now) => between(now, 'environment', environmentTable()) },
  {
    file: AUDIT_PAGE,
    render: (now) => between(now, 'audit events', auditEventTable()),
  },
  {
    file: 'src/README.md',
    render: (now) => between(between(now, 'decision', decisionTable()), 'faults', faultTable()),
  },
]

const checking = process.argv.includes('--check')
const at = (file: string): URL => new URL(`../${file}`, import.meta.url)
const style = await resolveConfig('package.json', { config: at('.config/prettier.json').pathname })

function read(file: string): string {
  try {
    return readFileSync(at(file), 'utf8')
  } catch {
    return ''
  }
}

for (const { file, render } of GENERATED) {
  if (file === AUDIT_PAGE && !existsSync(at(file))) continue
  const now = read(file)
  const next = await format(render(now), { ...style, filepath: file })
  if (next === now) continue
  process.exitCode = checking ? 1 : 0
  process.stdout.write(checking ? `${file} is out of date: npm run generate\n` : `${file}: written\n`)
  if (!checking) writeFileSync(at(file), next)
}
