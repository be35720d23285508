/** What a shared store remembers of the beginning of a trail (T5.17 C12.4.5). */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BEGINNING_KIND, placeOfTrail } from '../../../src/extensions/audit/format/beginning.ts'
import { needing } from '../../support/machine.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { placeOnPostgres } from './support/place-on-postgres.ts'

const ON_POSTGRES = { store: { kind: 'postgres' }, server: { listen: '127.0.0.1:0' } }

describe('T5.17 C12.4.5 the beginning of a trail', () => {
  it(
    'C12.4.5 is remembered by a store that nodes share, for the host; where that remembers nothing it is not anchored',
    needing('postgresql'),
    async () => {
      const upstream = await startUpstream()
      const node = await placeOnPostgres({ environment: { UPSTREAM_URL: upstream.url, POSTERN_PORT: '0' } })
      expect((await node.run('migrate')).code).toBe(0)
      const service = await node.serve()
      const ready = await fetch(`${service.adminUrl}/health/ready`)
      expect(await ready.text()).not.toContain('audit trail')
      expect(await node.run('audit verify')).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('it begins as the store remembers') as string,
      })
      const [value] = (await (await node.store()).list(BEGINNING_KIND)).map((entry) => entry.value)
      expect(value).toMatchObject(placeOfTrail(ON_POSTGRES, join(node.data, 'audit')))
      node.sql(`UPDATE SCHEMA.record SET value = '{}' WHERE kind = '${BEGINNING_KIND}'`)
      expect((await node.run('audit verify')).stdout).toContain('its beginning is not anchored')
    },
  )
})
