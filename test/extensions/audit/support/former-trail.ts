/** A trail as Postern 0.2 has left it: a chain for each process, and a manifest of version 1 (C12.4.8). */
import { hash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AuditKeys, openAuditKeys } from '../../../../src/extensions/audit/format/keys.ts'
import { chainHash, lineOf } from './audit-chain.ts'

interface Head {
  readonly writer: string
  readonly seq: number
  readonly hash: string
}

interface FormerLine {
  readonly n: number
  readonly time: string
  readonly hash: string
  /** Whole, with its end. */
  readonly text: string
}

export interface FormerTrail {
  readonly first: FormerLine
  readonly last: FormerLine
}

function lineBehind(
  last: FormerLine | undefined,
  {
    time,
    ...more
  }: { readonly time: string; readonly heads: readonly Head[]; readonly announced: unknown[] },
  { sign }: AuditKeys,
): FormerLine {
  const n = (last?.n ?? 0) + 1
  const members = JSON.stringify({ v: 1, n, time, ...more, before: last?.hash ?? '' })
  const own = hash('sha256', members, 'base64url')
  return {
    ...{ n, time, hash: own },
    text: `${members.slice(0, -1)},"hash":"${own}","signature":"${sign(own)}"}\n`,
  }
}

/** One writer of a day: an intent of `ann` with a personal value, and the end. Returns the head. */
function writeSegment(folder: string, day: string, writer: string): Head {
  const time = `${day}T12:00:00.000Z`
  const bodies = [
    `"event":"writer.opened","outcome":"success","actor":{"kind":"service"},"change":{"announced":{"line":1}}`,
    `"event":"call.intended","outcome":"pending","requestId":"of ${writer}","actor":{"kind":"user","subject":"ann"}`,
    `"event":"writer.closed","outcome":"success","actor":{"kind":"service"}`,
  ]
  let before = ''
  const lines = bodies.map((body, index) => {
    const text = `{"v":1,"writer":"${writer}","seq":${index + 1},"time":"${time}",${body}}`
    before = chainHash(before, text)
    return lineOf(text, before)
  })
  mkdirSync(join(folder, day), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, day, `${writer}.1.jsonl`), lines.join(''))
  writeFileSync(join(folder, day, `${writer}.1.personal.jsonl`), '')
  return { writer, seq: lines.length, hash: before }
}

/** Writes such a trail, of two processes on each of the days, with all that it may have beside. */
export async function writeFormerTrail(
  folder: string,
  days: readonly string[] = ['2026-01-10', '2026-01-12'],
): Promise<FormerTrail> {
  const keys = await openAuditKeys(folder)
  const heads: Head[] = []
  let last = lineBehind(undefined, { time: `${days[0] ?? ''}T11:59:00.000Z`, heads, announced: [] }, keys)
  const lines = [last]
  for (const day of days)
    for (const process of ['one', 'two']) {
      heads.push(writeSegment(folder, day, `${day.replaceAll('-', '')}T120000Z-${process}`))
      last = lineBehind(last, { time: `${day}T12:00:01.000Z`, heads, announced: [] }, keys)
      lines.push(last)
    }
  writeFileSync(join(folder, 'manifest.jsonl'), lines.map(({ text }) => text).join(''))
  writeFileSync(join(folder, 'manifest-key.pem'), keys.publicPem)
  writeFileSync(join(folder, 'abandoned.json'), '{"v":1}\n')
  mkdirSync(join(folder, 'announced'), { mode: 0o700 })
  writeFileSync(join(folder, 'announced', '20260112T120000Z-left.json'), '{}\n')
  return { first: lines[0] ?? last, last }
}
