/**
 * `node test/long/prove/mutation.ts [--mutants 400] [--seed 1] [--workers 2] [--in src/gateway/limits] [--at src/gateway/limits/x.ts:12]
 * [--tests gateway/limits] [--tests gateway/limits/x.test.ts] [--budget 30]`: how many of so many small wrong changes of the code that decides (gateway, limits, keys, tokens, the HTTP client) some test tells. All mutants of a file
 * stand in it at once, and one at a time is chosen while it runs; a first run without any finds out which test files
 * meet which. Each mutant gets those files, the quickest first, until one fails. Survivors are listed; those of the last
 * measurement stand in mutation.md, each with a reason.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { globSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { sourceFiles } from '../../support/source-files.ts'
import { ROOT } from '../../support/spawn-postern.ts'
import { mutantsOf, sampled, type Mutant } from './mutants.ts'
import type { Order, Outcome } from './mutation-worker.ts'

const { values: options } = parseArgs({
  options: {
    mutants: { type: 'string', default: '400' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: '2' },
    in: { type: 'string', multiple: true },
    at: { type: 'string', multiple: true },
    budget: { type: 'string', default: '30' },
    tests: { type: 'string', multiple: true },
  },
})
/** Folders or files. */
const WHERE = [
  ...new Set(
    options.at?.map((place) => place.replace(/:\d+$/, '')) ??
      options.in ?? [
        ...['src/gateway/decide', 'src/gateway/actions', 'src/gateway/conversion', 'src/gateway/describe'],
        ...['src/gateway/openapi', 'src/gateway/explain', 'src/gateway/limits', 'src/gateway/upstream'],
        ...['src/identity/keys', 'src/identity/stored', 'src/identity/tokens'],
      ],
  ),
]
/** Folders or files of `test/`, without those of the wire. Tests of other processes don't meet mutants. */
const TESTS = (options.tests ?? ['base', 'state', 'identity', 'gateway', 'operate', 'serve', 'cli']).flatMap(
  (each) =>
    globSync(each.endsWith('.ts') ? `test/${each}` : `test/${each}/**/!(*.wire).test.ts`, { cwd: ROOT }),
)
/** Milliseconds of tests that one mutant may take, as they took without one, and after which it is taken to hang. */
const BUDGET = 1000 * Number(options.budget)
const HANGS = 120_000

