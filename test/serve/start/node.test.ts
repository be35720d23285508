import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { digestForNodes } from '../../../src/serve/start/node.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'
import { withAudit } from '../../support/with-audit.ts'

const demo = SETTINGS.read(
  fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url)),
  {},
).configuration!

describe('C11.7.8 the digest of a configuration', () => {
  const { server, admin } = demo
  const digestWith = (more: Partial<Configuration>): string => digestForNodes({ ...demo, ...more })
  const own = (name: string): Partial<Configuration> => {
    const changed = {
      ...demo,
      data: `/data/${name}`,
      server: { ...server, listen: `${name}:8080` },
      admin: { ...admin, listen: `${name}:9090`, probes: `${name}:9091` },
    }
    return withAudit(changed, { folder: `/audit/${name}`, anchors: [{ file: `/anchors/${name}` }] })
  }

  it('C11.7.8 is one on nodes with addresses, folders and files of their own', () => {
    expect(digestWith(own('one'))).toBe(digestWith(own('other')))
  })

  it.each<[string, Partial<Configuration>]>([
    ['the vendor', { vendor: 'other' }],
    ['how long the trail is kept', withAudit(demo, { retention: 'none' })],
    ['where the trail is anchored', withAudit(demo, { anchors: [] })],
  ])('C11.7.8 is another one where they differ in %s', (_what, more) => {
    expect(digestWith(more)).not.toBe(digestWith({}))
  })
})
