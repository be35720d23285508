/**
 * `node test/long/prove/directory-scale.ts [businesses] [users]`: what a store with many businesses and users costs: targets, the
 * page of choice, pages of lists, the start, and idle memory beside an empty store. 10,000 and 1,000,000 are meant; by
 * default 1,000 and 20,000. Ends with 1 where a median is over 50 ms, or idle memory more than 20 MB over that of an empty
 * store.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hasher, hashSecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { escapedKey } from '../../../src/base/kernel/key-order.ts'
import { adminTokenFile } from '../../../src/operate/trail/announcement.ts'
import { openSqliteFile } from '../../../src/state/stores/sqlite/sqlite-file.ts'
import { heapOf, weighed } from '../../support/footprint.ts'
import { postForm } from '../../support/oauth.ts'
import { Person } from '../../support/person.ts'
import { type SpawnedPostern, spawnPostern } from '../../support/spawn-postern.ts'

const businesses = Number(process.argv[2] ?? 1000)
const users = Number(process.argv[3] ?? 20_000)
const MOST_MS = 50
const MOST_BYTES = 20 * 1024 ** 2
const ROUNDS = 40
const SECRET = 'tally-secret-0123456789abcdef'
const CALLBACK = 'http://127.0.0.1:8099/callback'

const codeOf = (number: number): string => `B${String(number).padStart(6, '0')}`
const nameOf = (number: number): string => `user-${String(number).padStart(7, '0')}`
/** Where a user has access: five businesses, spread over all. */
const accessOf = (number: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: 5 }, (_, step) => [codeOf((number * 7 + step * 131) % businesses), 'Clerk']),
  )

async function fill(path: string): Promise<void> {
  const db = openSqliteFile({ path, synchronous: 'normal', maxSize: undefined, marked: true })
  const insert = db.prepare('INSERT INTO record (kind, key, value, business) VALUES (?, ?, ?, ?)')
  const write = (kind: string, key: string, value: object, business: string | null = null): void =>
    void insert.run(kind, escapedKey(key), JSON.stringify(value), business)
  const password = await new Hasher().hash('user-0000000-password')
  const scopes = ['openid', 'profile', 'offline_access', 'fund.read', 'business.fund.list']
  const all = Array.from({ length: businesses }, (_, number) => codeOf(number))
  const grants = { kind: 'customer', grants: ['password', 'refresh_token'], agreement: '2026-01-15' }
  const partner = { kind: 'partner', grants: ['authorization_code'], redirectUris: [CALLBACK] }
  db.exec('BEGIN')
  for (const [id, more] of Object.entries({ tally: grants, books: partner })) {
    const record = { id, name: id, secrets: [hashSecret(SECRET)], businesses: all, scopes, ...more }
    write('directory_client', id, { record, ends: {} })
  }
  write('directory_role', 'Clerk', { record: { name: 'Clerk', scopes } })
  for (const code of all) {
    write('directory_business', code, { record: { code, name: `Business ${code}`, funds: 'listed' } })
    write('directory_fund', `${code}/F1`, { record: { business: code, code: 'F1' } }, code)
  }
  for (let number = 0; number < users; number++) {
    const [username, subject] = [nameOf(number), `s-${number}`]
    const record = { username, subject, password, customers: ['tally'], access: accessOf(number) }
    write('directory_user', username, { record })
    write('directory_subject', subject, { username })
  }
  db.exec('COMMIT')
  db.close()
}

interface Start {
  readonly service: SpawnedPostern
  readonly startMs: number
  readonly heap: number
}

async function started(data: string): Promise<Start> {
  const begin = performance.now()
  const service = await spawnPostern({ environment: { POSTERN_DATA: data, ...weighed } })
  const startMs = performance.now() - begin
  return { service, startMs, heap: await heapOf(service) }
}

async function timed(work: (round: number) => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const begin = performance.now()
    await work(round)
    times.push(performance.now() - begin)
  }
  return times.sort((a, b) => a - b)
}

const figures: Record<string, readonly number[]> = {}
const folders = [
  await mkdtemp(join(tmpdir(), 'postern-empty-')),
  await mkdtemp(join(tmpdir(), 'postern-full-')),
]
const [emptyFolder = '', fullFolder = ''] = folders
const empty = await started(emptyFolder)
await empty.service.stop()
await fill(join(fullFolder, 'postern.sqlite'))
const full = await started(fullFolder)
const { service } = full

