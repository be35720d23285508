import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import { dataFolder } from '../support/data-folder.ts'
import { startLogoutReceiver } from '../support/logout-receiver.ts'
import { PROGRAM } from '../support/program.ts'
import { DEMO, ROOT } from '../support/spawn-postern.ts'
import { logInThroughLedgerline, toldAt } from '../support/told-client.ts'

/** The real service in a process of its own. */
async function serve(
  config: string,
  data: string,
): Promise<{ readonly authUrl: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [join(ROOT, PROGRAM), 'serve', config], {
    env: { PATH: process.env['PATH'], POSTERN_DATA: data, POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  for (;;) {
    const authUrl = /at (http:\/\/\S+)/.exec(log)?.[1]
    if (authUrl !== undefined) return { authUrl, child }
    await once(child.stderr, 'data')
  }
}

describe('T5.7 a service killed while it tells clients that a login has ended', () => {
  it.each([503, 'silence'] as const)(
    'C6.3.3a loses no notice: receiver %s before the death',
    async (answer) => {
      const data = await dataFolder()
      const receiver = await startLogoutReceiver(answer)
      const config = join(data, 'told.yaml')
      await writeFile(config, `extends: ${DEMO}\n${toldAt(receiver.url)}\n`)
      const before = await serve(config, data)
      const { idToken, logOut } = await logInThroughLedgerline(before)
      await logOut()
      await receiver.got(1)
      before.child.kill('SIGKILL')
      await once(before.child, 'exit')
      receiver.answer = 200
      await serve(config, data)
      await receiver.got(2)
      const [first, second] = receiver.notices.map(({ claims }) => claims)
      expect(second).toMatchObject({ sub: first.sub, aud: 'ledgerline', sid: decodeJwt(idToken)['sid'] })
      expect(second.jti).not.toBe(first.jti)
    },
  )
})
