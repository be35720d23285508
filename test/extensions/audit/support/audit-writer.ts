/** Records 200 intents in the folder that its argument names, one after another, and tells it. */
import { openTrail } from '../../../../src/extensions/audit/write/writing-trail.ts'
import { systemClock } from '../../../../src/base/kernel/clock.ts'

const COUNT = 200
const trail = openTrail(
  { folder: process.argv[2] ?? '', durability: 'disk', timeout: 10_000 },
  { clock: systemClock, bodyKey: 'key', recorder: { note: () => undefined } },
)
for (let count = 0; count < COUNT; count += 1)
  await trail.require({
    event: 'call.intended',
    outcome: 'pending',
    actor: { kind: 'user', subject: 'alice' },
  })
await trail.close()
console.log(`${COUNT} recorded`)
