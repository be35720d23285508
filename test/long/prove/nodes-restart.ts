/**
 * How many of 10,000 calls (`-- 10000`) fail while three nodes behind HAProxy are restarted one after another, again and
 * again; 1 if one does.
 */
import { restartInTurn } from '../../extensions/postgres/support/balanced-nodes.ts'

const { statuses, restarts } = await restartInTurn(Number(process.argv[2] ?? 10_000))
console.log('answers by status', statuses, `${restarts} nodes restarted`)
process.exitCode = Object.keys(statuses).join() === '200' ? 0 : 1
