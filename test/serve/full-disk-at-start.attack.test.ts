import { describe, expect, it, onTestFinished } from 'vitest'
import { findService } from '../../src/operate/trail/announcement.ts'
import { configFiles } from '../support/config-files.ts'
import { eventually } from '../support/eventually.ts'
import { needing } from '../support/machine.ts'
import { giveKey } from '../support/ready-key.ts'
import { smallDisk } from '../support/small-disk.ts'
import { spawnPostern } from '../support/spawn-postern.ts'
import { UPSTREAM_WORLD } from '../support/worker-pool.ts'

/** T5.21: a disk that is full before the last worker is up. */

const WORKERS = 3

/** The second worker ends before it serves, and the third one fills the disk. Those that replace them do not. */
const fillBeforeLastWorkers = (folder: string): string => `
import cluster from 'node:cluster'
import { statfsSync, writeFileSync } from 'node:fs'
if (cluster.worker?.id === 2) process.exit(1)
if (cluster.worker?.id === 3) {
  const { bavail, bsize } = statfsSync('${folder}')
  writeFileSync('${folder}/ballast', Buffer.alloc(bavail * bsize), { flag: 'a' })
}`

describe('T5.21 a disk that fills while a service starts', () => {
  it(
    'T5.21 does not end it once a worker serves: it serves on, degraded, and recovers',
    needing('a small disk'),
    async () => {
      const disk = await smallDisk()
      await giveKey(disk.folder)
      const config = configFiles({
        'fill.mjs': fillBeforeLastWorkers(disk.folder),
        'postern.yaml': `extends: ${UPSTREAM_WORLD}\nworkers: ${WORKERS}\n`,
      })
      const postern = await spawnPostern({
        config: config('postern.yaml'),
        environment: { POSTERN_DATA: disk.folder },
        node: ['--import', config('fill.mjs')],
      })
      onTestFinished(async () => {
        await postern.stop()
      })
      const count = (event: string): number => postern.output().split(`"event":"${event}"`).length - 1
      const ready = async (): Promise<string> => (await fetch(`${postern.adminUrl}/health/ready`)).text()
      expect((await fetch(`${postern.authUrl}/.well-known/jwks.json`)).status).toBe(200)
      await eventually(async () => expect(await ready()).toContain('disk is full'))
      disk.empty()
      await eventually(async () => {
        expect(count('worker_started')).toBe(WORKERS)
        expect(await ready()).not.toContain('disk is full')
        expect(findService({ data: disk.folder })?.adminUrl).toBe(postern.adminUrl)
      })
      expect(count('worker_not_started')).toBe(1)
    },
  )
})
