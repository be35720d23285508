import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Configuration, readConfiguration } from '../../src/settings/configuration.ts'

const UPSTREAM = fileURLToPath(new URL('../../config/upstream.yaml', import.meta.url))

/**
 * Reads actions of the area fund-data that are written as YAML: the sections of their methods, by name.
 * @param more keys of the configuration, as YAML
 */
export function readActions(
  operations: Readonly<Record<string, string>>,
  more = '',
): ReturnType<typeof readConfiguration> {
  const actions = Object.entries(operations).map(
    ([action, methods]) =>
      `  - { level: business, area: fund-data, action: '${action}', methods: ${methods.trim().replaceAll('\n', '\n    ')} }`,
  )
  const folder = mkdtempSync(join(tmpdir(), 'postern-actions-'))
  const file = join(folder, 'actions.yaml')
  try {
    writeFileSync(file, `extends: ${UPSTREAM}\n${more}\nactions:\n${actions.join('\n')}\n`)
    return readConfiguration(file, { UPSTREAM_URL: 'http://127.0.0.1:1', POSTERN_DATA: '/nowhere' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** For `change` of `postern`: the actions stand beside those of the file. */
export const withActions =
  (operations: Readonly<Record<string, string>>, change = (loaded: Configuration): Configuration => loaded) =>
  (loaded: Configuration): Configuration => {
    const { configuration, problems } = readActions(operations)
    if (configuration === undefined) throw new Error(JSON.stringify(problems.list, null, 2))
    return change({ ...loaded, actions: [...loaded.actions, ...configuration.actions] })
  }
