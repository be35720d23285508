import { existsSync } from 'node:fs'
import type { Store } from '../contracts/store.ts'
import { type Clock, epochSeconds, systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { StoreClock, TrustedOffset } from '../kernel/store-clock.ts'
import { messageOf } from '../kernel/thrown.ts'
import { examineKeys } from '../keys/examine-keys.ts'
import { KeyError } from '../keys/key-error.ts'
import { type KeyPlace, keysOf, type Rewrapped, titleOf } from '../keys/key-place.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import type { StoredKey } from '../keys/stored-key.ts'
import { printJson, type Terminal } from '../operator/terminal.ts'
import { EXIT } from '../operator/verb.ts'
import { type Configuration, readConfiguration } from '../settings/configuration.ts'
import { listKeys } from '../start/key-control.ts'
import { keysPlanOf } from '../start/key-plan.ts'
import { makeNextKey, nextKeyName, signsAfterAnnouncement } from '../start/rotate-keys.ts'
import { ANSWER_COMMAND_WITHIN, openStore } from '../stores/open-store.ts'
import { sqliteFile } from '../stores/schema.ts'
import { StoreError } from '../stores/store-error.ts'
import type { ListedKey } from '../watch/status/key-orders.ts'
import type { CallOptions } from './call-options.ts'
import { configurationFile, writeReport } from './command.ts'
import { keyTime, madeLine, madeRow } from './key-text.ts'
import { recorded } from './recorded-act.ts'
import { replaceKeysByCommand } from './replace-keys.ts'
import { KEYS } from './tables/keeping.ts'
import { commandOf } from './verbs.ts'

interface KeysOptions extends CallOptions {
  readonly compromised?: boolean | undefined
  /** Do not ask. */
  readonly yes?: boolean | undefined
  readonly json?: boolean | undefined
}

interface KeysRequest {
  readonly options: KeysOptions
  readonly configuration: Configuration
  readonly plan: KeysPlan
  /** The store, if the keys are in it. */
  readonly shared: Store | undefined
  readonly clock: Clock
  readonly terminal: Terminal
}

type Action = (request: KeysRequest) => Promise<number>

const keyLine = (place: KeyPlace, key: ListedKey): string => {
  const { name, kid, state, signsFrom, endsAt, nextRotationAt } = key
  const until = endsAt === undefined ? '' : `  published until ${keyTime(endsAt)}`
  const next = nextRotationAt === undefined ? '' : `  until ${keyTime(nextRotationAt)}`
  return `${titleOf(place, name).padEnd(14)}${state.padEnd(11)}${kid}  signs from ${keyTime(signsFrom)}${next}${until}\n`
}

/** `keys list`: every key with its state, oldest first. */
const list: Action = async ({ plan, clock, options: { json }, terminal }) => {
  const keys = await listKeys(plan, clock)
  if (json === true) printJson({ keys }, terminal)
  else for (const key of keys) terminal.stdout.write(keyLine(plan.place, key))
  return EXIT.done
}

/** `keys rotate`: makes the next keys, which are published before they sign. `--compromised`: see `replaceKeys`. */
const rotate: Action = async (request) => {
  const { plan, options, terminal } = request
  await plan.place.open()
  if (options.compromised === true)
    return recorded(request, { event: 'keys.compromised', on: { kind: 'key' } }, () =>
      replaceKeysByCommand({ ...request, yes: options.yes === true, json: options.json === true }),
    )
  await keysOf(plan.place)
  const made: StoredKey[] = []
  const codes: number[] = []
  for (const algorithm of plan.algorithms) codes.push(await announce(algorithm, request, made))
  if (options.json === true) printJson({ made: made.map((key) => madeRow(plan.place, key)) }, terminal)
  return codes.find((code) => code !== EXIT.done) ?? EXIT.done
}

/** Makes the next key of an algorithm, and adds it to `made`. Gives the exit code. */
async function announce(
  algorithm: KeysPlan['algorithms'][number],
  request: KeysRequest,
  made: StoredKey[],
): Promise<number> {
  const { plan, clock, options, terminal } = request
  const id = await nextKeyName(plan, algorithm)
  return recorded(request, { event: 'keys.announced', on: { kind: 'key', id } }, async () => {
    const signsFrom = signsAfterAnnouncement(plan, clock)
    const key = await makeNextKey(plan, algorithm, signsFrom, clock)
    made.push(key)
    if (options.json !== true) terminal.stdout.write(madeLine(plan.place, key))
    return EXIT.done
  })
}

const MARK = { fine: '  ok ', warning: 'WARN ', error: 'FAIL ' } as const

/** `keys doctor`: lists problems of the keys, also coming ones. Exit code 1 if there is an error. Changes nothing. */
const doctor: Action = async (request) => {
  const { plan, clock, options, terminal } = request
  const findings = await withHistory(request, (store) => examineKeys(plan, epochSeconds(clock), store))
  if (options.json === true) printJson({ findings }, terminal)
  else for (const { level, text } of findings) terminal.stdout.write(`${MARK[level]}${text}\n`)
  return findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.done
}

/** `keys rewrap`: seals with the first seal what an older one has sealed. */
const rewrap: Action = async (request) => {
  const { plan, options, terminal } = request
  const { place } = plan
  if (place.rewrap === undefined) {
    terminal.stderr.write(`postern: the keys are in ${place.name}, and not sealed\n`)
    return EXIT.refused
  }
  const seal = place.rewrap.bind(place)
  return recorded(request, { event: 'keys.resealed', on: { kind: 'key' } }, async () => {
    const rewrapped = await seal()
    if (options.json === true) printJson({ ...rewrapped }, terminal)
    else printRewrapped(rewrapped, terminal)
    return EXIT.done
  })
}

function printRewrapped({ sealed, already }: Rewrapped, { stdout }: Terminal): void {
  for (const title of sealed) stdout.write(`${title}: sealed with the first seal now\n`)
  for (const title of already) stdout.write(`${title}: was sealed with the first seal already\n`)
}

/** Hands a store to `act`, and closes it then. */
async function closing<T, S extends Store | undefined>(store: S, act: (store: S) => Promise<T>): Promise<T> {
  try {
    return await act(store)
  } finally {
    await store?.close()
  }
}

/** The store that the keys are compared with. A file is not created: `doctor` changes nothing. */
async function withHistory<T>(
  { configuration: { data, store: config }, shared, clock }: KeysRequest,
  act: (store: Store | undefined) => Promise<T>,
): Promise<T> {
  if (shared !== undefined) return act(shared)
  const exists = config.kind === 'sqlite' && existsSync(sqliteFile(data))
  const options = { answerWithin: ANSWER_COMMAND_WITHIN }
  return closing(exists ? await openStore(config, data, clock, options) : undefined, act)
}

/** Opens a store that has the keys, if there is one, and lives by its clock. No tables are made. */
async function withSharedStore<T>(
  { store: config }: Configuration,
  act: (shared: Store | undefined, clock: Clock) => Promise<T>,
): Promise<T> {
  if (config.kind !== 'postgres') return act(undefined, systemClock)
  const { openPostgresToRead } = await import('../stores/postgres/open.ts')
  const offset = new TrustedOffset()
  const clock = new StoreClock(offset)
  return closing(await openPostgresToRead(config, clock, { offset }), (store) => act(store, clock))
}

/** Does an action with the keys of the configuration. */
const onKeys =
  (action: Action) =>
  ({ values }: { readonly values: KeysOptions }, terminal: Terminal): number | Promise<number> => {
    const path = configurationFile(values.config, terminal)
    const { configuration, problems } = readConfiguration(path, terminal.env)
    if (configuration === undefined || problems.failed) {
      writeReport(path, problems, terminal)
      return EXIT.refused
    }
    const act = (shared: Store | undefined, clock: Clock): Promise<number> => {
      const plan = keysPlanOf(configuration, shared)
      return action({ options: values, configuration, plan, shared, clock, terminal })
    }
    return withPlainErrors(() => withSharedStore(configuration, act), terminal)
  }

/** `postern keys list|rotate|doctor|rewrap`: the signing keys, also while the service runs. */
export const keysCommand = commandOf(KEYS, {
  list: onKeys(list),
  rotate: onKeys(rotate),
  doctor: onKeys(doctor),
  rewrap: onKeys(rewrap),
})

/** What an operator can mend. */
const PLAIN = [KeyError, StoreError, Fault] as const

/** Errors of the keys and of the store become a message and the exit code 1. */
async function withPlainErrors(action: () => Promise<number>, { stderr }: Terminal): Promise<number> {
  try {
    return await action()
  } catch (thrown) {
    if (!PLAIN.some((kind) => thrown instanceof kind)) throw thrown
    stderr.write(`postern: ${messageOf(thrown)}\n`)
    return EXIT.failed
  }
}
