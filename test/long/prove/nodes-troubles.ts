/**
 * What callers of two nodes notice while their Postgres is frozen, killed, read-only, slow, failed over or out of reach:
 * data calls, refreshes, and how soon all is well. 1 where a data call failed, or a client was logged out.
 *
 *     npm run prove nodes-troubles -- --seconds 30 [--only frozen]
 */
import { parseArgs } from 'node:util'
import { statusesOf, timeOf } from '../../extensions/postgres/support/callers.ts'
import {
  startWorld,
  suffer,
  TROUBLES,
  type Trouble,
} from '../../extensions/postgres/support/node-troubles.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '30' }, only: { type: 'string' } },
})
const ms = Number(values.seconds) * 1000
const whole = (time: number): string => `${time.toFixed(0)} ms`

/** Whether all is as it should be. */
async function prove(name: string, trouble: Trouble): Promise<boolean> {
  const world = await startWorld({ standby: trouble.withStandby === true })
  try {
    const { before, data, refreshed, elsewhere, backAfter } = await suffer(world, trouble, ms)
    const statuses = statusesOf(data)
    const told = statusesOf([...refreshed, ...elsewhere])
    const isWell = Object.keys(statuses).join() === '200' && !('400' in told) && backAfter < Infinity
    console.log(`${isWell ? 'well  ' : 'FAILED'} ${name}`)
    console.log(
      '  data calls',
      statuses,
      `p99 ${whole(timeOf(data, 0.99))} (before ${whole(timeOf(before, 0.99))}),`,
    )
    console.log(
      `  longest ${whole(timeOf(data, 1))}; refreshes`,
      told,
      `longest ${whole(timeOf(refreshed, 1))},`,
    )
    console.log(`  well again after ${whole(backAfter)}`)
    return isWell
  } finally {
    await world.close()
  }
}

const chosen = Object.entries(TROUBLES).filter(([name]) => name.startsWith(values.only ?? ''))
for (const [name, trouble] of chosen) if (!(await prove(name, trouble))) process.exitCode = 1
