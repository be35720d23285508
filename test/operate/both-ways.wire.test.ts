/** Operations that a running service carries out, or the command itself where none runs (operate/README.md). */
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { FolderKeys } from '../../src/identity/keys/signing/folder-keys.ts'
import { RECORD_KINDS } from '../../src/identity/directory/editors/editors.ts'
import { adminRoutes } from '../../src/operate/openapi.ts'
import type { AdminOperation } from '../../src/operate/operation/operation.ts'
import { administered, type Answered } from '../support/administered.ts'
import { auditRecords, type WrittenRecord } from '../support/audit-files.ts'
import { type Ended, runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { operated } from '../support/operated.ts'
import { EMAIL, FURTHER } from '../support/further-rows.ts'
import { type Row, ROWS } from '../support/operation-rows.ts'
import { giveKey } from '../support/ready-key.ts'
import { expectEnded, expectServed, holderOf, holdersOf, named } from '../support/row-holders.ts'
import { shellWords } from '../support/shell-words.ts'
import { type AdminChange, expectDone, type Holder } from '../support/shrinking-rights.ts'
import { ROOT, WITHOUT_WAITS } from '../support/spawn-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { addedOperations } from '../../src/serve/start/settings.ts'

const EVERY: readonly Row[] = [...ROWS, ...FURTHER]

const SHARED = adminRoutes('0.0.0', RECORD_KINDS, await addedOperations()).filter(
  ({ runs }) => runs === 'service or here',
)
const operationOf = ({ id }: Row): AdminOperation => {
  const found = SHARED.find(({ operationId }) => operationId === id)
  if (found === undefined) throw new Error(`there is no operation ${id}`)
  return found
}

/** Texts that nobody may read in an answer, or in what a command prints. */
const NEVER_SHOWN = /sha256:|argon2|-long-enough-/

/** Names in the rows that end nothing: in commands, and by the admin API. */
const TYPED = 'typed'
const WIRED = 'wired'

/** Changes in two workers, each of what no other of them is about. */
const AT_ONCE = 6

/** What differs from run to run: secrets that are drawn, times, ports, folders, numbers of files and tokens; and who has acted, from where. */
const steady = (text: string): string =>
  text
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/(?<="\w+(?:At|From)": )\d+/g, 'TIME')
    .replaceAll(/(?<![\w-])[\w-]{43}(?![\w-])/g, 'SECRET')
    .replaceAll(/(?<=http:\/\/127\.0\.0\.1:)\d+(?=\/connect\/link)/g, 'PORT')
    .replaceAll(/the folder \S+keys/g, 'the folder of the keys')
    .replaceAll(/\d+( personal values of \S+ erased, in) .*/g, 'MANY$1 FILES')
    .replaceAll(/(?<="(?:files|values)":)\d+/g, 'MANY')
    .replaceAll(/\d+(?= families of refresh tokens will end)/g, 'MANY')
    .replaceAll(/"operator":"[^"]+"/g, '"operator":"NAME"')
    .replaceAll(/operator \S+ (\(says: .*?\))(?: from 127\.0\.0\.1)?/g, 'operator NAME $1')
    .replaceAll(/ +/g, ' ')

/** The part of a record that is the same both ways. What has come over the wire has an address, and another operator. */
function partOf({ event, on, change, outcome, why, values: all, actor }: WrittenRecord): unknown {
  const { operator, ...from } = actor as Readonly<Record<string, unknown>>
  const values = { ...all, 'actor.address': undefined }
  return {
    event,
    on,
    change: steady(JSON.stringify(change ?? {})),
    outcome,
    why,
    values,
    from,
    isNamed: typeof operator === 'string',
  }
}

interface Done extends Ended {
  readonly records: readonly WrittenRecord[]
}

const outcomesOf = (records: readonly WrittenRecord[]): readonly string[] =>
  records.map(({ event, outcome }) => `${event} ${String(outcome)}`)

