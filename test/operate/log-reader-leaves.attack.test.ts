import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { eventually } from '../support/eventually.ts'
import { seriesOf } from '../support/metrics.ts'
import { PROGRAM } from '../support/program.ts'
import { giveKey } from '../support/ready-key.ts'
import { DEMO, ROOT, withSettings } from '../support/spawn-postern.ts'

async function start() {
  const data = await dataFolder()
  await giveKey(data)
  // Neither its store nor its trail is looked at.
  const file = configFiles({
    'a.yaml': `extends: ${DEMO}\nstore: { kind: memory }\naudit: { enabled: false }\n`,
  })('a.yaml')
  const given = { POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0', POSTERN_DATA: data }
  const [args, env] = withSettings([[PROGRAM, 'serve', file], { ...process.env, ...given }])
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let told = ''
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()))
  while (!told.includes('admin-token')) await once(child.stderr, 'data')
  const url = /at (http:\/\/\S+)/.exec(told)?.[1] ?? ''
  const call = async (): Promise<void> => expect((await fetch(`${url}/api/1.0/b/A/b/c`)).status).toBe(401)
  const adminUrl = `http://127.0.0.1:${/admin listener: port (\d+)/.exec(told)?.[1] ?? ''}`
  return { child, call, adminUrl }
}

it('T5.11 C11.1 goes on serving, tells it, and ends when told, after whoever read its log and its errors has left', async () => {
  const { child, call, adminUrl } = await start()
  expect((await seriesOf({ adminUrl })).get('postern_log_writable')).toBe(1)
  child.stdout.destroy()
  child.stderr.destroy()
  // More lines than are held before they are written: the first writes fail while calls go on.
  for (let n = 0; n < 200; n++) await call()
  // The lines are written once a second.
  await eventually(async () => {
    const ready = await fetch(`${adminUrl}/health/ready`)
    const reason = 'it cannot be written (EPIPE: its reader has gone)'
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', failing: [], degraded: [{ name: 'log', reason }] },
    ])
  })
  expect((await seriesOf({ adminUrl })).get('postern_log_writable')).toBe(0)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

it('T5.11 goes on serving, and ends when told, while nobody reads its log', async () => {
  const { child, call } = await start()
  child.stdout.pause()
  // More than a pipe and this process hold: half a megabyte.
  for (let n = 0; n < 20; n++) await Promise.all(Array.from({ length: 50 }, call))
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})
