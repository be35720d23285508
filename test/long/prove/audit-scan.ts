/**
 * `npm run prove audit-scan`: seconds that questions to a trail of 1,000,000 records take, with its size. `RECORDS` changes
 * the number; `KEEP` names a folder that is kept.
 */
import type { AuditQuery } from '../../../src/base/contracts/records/audit-query.ts'
import { mkdirSync, mkdtempSync, openSync, closeSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { queryTrail } from '../../../src/extensions/audit/read/read-trail.ts'
import { prepareRecord } from '../../../src/extensions/audit/format/record.ts'
import { chainHash, lineOf } from '../../extensions/audit/support/audit-chain.ts'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import { newRequestId } from '../../../src/base/kernel/ids.ts'

const RECORDS = Number(process.env['RECORDS'] ?? 1_000_000)
const WRITERS = 4
const DAYS = 31
const SEGMENT_BYTES = 64 * 1024 * 1024
const START = Date.UTC(2026, 2, 1)
const DAY = 86_400_000

/** Writes one writer's lines as a service does, a day and a segment after the other. */
class TrailOfOne {
  readonly #folder: string
  readonly #writer: string
  #lines = -1
  #personal = -1
  #day = ''
  #number = 0
  #hash = ''
  #bytes = Infinity
  #seq = 0
  #waiting: string[] = []
  #values: string[] = []
  written = 0

  constructor(folder: string, writer: string) {
    this.#folder = folder
    this.#writer = writer
  }

  write(entry: AuditEntry, time: number): number {
    const day = new Date(time).toISOString().slice(0, 10)
    if (day !== this.#day || this.#bytes > SEGMENT_BYTES) this.#roll(day)
    const { members, personal } = prepareRecord(entry, time)
    const seq = ++this.#seq
    const text = `{"v":1,"writer":"${this.#writer}","seq":${seq},${members}`
    this.#hash = chainHash(this.#hash, text)
    const line = lineOf(text, this.#hash)
    this.#waiting.push(line)
    this.#values.push(...personal.map((value) => `{"seq":${seq},${value}\n`))
    this.#bytes += line.length
    this.written += line.length
    if (this.#waiting.length > 2000) this.#flush()
    return this.#seq
  }

  close(): void {
    this.#flush()
    for (const file of [this.#lines, this.#personal]) if (file >= 0) closeSync(file)
  }

  #roll(day: string): void {
    this.close()
    this.#day = day
    this.#bytes = 0
    mkdirSync(join(this.#folder, day), { recursive: true })
    const name = join(this.#folder, day, `${this.#writer}.${++this.#number}`)
    this.#lines = openSync(`${name}.jsonl`, 'ax')
    this.#personal = openSync(`${name}.personal.jsonl`, 'ax')
  }

  #flush(): void {
    if (this.#lines < 0) return
    writeSync(this.#lines, this.#waiting.join(''))
    writeSync(this.#personal, this.#values.join(''))
    this.#waiting = []
    this.#values = []
  }
}

function call(trail: TrailOfOne, number: number, time: number): void {
  const requestId = newRequestId()
  const actor = {
    kind: 'user',
    subject: `subject-${number % 1000}`,
    client: `client-${number % 50}`,
  } as const
  const on = {
    ...{ business: `B${number % 20}`, fund: `SUPER${number % 500}`, area: 'member-data' },
    ...{ action: 'member-detail', method: 'POST' },
  }
  const grant = { scope: 'fund.member.maintain', target: `B${number % 20}` }
  const personal = { 'actor.address': `192.0.2.${number % 250}`, 'on.params.memberId': requestId }
  const common = { requestId, traceId: newRequestId(), actor, on } as const
  const intent = trail.write(
    {
      event: 'call.intended',
      outcome: 'pending',
      ...common,
      grant,
      personal,
      call: { version: 1, type: 'application/json', bytes: 120, body: requestId },
    },
    time,
  )
  if (number % 10_000 === 7) return
  const outcome = { status: 200, upstreamStatus: 200, ms: 12 }
  trail.write({ event: 'call.settled', outcome: 'success', ...common, intent, call: outcome }, time + 12)
}

function writeTrail(folder: string): number {
  const trails = Array.from({ length: WRITERS }, (_, at) => new TrailOfOne(folder, `20260301T000000Z-${at}`))
  const calls = RECORDS / 2
  for (let number = 0; number < calls; number++) {
    const trail = trails[number % WRITERS]
    if (trail) call(trail, number, START + Math.floor((number / calls) * DAYS * DAY))
  }
  for (const trail of trails) trail.close()
  return trails.reduce((sum, { written }) => sum + written, 0)
}

const QUESTIONS: Readonly<Record<string, AuditQuery>> = {
  'one fund, changed (the opening question)': { business: 'B1', fund: 'SUPER1', changed: true },
  'one request, each record': { request: 'f'.repeat(32), singly: true },
  'one user': { user: 'subject-17' },
  'open intents': { outcome: 'open' },
  'all changes, as rows': { changed: true },
  'every record by itself': { singly: true },
}

const folder = process.env['KEEP'] ?? mkdtempSync(join(tmpdir(), 'postern-audit-scan-'))
const bytes = writeTrail(folder)
console.log(`${RECORDS} records, ${Math.round(bytes / 1024 ** 2)} MiB, ${WRITERS} writers, ${DAYS} days`)
for (const [title, query] of Object.entries(QUESTIONS)) {
  const start = performance.now()
  const cpu = process.cpuUsage()
  let rows = 0
  for await (const step of queryTrail({ folders: [folder], query }))
    if (step.kind === 'rows') rows += step.lines.length
  const seconds = ((performance.now() - start) / 1000).toFixed(2)
  const { user, system } = process.cpuUsage(cpu)
  const used = ((user + system) / 1_000_000).toFixed(2)
  console.log(
    `${title.padEnd(42)} ${seconds.padStart(7)} s ${used.padStart(7)} s CPU ${String(rows).padStart(9)} rows`,
  )
}
if (process.env['KEEP'] === undefined) rmSync(folder, { recursive: true })