/** A data folder with keys, its upstream, and services on it, one after another. */
async function place() {
  const data = await dataFolder()
  await giveKey(data)
  // A service makes the other one at its start.
  await new FolderKeys(join(data, 'keys')).create({ algorithm: 'ES256', generation: 1 }, systemClock)
  const upstream = await startUpstream(answerJson({ Data: [] }))
  const text = `extends: ${ROOT}config/upstream.yaml\n${WITHOUT_WAITS}\n`
  const file = configFiles({ 'a.yaml': text })('a.yaml')
  const seen = new Set<string>()
  /** The records of commands since it was last asked. */
  const records = (world?: Parameters<typeof auditRecords>[0]['world']): readonly WrittenRecord[] => {
    const fresh = auditRecords({ data, ...(world && { world }) }).filter(
      ({ writer, seq, actor }) =>
        (actor as { via?: string } | undefined)?.via === 'cli' && !seen.has(JSON.stringify([writer, seq])),
    )
    for (const { writer, seq } of fresh) seen.add(JSON.stringify([writer, seq]))
    return fresh
  }
  const env = { POSTERN_DATA: data, POSTERN_CONFIG: file }
  return {
    ...{ data, upstream, records },
    run: ({ line, input = '' }: Pick<Row, 'line' | 'input'>) =>
      runVerb(shellWords(line), { env, input, alone: true }),
    /** At the same port again: tokens name it. */
    serve: async (port = 0) => {
      const environment = { UPSTREAM_URL: upstream.url, POSTERN_PORT: String(port) }
      const here = await administered({ file, data, environment })
      const admin = async (...[method, path, body]: AdminChange) => {
        const sent = body === undefined ? {} : { body }
        return here.call(method, path, sent)
      }
      return { ...here, holding: { ...here.service, admin } }
    },
  }
}

type Place = Awaited<ReturnType<typeof place>>
type Serving = Awaited<ReturnType<Place['serve']>>

/** Each member of a record is as the row says; other members are what it says, or have it. */
function expectMembers(found: Readonly<Record<string, unknown>>, wanted: object, line: string): void {
  const { record = {}, changed, ...others } = wanted as Readonly<Record<string, unknown>>
  expect(found, line).toMatchObject(others)
  if (changed !== undefined)
    expect([line, (found['changed'] as string[]).toSorted()]).toEqual([
      line,
      (changed as string[]).toSorted(),
    ])
  const shown = found['record'] as Readonly<Record<string, unknown>> | undefined
  for (const [name, value] of Object.entries(record as object))
    expect([line, name, shown?.[name]]).toEqual([line, name, value])
}

/** Of what a command printed. */
function expectOutput({ line, code, output }: Row, { stdout, stderr }: Ended): void {
  expect(stdout + stderr).not.toMatch(NEVER_SHOWN)
  const text = code === undefined ? stdout : stderr
  if (output instanceof RegExp) expect(text, line).toMatch(output)
  else if (typeof output === 'object')
    expectMembers(JSON.parse(text) as Record<string, unknown>, output, line)
  else if (code === undefined) expect([line, text]).toEqual([line, output])
  else expect(text, line).toContain(output)
}

/** Types every row. `around` is given each, with its name, and what types it. */
async function typeAll(
  { run, records, data }: Place,
  rows: readonly Row[],
  holders: ReadonlyMap<Row, Holder>,
  {
    world,
    around,
  }: {
    readonly world?: Serving['service']['world']
    readonly around?: (row: Row, holder: Holder | undefined, act: () => Promise<void>) => Promise<void>
  } = {},
): Promise<ReadonlyMap<Row, Done>> {
  const done = new Map<Row, Done>()
  for (const row of rows) {
    const holder = holderOf(row, EVERY, holders)
    const { line, input, code = 0, records: outcomes = [], recorded = {} } = row
    const name = holder?.name ?? TYPED
    const act = async (): Promise<void> => {
      const ended = await run(named({ line, input: input ?? '' }, name))
      const kept = { ...ended, records: records(world) }
      done.set(row, kept)
      expect([line, ended.code, ended.stderr, outcomesOf(kept.records)]).toEqual([
        ...[line, code, ended.stderr, outcomes],
      ])
      expectOutput(named(row, name), ended)
      if (outcomes.length > 0) expect(kept.records.at(-1), line).toMatchObject(named(recorded, name))
      if (line.startsWith('audit redact --subject S-~ ') && code === 0) expectErased(data, `S-${name}`)
    }
    await (around?.(row, holder, act) ?? act())
  }
  expect(JSON.stringify(auditRecords({ data }))).not.toMatch(NEVER_SHOWN)
  return done
}

/** No record tells the name of a subject any more. */
function expectErased(data: string, subject: string): void {
  const told = auditRecords({ data }).filter(
    ({ on }) => (on as { subject?: string } | undefined)?.subject === subject,
  )
  expect(told.length).toBeGreaterThan(1)
  expect(told.map(({ values }) => values['on.id'])).toEqual(told.map(() => undefined))
}

