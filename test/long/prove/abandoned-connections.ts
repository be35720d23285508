/**
 * `node test/long/prove/abandoned-connections.ts [10000]`: what so many connections leave behind that were opened, in every
 * state of a call, and left (T5.3): descriptors are waited for, and the heap is weighed after two such rounds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { abandonConnections } from '../../support/abandoned.ts'

const many = Number(process.argv[2] ?? 10_000)
const folder = mkdtempSync(join(tmpdir(), 'postern-abandoned-'))
const { most, added } = await abandonConnections(many, folder)
rmSync(folder, { recursive: true })
console.log(
  `${many} connections, twice: ${most} descriptors at most; the second round added ${(added / 1024).toFixed(0)} KiB`,
)
