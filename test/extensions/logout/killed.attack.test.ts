import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/kernel/clock.ts'
import { logInThrough } from '../../support/audited-people.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { startLogoutReceiver } from './logout-receiver.ts'
import { DEMO, spawnPostern } from '../../support/spawn-postern.ts'
import { postern } from '../../support/start-postern.ts'
import { toldAt } from './told-client.ts'

/** What the process that died was sending is sent by another one when fifteen seconds have passed. */
const LATER: Clock = { ...systemClock, now: () => systemClock.now() + 16_000 }

describe('T5.7 a service killed while it tells clients that a login has ended', () => {
  it.each([503, 'silence'] as const)(
    'C6.3.3a loses no notice: receiver %s before the death',
    async (answer) => {
      const data = await dataFolder()
      const receiver = await startLogoutReceiver(answer)
      const config = join(data, 'told.yaml')
      await writeFile(config, `extends: ${DEMO}\n${toldAt(receiver.url)}\n`)
      // The real service in a process of its own.
      const before = await spawnPostern({ config, environment: { POSTERN_DATA: data } })
      onTestFinished(async () => {
        await before.stop()
      })
      const { idToken, logOut } = await logInThrough(before)
      await logOut()
      await receiver.got(1)
      process.kill(before.pid, 'SIGKILL')
      await before.stop()
      receiver.answer = 200
      await postern({ file: config, data, clock: LATER, keeps: 'store' })
      await receiver.got(2)
      const [first, second] = receiver.notices.map(({ claims }) => claims)
      expect(second).toMatchObject({ sub: first.sub, aud: 'ledgerline', sid: decodeJwt(idToken)['sid'] })
      expect(second.jti).not.toBe(first.jti)
    },
  )
})