/** The path of the record that a path is about. */
const recordPath = (path: string): string => path.replace(/\/(?:disable|enable|secrets|password|link)$/, '')

/** Sends every row that has a route. The promise gives the record that each adding row has added. */
async function sendAll({ call, acts }: Serving): Promise<ReadonlyMap<Row, object>> {
  const added = new Map<Row, object>()
  const ending = (row: Row): boolean => row.id.startsWith('remove')
  for (const row of [...EVERY.filter((each) => !ending(each)), ...EVERY.filter(ending)]) {
    if (row.route === undefined || (ending(row) && row.ends === 'same')) continue
    const [status, path, body] = named(row.route, WIRED)
    const { method, conditional } = operationOf(row)
    const ask = async (ifMatch?: string): Promise<Answered> => {
      const sent = { ...(body && { body }), ...(ifMatch !== undefined && { ifMatch }) }
      const answer = await call(method, path, sent)
      expect(answer.text).not.toMatch(NEVER_SHOWN)
      return answer
    }
    const of = (answer: Answered): unknown[] => [method, path, answer.status]
    const before = acts()
    const latest = await call('GET', recordPath(path))
    if (status < 300 && conditional === true) {
      const other = await ask('"9-other"')
      expect([...of(other), other.etag]).toEqual([method, path, 412, latest.etag])
    } else if (method === 'POST' && conditional !== true)
      expect(of(await ask('*'))).toEqual([method, path, 400])
    expect(acts()).toEqual(before)
    const answer = await ask(status < 300 && conditional === true ? (latest.etag ?? '') : undefined)
    expect([...of(answer), answer.body.problems]).toEqual([method, path, status, answer.body.problems])
    const fresh = acts().slice(before.length)
    if (status >= 300 || method === 'GET') expect(fresh).toEqual([])
    else if (fresh.length > 0 || row.records !== undefined)
      expect(fresh.at(-1)).toBe(`${String(row.records?.at(-1))} admin admin`)
    if (status === 400) expect(answer.body.problems).not.toEqual([])
    if (status >= 300) continue
    if (method === 'GET') expect(answer.body).toEqual((await ask('"9-other"')).body)
    if (row.id.startsWith('add')) {
      const at = `${path}/${String(Object.values(body ?? {})[0])}`
      expect(answer).toMatchObject({ location: at, body: { warnings: [] } })
      const { body: record, etag } = await call('GET', at)
      expect([record, etag]).toEqual([answer.body.record, answer.etag])
      const listed = await call('GET', `${path}?limit=1000&prefix=${at.split('/').at(-1) ?? ''}`)
      expect(Object.values(listed.body as object)[0], path).toContainEqual(record)
      added.set(row, record as object)
    }
    if (row.id.startsWith('edit') && typeof row.output === 'object')
      expectMembers(answer.body as Record<string, unknown>, named(row.output, WIRED), row.line)
    if (/^(?:dis|en)able/.test(row.id)) expect(answer.body.record.disabled).toBe(row.id.startsWith('disable'))
    const then = await call('GET', recordPath(path))
    if (ending(row))
      expect([then.status, then.body.error]).toEqual([404, expect.stringMatching(/^There is no [a-z]+ "/)])
    else if (conditional === true) {
      expect([path, then.etag]).toEqual([path, answer.etag])
      // A third secret is refused in whatever version.
      if (answer.etag !== latest.etag)
        expect([path, (await ask(latest.etag ?? '')).status]).toEqual([
          path,
          /secrets$/.test(path) ? 409 : 412,
        ])
    }
  }
  return added
}

describe('C11.5.1 C12.1.7 a command that works with the service and without it', { timeout: 300_000 }, () => {
  // One that has no command is told by commands about other work: recorded-commands.wire.test.ts.
  it.each(SHARED.filter(({ commands }) => commands !== undefined))(
    'C11.5.1 has lines in the table of this test: $operationId',
    ({ operationId, commands = [] }) => {
      const lines = ROWS.filter(({ id }) => id === operationId).map(({ line }) => line)
      const every = EVERY.filter(({ id }) => id === operationId).map(({ line }) => line)
      const words = commands.flatMap((command) => command.words)
      expect(
        words.filter((each) => !every.some((line) => line.startsWith(`${each} `) || line === each)),
      ).toEqual([])
      expect(lines).not.toEqual([])
    },
  )

  it('is typed without a service once for each operation and exit code', () => {
    const pairs = ROWS.map(({ id, code = 0 }) => `${id} ${code}`)
    expect(pairs.filter((pair, at) => pairs.indexOf(pair) !== at)).toEqual([])
    const others = FURTHER.map(({ id, code = 0 }) => `${id} ${code}`)
    expect(others.filter((pair) => !pairs.includes(pair))).toEqual([])
  })

  it('C12.1.7 C6.3.6 prints the same, ends with the same code, leaves the same records and ends the same both ways; C11.5 so does the admin API', async () => {
    const here = await place()
    const up = await here.serve()
    const holders = await holdersOf(up.holding, EVERY)
    const added = await sendAll(up)
    const world = [up.holding, here.upstream, 1] as const
    const typed = await typeAll(here, EVERY, holders, {
      world: up.service.world,
      around: async (row, holder, act) => {
        if (holder && row.ends !== undefined) await expectServed(world, row, holder)
        await act()
        if (holder) await expectEnded(world, row, holder)
        const record = added.get(row)
        if (record === undefined) return
        const [, path, body] = named(row.route!, TYPED)
        const shown = await up.call('GET', `${path}/${String(Object.values(body ?? {})[0])}`)
        expect(shown.body).toEqual(JSON.parse(JSON.stringify(record).replaceAll(WIRED, TYPED)))
      },
    })
    await up.service.close()

    const there = await place()
    const first = await there.serve()
    const held = await holdersOf(first.holding, ROWS)
    await first.service.close()
    const isAgain = ({ again }: Row): boolean => again !== undefined
    const typedFirst = await typeAll(
      there,
      ROWS.filter((row) => !isAgain(row)),
      held,
    )
    await typeAll(
      there,
      FURTHER.filter(({ line }) => /^audit (?:show|open|find .*--(?:json|jsonl|csv)$)/.test(line)),
      held,
    )
    const second = await there.serve(first.service.port)
    for (const [row, holder] of held) await expectEnded([second.holding, there.upstream, 1], row, holder)
    await second.service.close()
    const down = new Map([...typedFirst, ...(await typeAll(there, ROWS.filter(isAgain), held))])

    const shown = (done: ReadonlyMap<Row, Done>) =>
      ROWS.map((row) => {
        const { code, stdout, stderr, records } = done.get(row)!
        return {
          line: row.line,
          code,
          stdout: steady(stdout),
          stderr: steady(stderr),
          records: records.map((each) => partOf(each)),
        }
      })
    expect(shown(down)).toEqual(shown(typed))
    const records = (done: ReadonlyMap<Row, Done>) => [...done.values()].flatMap((each) => each.records)
    const names = (done: ReadonlyMap<Row, Done>) => [
      ...new Set(records(done).map(({ actor }) => (actor as { operator?: string }).operator)),
    ]
    expect(names(typed)).toEqual(['admin'])
    expect(names(down)).toEqual([`${userInfo().username}@${hostname()}`])
    for (const { actor, change } of records(typed)) {
      expect(actor).toMatchObject({ kind: 'operator', via: 'cli', claimed: expect.any(String) })
      expect(JSON.stringify(change ?? {})).not.toContain(EMAIL)
    }
  })

  it('C6.3.6 C11.5.1 ends what it takes away, in both workers, and nothing else', async () => {
    const upstream = await startUpstream(answerJson({ Data: [] }))
    const service = await operated(2, '', { UPSTREAM_URL: upstream.url })
    const world = [service, upstream, 2] as const
    const holders = await holdersOf(service, EVERY)
    const change = async (row: Row, { name }: Holder): Promise<void> => {
      const { route, line } = named(row, name)
      if (route === undefined)
        expect(await service.postern(...shellWords(line))).toMatchObject({ code: 0, err: '' })
      else await expectDone(service, operationOf(row).method, route[1], ...(route[2] ? [route[2]] : []))
    }
    // Each change waits a second until all processes know of it. The calls stay in turn, so that each worker answers some.
    // Rows that stand together are alike: no group has two of them, so that one that ends too much is seen in a later group.
    const all = [...holders]
    const groups = Math.ceil(all.length / AT_ONCE)
    for (let group = 0; group < groups; group += 1) {
      const some = all.filter((_, at) => at % groups === group)
      for (const [row, holder] of some) await expectServed(world, row, holder)
      await Promise.all(some.map(([row, holder]) => change(row, holder)))
      for (const [row, holder] of some) await expectEnded(world, row, holder)
    }
  })
})