const must = (status: number, wanted: number, what: string): void => {
  if (status !== wanted) throw new Error(`${what}: ${status}`)
}
const ask = (params: Readonly<Record<string, string>>) =>
  postForm(service, '/connect/token', { client: 'tally', secret: SECRET, params })
const at = (business: string): string => `${service.baseUrl}/api/1.0/b/${business}/fund-data/fund-list`

const tokens: { readonly business: string; readonly access: string; readonly refresh: string }[] = []
for (let round = 0; round < ROUNDS; round++) {
  const user = (round * 977) % users
  const [business = ''] = Object.keys(accessOf(user))
  const login = { username: nameOf(user), password: 'user-0000000-password' }
  const scope = `business.fund.list offline_access target:b/${business}`
  const answer = await ask({ grant_type: 'password', ...login, scope })
  must(answer.status, 200, 'a token')
  const { access_token, refresh_token } = answer.json
  tokens.push({ business, access: String(access_token), refresh: String(refresh_token) })
}
const call = async (round: number): Promise<void> => {
  const { business, access } = tokens[round] ?? { business: '', access: '' }
  const answer = await fetch(at(business), { headers: { Authorization: `Bearer ${access}` } })
  must(answer.status, 200, 'a call')
  await answer.text()
}
figures['a call, its business known'] = await timed(call)
figures['a refresh: user, role and target by key'] = await timed(async (round) => {
  const answer = await ask({ grant_type: 'refresh_token', refresh_token: tokens[round]?.refresh ?? '' })
  must(answer.status, 200, 'a refresh')
})

const person = new Person(service.authUrl)
const query = new URLSearchParams({
  ...{ response_type: 'code', client_id: 'books', redirect_uri: CALLBACK, scope: 'fund.read target:b' },
  code_challenge: createHash('sha256').update(randomBytes(32)).digest('base64url'),
  code_challenge_method: 'S256',
})
const authorize = `${service.authUrl}/connect/authorize?${query.toString()}`
const login = await person.open(authorize)
const shown = await person.submit(login, { username: nameOf(1), password: 'user-0000000-password' })
const listed = Object.keys(accessOf(1)).filter((code) => shown.text.includes(`Business ${code}`)).length
must(listed, 5, 'businesses on the page of choice')
figures['the page of choice: 5 of all businesses'] = await timed(() => person.open(authorize))

const token = (await readFile(adminTokenFile(fullFolder), 'utf8')).trim()
const page = async (path: string): Promise<void> => {
  const answer = await fetch(`${service.adminUrl}${path}`, { headers: { Authorization: `Bearer ${token}` } })
  must(answer.status, 200, path)
  await answer.text()
}
figures['100 businesses of a list, anywhere'] = await timed((round) =>
  page(`/businesses?limit=100&after=${codeOf((round * 211) % businesses)}`),
)
figures['100 users by a prefix'] = await timed((round) =>
  page(`/users?limit=100&prefix=${nameOf((round * 977) % users).slice(0, 10)}`),
)
await service.stop()
await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })))

const count = (number: number): string => number.toLocaleString('en')
console.log(`| ${count(businesses)} businesses, ${count(users)} users | median ms | 95 % ms |\n|---|---|---|`)
const medianOf = (times: readonly number[]): number => times[times.length >> 1] ?? 0
for (const [what, times] of Object.entries(figures))
  console.log(
    `| ${what} | ${medianOf(times).toFixed(1)} | ${(times[Math.floor(times.length * 0.95)] ?? 0).toFixed(1)} |`,
  )
const grown = full.heap - empty.heap
console.log(`| the start, beside ${empty.startMs.toFixed(0)} ms | ${full.startMs.toFixed(0)} | |`)
console.log(
  `| idle heap, beside ${(empty.heap / 1024 ** 2).toFixed(1)} MB | +${(grown / 1024 ** 2).toFixed(1)} MB | |`,
)
const tooSlow = Object.values(figures).some((times) => medianOf(times) > MOST_MS)
process.exitCode = tooSlow || grown > MOST_BYTES ? 1 : 0
