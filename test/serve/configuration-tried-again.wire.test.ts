/** A configuration that is refused for something that passes is tried again by itself (C11.5.4). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sqliteFile } from '../../src/state/stores/schema.ts'
import { configFiles } from '../support/config-files.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'
import { startStoreProcess } from '../support/store-process.ts'

it(
  'C11.5.4 a file that came while the store could not be written is in force once it can; status, log and metric told why',
  { timeout: 60_000 },
  async () => {
    const text = (more: string): string =>
      `extends: ${DEMO}\nstore: { kind: sqlite, deadline: 400ms }\ndirectory: { users: { alice: { disabled: ${more} } } }\n`
    const file = configFiles({ 'a.yaml': text('false') })('a.yaml')
    const service = await postern({ file })
    const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
    const ask = (path: string): Promise<Response> =>
      fetch(`${service.adminUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })
    const refused = async () => ((await (await ask('/status')).json()) as Standing).configuration.refused
    const causes = async (): Promise<readonly string[]> =>
      [
        ...(await (await ask('/metrics')).text()).matchAll(
          /^postern_configuration_refused\{cause="(\w+)"\} 1$/gm,
        ),
      ].map(([, cause = '']) => cause)

    const holder = startStoreProcess('hold', sqliteFile(service.data))
    await holder.line('held')
    writeFileSync(file, text('true'))
    await expect.poll(refused).toMatchObject({
      ...{ via: 'file change', cause: 'store' },
      problems: [expect.stringContaining('the store is out of reach')],
    })
    expect(await causes()).toEqual(['store'])
    expect(service.log()).toContainEqual(
      expect.objectContaining({ event: 'configuration_refused', cause: 'store' }),
    )

    holder.process.stdin?.write('release\n')
    await holder.line('released')
    await expect.poll(refused, { timeout: 40_000, interval: 200 }).toBeUndefined()
    expect(await causes()).toEqual([])
    const shown = (await (await ask('/configuration')).json()) as Shown
    expect(shown.directory.users['alice']?.disabled).toBe(true)

    writeFileSync(file, text('perhaps'))
    await expect.poll(refused).toMatchObject({ via: 'file change' })
    expect(await refused()).not.toHaveProperty('cause')
    expect(await causes()).toEqual(['file'])
  },
)

interface Standing {
  readonly configuration: { readonly refused?: { readonly cause?: string } }
}

interface Shown {
  readonly directory: { readonly users: Readonly<Record<string, { readonly disabled: boolean }>> }
}
