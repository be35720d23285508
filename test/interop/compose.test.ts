import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { HAPROXY, needing } from '../support/machine.ts'
import { sealKey } from '../support/seal-key.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { SETTINGS } from '../support/settings.ts'

const FILE = join(ROOT, 'deploy/nodes/haproxy.cfg')

interface Service {
  readonly image: string
  readonly network_mode?: string
  readonly environment?: Readonly<Record<string, string | number>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
}

/** The members of a service that deploy/compose.yaml uses, out of the Compose specification. */
const MEMBERS = [
  ...[
    'build',
    'cap_drop',
    'command',
    'depends_on',
    'entrypoint',
    'environment',
    'healthcheck',
    'image',
    'init',
  ],
  ...[
    'network_mode',
    'ports',
    'read_only',
    'restart',
    'security_opt',
    'stop_grace_period',
    'user',
    'volumes',
  ],
]

const compose = parse(readFileSync(join(ROOT, 'deploy/compose.yaml'), 'utf8'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
}
const nodes = Object.entries(compose.services).filter(([name]) => name.startsWith('node'))

describe('deploy/nodes', () => {
  it('is a configuration that can be served, without a warning', async () => {
    const environment = {
      POSTERN_STORE_URL: 'postgres://postern@127.0.0.1/postgres',
      POSTERN_ADMIN_TOKEN: 'a-token-of-the-tests-0123456789',
      POSTERN_SEAL: sealKey('first').key,
    }
    expect((await SETTINGS.check(join(ROOT, 'deploy/nodes/postern.yaml'), environment)).list).toEqual([])
  })

  it('has a balancer that HAProxy takes as it is, without a warning', needing('haproxy'), () => {
    const { status, stderr } = spawnSync(HAPROXY, ['-c', '-f', FILE], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })
})

describe('deploy/compose.yaml', () => {
  it('has only members that Compose knows, and files that are there', () => {
    for (const service of Object.values(compose.services)) {
      expect(Object.keys(service).filter((member) => !MEMBERS.includes(member))).toEqual([])
      const folders = (service.volumes ?? []).filter((volume) => volume.startsWith('./'))
      for (const folder of folders)
        expect(existsSync(join(ROOT, 'deploy', folder.split(':')[0] ?? ''))).toBe(true)
    }
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    for (const [, { image }] of nodes) expect(image).toBe(`postern:${version}`)
  })

  it('starts the nodes where the balancer looks for them', () => {
    const servers = [
      ...readFileSync(FILE, 'utf8').matchAll(/^ {2}server (\S+) 127\.0\.0\.1:(\d+) check port (\d+)$/gm),
    ]
    const started = nodes.map(([name, { environment }]) => [
      name,
      String(environment?.['POSTERN_PORT']),
      String(environment?.['POSTERN_ADMIN_PORT']),
    ])
    expect(servers.map(([, name, port, adminPort]) => [name, port, adminPort])).toEqual(started)
    expect(started).toHaveLength(3)
  })

  it('T7 publishes the balancer alone, on loopback, because everybody knows the secrets of the demo', () => {
    const published = Object.values(compose.services).flatMap(({ ports = [] }) => ports)
    expect(published).toEqual(['127.0.0.1:8080:8080'])
    for (const [, { network_mode }] of nodes) expect(network_mode).toBe('service:network')
  })
})
