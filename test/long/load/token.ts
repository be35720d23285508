/**
 * `npm run bench:token`: refresh and code exchanges per second, on each kind of store, beside oidc-provider doing the same
 * with its in-memory adapter; and what a gateway call takes while 16 logins hash. Rounds are interleaved, medians are told; nothing is
 * asserted, since machines differ. BENCH_ROUNDS and BENCH_SECONDS bound it.
 */
import { request } from 'undici'
import { inParallel, median, percentile, TokenClient, type Tokens } from './exchanges.ts'
import { startOidcProvider, startPosternIssuer, type Issuer } from './issuers.ts'
import { machine } from './machine.ts'
import type { PosternSubject } from './postern-process.ts'
import { startPostgresIssuer } from './postgres-issuer.ts'
import { PATH } from './subjects.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2)
/** Before what is measured: V8 optimises both services' code for that long, Postern's longer. */
const WARM_ROUNDS = 4
const LANES = 16
/** oidc-provider's in-memory adapter forgets beyond 1,000 entries, and so codes are taken in small batches. */
const BATCH = 200
const BATCHES = 8
const LOGINS = 16

interface Sample {
  readonly perSecond: number
  /** Microseconds of CPU per exchange. */
  readonly cpu: number
}

type Exchange = (issuer: Issuer, client: TokenClient, scope: string) => Promise<Sample>

async function sampled(
  issuer: Issuer,
  work: () => Promise<{ count: number; seconds: number }>,
): Promise<Sample> {
  const before = issuer.cpu()
  const { count, seconds } = await work()
  return { perSecond: count / seconds, cpu: ((issuer.cpu() - before) / count) * 1e6 }
}

/** Families one beside the other, each refreshing with what it got last. */
const refreshes: Exchange = async (issuer, client, scope) => {
  const families = await Promise.all((await issuer.mint(LANES, scope)).map((code) => client.redeem(code)))
  return sampled(issuer, async () => {
    let count = 0
    const end = performance.now() + SECONDS * 1000
    const seconds = await inParallel(families, LANES, async (first: Tokens) => {
      for (let last = first; performance.now() < end; count += 1) last = await client.refresh(last)
    })
    return { count, seconds }
  })
}

/** CPU time is read in steps of 10 ms, so that of a batch alone says little: the mean of all of them does. */
const codes: Exchange = async (issuer, client, scope) => {
  const samples: Sample[] = []
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const minted = await issuer.mint(BATCH, scope)
    samples.push(
      await sampled(issuer, async () => ({
        count: BATCH,
        seconds: await inParallel(minted, LANES, (code) => client.redeem(code)),
      })),
    )
  }
  return {
    perSecond: median(samples.map(({ perSecond }) => perSecond)),
    cpu: samples.reduce((sum, { cpu }) => sum + cpu, 0) / samples.length,
  }
}

const PURE = 'offline_access fund.read'
const WITH_ID = 'openid offline_access fund.read'
const EXCHANGES: readonly (readonly [string, Exchange, string])[] = [
  ['refresh', refreshes, PURE],
  ['refresh, with id_token', refreshes, WITH_ID],
  ['code', codes, PURE],
  ['code, with id_token', codes, WITH_ID],
]

async function compare(issuers: readonly Issuer[], other: Issuer): Promise<void> {
  console.log('| exchange | service | per second | ratio (aim 1.5) | CPU µs each | ratio |')
  console.log('|---|---|---|---|---|---|')
  for (const [title, exchange, scope] of EXCHANGES) {
    const samples = new Map<Issuer, Sample[]>([...issuers, other].map((issuer) => [issuer, []]))
    for (let round = -WARM_ROUNDS; round < ROUNDS; round += 1)
      for (const [issuer, list] of samples) {
        const client = new TokenClient(issuer.endpoint, LANES)
        const sample = await exchange(issuer, client, scope)
        if (round >= 0) list.push(sample)
        await client.close()
      }
    const rate = (issuer: Issuer): number => median((samples.get(issuer) ?? []).map((one) => one.perSecond))
    const cpu = (issuer: Issuer): number => median((samples.get(issuer) ?? []).map((one) => one.cpu))
    for (const issuer of samples.keys())
      console.log(
        `| ${title} | ${issuer.name} | ${rate(issuer).toFixed(0)} | ${(rate(issuer) / rate(other)).toFixed(2)} | ` +
          `${cpu(issuer).toFixed(0)} | ${(cpu(issuer) / cpu(other)).toFixed(2)} |`,
      )
  }
}

