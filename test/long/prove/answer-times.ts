/**
 * `node test/long/prove/answer-times.ts [--rounds 200]`: whether the time of an answer tells what must not be told: which users
 * and clients exist (T3.9), and which of the three reasons a 404 has (C4.12). The attempts are made in turn, so that what
 * else the machine does falls on all alike. Of each group it reports the medians in milliseconds, and how well one call
 * tells two attempts apart: 0.5 is a coin, 1.0 is always. Ends with exit code 1 where that is above 0.75.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openRaw, type RawConnection } from '../../support/raw-http.ts'
import { patientGuessing } from '../../support/guessing.ts'
import { postForm } from '../../support/oauth.ts'
import { makeFolder } from '../../support/recipes/files.ts'
import { readPage } from '../../support/recipes/page.ts'
import { bearer, requestBytes } from '../../support/requests.ts'
import { startPostern } from '../../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '200' } } })
const ROUNDS = Number(options.rounds)
const WARMING = 20
const MOST = 0.75

const gateway = await startPostern({
  change: (configuration) => {
    const patient = patientGuessing(configuration)
    const { alice } = patient.directory.users
    if (alice === undefined) throw new Error('the demo world has a user alice')
    const users = {
      ...patient.directory.users,
      locked: { ...alice, subject: 'locked-subject', locked: true },
      disabled: { ...alice, subject: 'disabled-subject', disabled: true },
    }
    return { ...patient, directory: { ...patient.directory, users } }
  },
})
/** The same with users in a table, whose passwords are hashed by bcrypt. */
const folder = makeFolder()
const database = join(folder.path, 'people.db')
const table = new DatabaseSync(database)
table.exec(readPage('users-in-sql').files.get('users.sql') ?? '')
table.exec(`update users set active = 0 where login = 'erin'`)
table.exec(`insert into users select 'x', 'elsewhere', password, 'globex-ledger', 1, null, null from users
  where login = 'dora'`)
table.close()
const file = fileURLToPath(new URL('../../../config/examples/sql-people.ts', import.meta.url))
const beside = await startPostern({
  change: (configuration) => {
    const people = { kind: 'module', file, options: { database } } as const
    return { ...patientGuessing(configuration), directory: { ...configuration.directory, people } }
  },
})

const headers = bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)

type Attempts = Readonly<Record<string, () => Promise<unknown>>>

const password =
  (username: string, given: string, of = gateway) =>
  () =>
    postForm(of, '/connect/token', {
      params: { grant_type: 'password', username, password: given, scope: 'fund.read target:b/ACME' },
    })
const client = (name: string, secret: string) => () =>
  postForm(gateway, '/connect/introspect', { client: name, secret, params: { token: 'x' } })
let connection: RawConnection | undefined
const call = (target: string) => async () => {
  connection ??= await openRaw(gateway.port)
  connection.send(requestBytes({ target, headers }))
  return connection.response()
}

const GROUPS: Readonly<Record<string, Attempts>> = {
  'T3.9 users': {
    'a wrong password': password('alice', 'wrong'),
    'an unknown user': password('nobody', 'wrong'),
    'a user of another customer': password('carol', 'carol-password'),
    'a locked user': password('locked', 'alice-password'),
    'a disabled user': password('disabled', 'alice-password'),
  },
  'T3.9 users of another system': {
    'a wrong password': password('dora', 'wrong', beside),
    'an unknown user': password('nobody', 'wrong', beside),
    'a user of another customer': password('elsewhere', 'dora-password', beside),
    'a disabled user': password('erin', 'erin-password', beside),
    'a wrong password of a user of the configuration': password('alice', 'wrong', beside),
  },
  'T3.9 clients': {
    'a wrong secret': client('acme-books', 'wrong'),
    'an unknown client': client('nobody', 'wrong'),
    'a public client with a secret': client('pocketbooks', 'wrong'),
  },
  'C4.12 the three 404s': {
    'no such business': call('/api/1.0/f/NOWHERE/SUPER1/fund-data/fund-detail'),
    'another business': call('/api/1.0/f/GLOBEX/GROWTH/fund-data/fund-detail'),
    'no such fund': call('/api/1.0/f/ACME/NOTHING/fund-data/fund-detail'),
  },
}

async function measure(attempts: Attempts): Promise<ReadonlyMap<string, readonly number[]>> {
  const times = new Map(Object.keys(attempts).map((name) => [name, [] as number[]]))
  for (let round = -WARMING; round < ROUNDS; round += 1)
    for (const [name, attempt] of Object.entries(attempts)) {
      const start = performance.now()
      await attempt()
      if (round >= 0) times.get(name)?.push(performance.now() - start)
    }
  return times
}

/** The chance that a call of `a` took longer than one of `b`, or the other way round: the area under the ROC curve. */
function tells(a: readonly number[], b: readonly number[]): number {
  const longer =
    a.reduce((sum, one) => sum + b.filter((other) => one > other).length, 0) / (a.length * b.length)
  return Math.max(longer, 1 - longer)
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

for (const [group, attempts] of Object.entries(GROUPS)) {
  const times = [...(await measure(attempts))]
  console.log(group)
  for (const [name, values] of times) console.log(`  ${median(values).toFixed(2).padStart(7)} ms  ${name}`)
  const pairs = times.flatMap(([name, a], at) =>
    times.slice(at + 1).map(([other, b]) => [tells(a, b), `${name} / ${other}`] as const),
  )
  const [worst = 0, which = ''] = pairs.toSorted((a, b) => b[0] - a[0])[0] ?? []
  console.log(`  told apart best: ${worst.toFixed(2)}  ${which}`)
  if (worst > MOST) process.exitCode = 1
}
connection?.destroy()
await gateway.close()
await beside.close()
folder.remove()
