/**
 * A service under load that is killed with all its processes, again and again, with one worker and with four: of what it
 * answered (changes, administrative acts), what has no record in its trail? `node test/long/prove/audit-kills.ts [TIMES]`
 */
import { killUnderLoad } from '../../extensions/audit/support/killed-service.ts'

const times = Number(process.argv[2] ?? 100)
let lost = 0
for (const workers of [1, 4]) {
  const sums = { killed: 0, answered: 0, open: 0, missing: 0 }
  for (let time = 0; time < times; time += 1) {
    const answers = 20 + Math.floor(Math.random() * 400)
    const { answered, open, ...missing } = await killUnderLoad({ workers, callers: 16, answers })
    const count = Object.values(missing).flat().length
    if (count > 0) console.log(missing)
    sums.killed += 1
    sums.answered += answered
    sums.open += open
    sums.missing += count
  }
  console.log(`${workers} worker(s):`, sums)
  lost += sums.missing
}
process.exitCode = lost === 0 ? 0 : 1