const folder = mkdtempSync(join(tmpdir(), 'postern-mutation-'))
const files = WHERE.flatMap((each) =>
  each.endsWith('.ts') ? each : sourceFiles(join(ROOT, each)).map((path) => relative(ROOT, path)),
)
const all = files
  .flatMap((file) => mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')))
  .filter(({ file, line }) => options.at?.includes(`${file}:${line}`) ?? true)
const mutants: readonly Mutant[] = sampled(all, Number(options.mutants), Number(options.seed)).map(
  (each, index) => ({ id: index + 1, ...each }),
)
writeFileSync(join(folder, 'mutants.json'), JSON.stringify(mutants))
console.log(`${mutants.length} of ${all.length} mutants of ${files.length} files, ${TESTS.length} test files`)

/** A process that runs one order after another; replaced where a mutant hangs. */
class Runner {
  readonly #folder: string
  #child: ChildProcess | undefined

  constructor(name: string) {
    this.#folder = join(folder, name)
    mkdirSync(this.#folder)
    writeFileSync(join(this.#folder, 'met'), '')
    writeFileSync(join(this.#folder, 'alive'), '0')
  }

  /** Undefined where it hangs, or ends the process. */
  async run(order: Order, within = HANGS): Promise<Outcome | undefined> {
    const child = this.#child ?? (await this.#start())
    const ended = Promise.withResolvers<Outcome | undefined>()
    const told = (outcome: Outcome): void => ended.resolve(outcome)
    const gone = (): void => ended.resolve(undefined)
    const timer = setTimeout(gone, within)
    child.once('message', told).once('exit', gone)
    child.send(order)
    const outcome = await ended.promise
    clearTimeout(timer)
    child.off('message', told).off('exit', gone)
    if (outcome === undefined) this.close()
    return outcome
  }

  met(): readonly (readonly [file: string, ids: readonly number[]])[] {
    const lines = readFileSync(join(this.#folder, 'met'), 'utf8').split('\n').filter(Boolean)
    return lines.map((line) => {
      const [path, ids] = JSON.parse(line) as [string, number[]]
      return [relative(ROOT, path), ids]
    })
  }

  close(): void {
    const pid = this.#child?.pid
    this.#child = undefined
    // The processes that vitest has started too.
    if (pid !== undefined)
      try {
        process.kill(-pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(join(import.meta.dirname, 'mutation-worker.ts'), {
      detached: true,
      stdio: 'ignore',
      cwd: ROOT,
      env: { ...process.env, POSTERN_MUTATION: this.#folder },
    })
    this.#child = child
    await new Promise((resolve) => child.once('message', resolve))
    return child
  }
}

const runners = Array.from({ length: Number(options.workers) }, (_, index) => new Runner(`runner-${index}`))
process.once('exit', () => {
  for (const runner of runners) runner.close()
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** Does all of the work, each runner one piece after another. */
async function share<T>(
  work: readonly T[],
  doing: (runner: Runner, piece: T) => Promise<void>,
): Promise<void> {
  const queue = [...work]
  await Promise.all(
    runners.map(async (runner) => {
      for (let piece = queue.shift(); piece !== undefined; piece = queue.shift()) await doing(runner, piece)
    }),
  )
}

const start = performance.now()
const minutes = (): string => ((performance.now() - start) / 60_000).toFixed(1)
const times = new Map<string, number>()
const failed: string[] = []
const broken: string[] = []
const CHUNK = 24
const chunks = Array.from({ length: Math.ceil(TESTS.length / CHUNK) }, (_, at) =>
  TESTS.slice(at * CHUNK, (at + 1) * CHUNK),
)
await share(chunks, async (runner, chunk) => {
  const outcome = await runner.run({ mutant: 0, files: chunk }, 10 * HANGS)
  failed.push(...(outcome === undefined ? chunk : outcome.failedFiles))
  for (const [name, ms] of Object.entries(outcome?.times ?? {})) times.set(name, ms)
})
// Once more, by itself: on a busy machine a file fails now and then, and would catch nothing.
await share(failed, async (runner, file) => {
  const outcome = await runner.run({ mutant: 0, files: [file] })
  if (outcome === undefined || outcome.failed) broken.push(file)
  else times.set(file, outcome.times[file] ?? BUDGET)
})
const meeting = new Map<number, string[]>()
for (const [file, ids] of runners.flatMap((runner) => runner.met()))
  if (!broken.includes(file))
    for (const id of ids) meeting.set(id, [...new Set([...(meeting.get(id) ?? []), file])])
console.log(`the tests met ${meeting.size} mutants, after ${minutes()} min`)
if (broken.length > 0) console.log(`left out, since they fail without a mutant: ${broken.join(', ')}`)

const timeOf = (file: string): number => times.get(file) ?? BUDGET
const nameOf = ({ file }: Mutant): string => file.split('/').at(-1)?.replace('.ts', '') ?? ''
/**
 * What runs while a module is loaded is met by the first test file of a process alone, though others depend on it: these
 * mutants get all files that meet any mutant of their module.
 */
const filesMeeting = (mutant: Mutant): readonly string[] =>
  mutant.whileLoaded
    ? [
        ...new Set(
          mutants.filter(({ file }) => file === mutant.file).flatMap(({ id }) => meeting.get(id) ?? []),
        ),
      ]
    : (meeting.get(mutant.id) ?? [])
/** Those of its own name first, then the quickest, as many as the budget allows. */
function filesFor(mutant: Mutant): readonly string[] {
  const own = (file: string): number => (file.includes(nameOf(mutant)) ? 0 : 1)
  let spent = 0
  return filesMeeting(mutant)
    .toSorted((a, b) => own(a) - own(b) || timeOf(a) - timeOf(b))
    .filter((file) => (spent += timeOf(file)) <= BUDGET || spent === timeOf(file))
}

type Fate = 'caught' | 'hangs' | 'survived' | 'never met'
const fates = new Map<number, Fate>()
await share(mutants, async (runner, mutant) => {
  const chosen = filesFor(mutant)
  if (chosen.length === 0) return void fates.set(mutant.id, 'never met')
  // The likeliest first: most are caught by the first three.
  for (const part of [chosen.slice(0, 3), chosen.slice(3)]) {
    if (part.length === 0) continue
    const outcome = await runner.run({ mutant: mutant.id, files: part })
    if (outcome === undefined) return void fates.set(mutant.id, 'hangs')
    if (outcome.failed) return void fates.set(mutant.id, 'caught')
  }
  fates.set(mutant.id, 'survived')
})

const fateOf = ({ id }: Mutant): Fate => fates.get(id) ?? 'never met'
const count = (among: readonly Mutant[], ...which: readonly Fate[]): number =>
  among.filter((mutant) => which.includes(fateOf(mutant))).length
console.log(`\nafter ${minutes()} min:`)
for (const each of [...WHERE, 'src/']) {
  const own = mutants.filter(({ file }) => file.startsWith(each))
  const caught = count(own, 'caught', 'hangs')
  const share = ((100 * caught) / own.length).toFixed(1)
  console.log(`  ${each.padEnd(20)} ${caught} of ${own.length} caught (${share} %)`)
}
console.log('\nnot caught:')
for (const mutant of mutants.toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line))
  if (['survived', 'never met'].includes(fateOf(mutant)))
    console.log(`  ${mutant.file}:${mutant.line}  ${mutant.change}  (${fateOf(mutant)})`)
for (const runner of runners) runner.close()
process.exit(0)