/** alice's twins, so that as many logins hash at once: one person's would wait for each other. */
const TWINS = Array.from({ length: LOGINS }, (_, index) => `twin-${index}`)
const ALICE =
  '$argon2id$v=19$m=19456,t=2,p=1$ONkPwx0e0TE+rLENpK9ssg$OjB8Q/llxpQX5ZPdg/d3WkrQivUVr9DkS90gzdW84vs'
const TWINS_YAML = `directory:
  users:
${TWINS.map((name) => `    ${name}: { subject: ${name}, password: '${ALICE}', customers: [acme-books], access: { ACME: Administrator } }`).join('\n')}
`

async function login(origin: string, username: string): Promise<number> {
  const { statusCode, body } = await request(`${origin}/connect/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from('acme-books:acme-books-secret').toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: `grant_type=password&username=${username}&password=alice-password&scope=fund.read+target:b/ACME`,
  })
  await body.dump()
  return statusCode
}

/** Milliseconds of calls, each with a token that was never seen before, one after the other. */
async function freshCalls(postern: Issuer & PosternSubject): Promise<number[]> {
  const client = new TokenClient(postern.endpoint, LANES)
  const minted = await postern.mint(BATCH, PURE)
  const tokens: string[] = []
  await inParallel(minted, LANES, async (code) => tokens.push((await client.redeem(code)).access_token))
  await client.close()
  const times: number[] = []
  for (const token of tokens) {
    const started = performance.now()
    const headers = { authorization: `Bearer ${token}` }
    const { statusCode, body } = await request(`${postern.origin}${PATH}`, { headers })
    await body.dump()
    if (statusCode !== 200) throw new Error(`a fresh token was answered ${statusCode}`)
    times.push(performance.now() - started)
  }
  return times
}

async function whileHashing<T>(origin: string, work: () => Promise<T>): Promise<{ done: T; logins: number }> {
  let running = true
  let logins = 0
  const loops = TWINS.map(async (name) => {
    while (running) if ((await login(origin, name)) === 200) logins += 1
  })
  const done = await work()
  running = false
  await Promise.all(loops)
  return { done, logins }
}

async function besideLogins(postern: Issuer & PosternSubject): Promise<void> {
  const quiet: number[] = []
  const busy: number[] = []
  let logins = 0
  await freshCalls(postern)
  for (let round = 0; round < ROUNDS; round += 1) {
    quiet.push(...(await freshCalls(postern)))
    const hashing = await whileHashing(postern.origin, () => freshCalls(postern))
    busy.push(...hashing.done)
    logins += hashing.logins
  }
  console.log(`\nA gateway call with a token never seen before (ms), ${quiet.length} calls each`)
  console.log('| | p50 | p99 | |')
  console.log('|---|---|---|---|')
  console.log(`| alone | ${percentile(quiet, 0.5).toFixed(1)} | ${percentile(quiet, 0.99).toFixed(1)} | |`)
  console.log(
    `| ${LOGINS} logins hashing | ${percentile(busy, 0.5).toFixed(1)} | ${percentile(busy, 0.99).toFixed(1)} | ` +
      `aim: p99 under 20; ${logins} logins done meanwhile |`,
  )
}

const postern = await startPosternIssuer('Postern, SQLite', TWINS_YAML)
const unaudited = await startPosternIssuer('Postern, SQLite, no audit trail', 'audit: { enabled: false }\n')
const forgetful = await startPosternIssuer(
  'Postern, in memory, no audit trail',
  'audit: { enabled: false }\nstore: { kind: memory }\n',
)
const shared = await startPostgresIssuer('Postern and its Postgres, no audit trail')
const other = await startOidcProvider()
const measured = [postern, unaudited, forgetful, ...(shared === undefined ? [] : [shared])]
console.log(machine())
console.log(`${LANES} at a time, one process each, medians of ${ROUNDS} rounds\n`)
try {
  await compare(measured, other)
  await besideLogins(postern)
} finally {
  for (const issuer of [...measured, other]) await issuer.stop()
}
process.exit(0)
