/**
 * `node test/long/prove/hostile-names.ts [runs]`: what comparing names of members costs (C8.7, T4.8): a body with thousands of names that
 * are dear to compare, without and with `set`, `require` and names that are kept out, in ms and as a ratio; then how long
 * calls of one client take beside twelve such bodies of another one.
 */
import type { KeptMembers } from '../../../src/base/contracts/calls/backend.ts'
import type { BodyRecipe } from '../../../src/base/contracts/calls/templates.ts'
import { writeMaking } from '../../../src/gateway/conversion/bodies.ts'
import { perform, type Task } from '../../../src/gateway/conversion/tasks.ts'
import { toFault } from '../../../src/base/kernel/faults.ts'
import { JSON_TYPE, MadeBodies } from '../../support/made-bodies.ts'
import { bearer } from '../../support/requests.ts'
import { issueToken } from '../../support/tokens.ts'

const RUNS = Number(process.argv[2] ?? 25)
const SIZES = [53_000, 889_000]
const MOST_MEMBERS = 99_000

const FAMILIES: Readonly<Record<string, (at: number) => string>> = {
  harmless: (at) => `field${at}`,
  'harmless, long': (at) => `customerReferenceNumber${at}`,
  'encoded twice, a ligature': (at) => `%2525\ufdfa${at}`,
  'six ligatures': (at) => `${'\ufdfa'.repeat(6)}${at}`,
  'encoded twenty times': (at) => `%${'25'.repeat(20)}63ompany${at}`,
  'encoded digit by digit': (at) => `%${'%32%35'.repeat(5)}63ompany${at}`,
  'begins as it': (at) => `companyx${at}`,
  'begins as it, wide': (at) => `ｃｏｍｐａｎｙ${at}`,
  'begins as it, mathematical': (at) => `𝐜𝐨𝐦𝐩𝐚𝐧𝐲${at}`,
  'dots above': (at) => `ｃ\u0307ompany[${at}`,
  'what does not show': (at) => `${'\u200b'.repeat(5)}${at}`,
  marks: (at) => `e\u0301${at}`,
  'is it': (at) => `company[${at}`,
  'is it, wide': (at) => `ｃｏｍｐａｎｙ[${at}`,
  'is it, encoded and wide': (at) => `%EF%BD%83ompany[${at}`,
}

function bodyOf(name: (at: number) => string, size: number): string {
  const members: string[] = []
  for (let at = 0, length = 2; length < size && at < MOST_MEMBERS; at += 1) {
    const member = `${JSON.stringify(name(at))}:1`
    members.push(member)
    length += Buffer.byteLength(member) + 1
  }
  return `{${members.join(',')}}`
}

const placed = (names: readonly string[]) =>
  names.map((name) => ({ pointer: [name], leaf: { kind: 'constant' as const, value: 'x' } }))
const kept: KeptMembers = { names: ['realm', 'mandant'], isXml: false, part: [], isDocument: false }

function taskOf(
  bytes: Buffer,
  set: readonly string[],
  needed: readonly string[],
  more?: Partial<Task>,
): Task {
  const recipe: BodyRecipe = {
    format: 'json',
    type: JSON_TYPE,
    template: undefined,
    set: placed(set),
    require: placed(needed),
  }
  const making = writeMaking({ pointers: [], recipe, values: {}, most: 2 ** 30 })
  return { ...plain(bytes), making, ...more } as Task
}
const plain = (bytes: Buffer): Task => ({
  kind: 'request',
  bytes,
  as: 'json',
  to: 'json',
  schema: undefined,
  items: {},
})

/** Milliseconds; what is refused took its time too. */
function timeOf(task: Task): number {
  const times: number[] = []
  for (let run = 0; run < RUNS; run += 1) {
    const start = performance.now()
    try {
      perform(task)
    } catch (thrown) {
      if (toFault(thrown).code === 'internal') throw thrown
    }
    times.push(performance.now() - start)
  }
  return times.toSorted((one, other) => one - other)[Math.floor(RUNS / 5)] ?? 0
}

console.log('| names | bytes | without, ms | 1 set | 4 set | require | kept out | kept out and set |')
console.log('|---|---|---|---|---|---|---|---|')
for (const size of SIZES)
  for (const [family, name] of Object.entries(FAMILIES)) {
    const bytes = Buffer.from(bodyOf(name, size))
    const without = timeOf(plain(bytes))
    const costs = [
      taskOf(bytes, ['company'], []),
      taskOf(bytes, ['company', 'tenant', 'region', 'owner_id'], []),
      taskOf(bytes, [], ['company']),
      { ...plain(bytes), kept },
      taskOf(bytes, ['company'], [], { kept }),
    ].map(timeOf)
    const ratios = costs.map((ms) => `${ms.toFixed(1)} (${(ms / without).toFixed(1)} ×)`)
    console.log(`| ${[family, bytes.length, without.toFixed(2), ...ratios].join(' | ')} |`)
  }

const READ = 'scopes: { any: [api1] }, body: { required: false }'
const made = await MadeBodies.open({
  plain: `{ POST: { ${READ} } }`,
  set: `{ POST: { ${READ}, upstream: { body: { set: { /company: '{business}', /tenant: x, /region: x, /owner: x } } } } }`,
})
const bob = await issueToken(made.gateway, {
  client: 'globex-ledger',
  username: 'bob',
  scope: 'api1 target:b/GLOBEX',
})
const others = { target: '/api/1.0/b/GLOBEX/fund-data/plain', headers: bearer(bob.access_token) }
for (const size of SIZES)
  for (const family of ['harmless', 'encoded twice, a ligature']) {
    const body = bodyOf(FAMILIES[family] ?? String, size)
    for (const action of ['plain', 'set']) {
      await made.call(action, body)
      const start = performance.now()
      const calls = Array.from({ length: 12 }, () => made.call(action, body))
      const beside: number[] = []
      const statuses: number[] = []
      const state = { isUnderWay: true }
      const all = Promise.all(calls).then((outcomes) => ((state.isUnderWay = false), outcomes))
      do {
        const began = performance.now()
        statuses.push((await made.call('plain', '{"a":1}', JSON_TYPE, others)).answer.status)
        beside.push(performance.now() - began)
      } while (state.isUnderWay)
      const ours = (await all).map(({ answer }) => answer.status)
      const took = (performance.now() - start).toFixed(0)
      console.log(
        `12 × ${size / 1000} KB, ${family}, ${action}: ${took} ms, answered ${[...new Set(ours)].join(', ')}; beside them ${statuses.length} calls of another client, answered ${[...new Set(statuses)].join(', ')}, slowest ${Math.max(...beside).toFixed(0)} ms`,
      )
    }
  }
await made.close()
