import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../contracts/store.ts'
import { endAllFamilies } from '../identity/tokens/token-revoker.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { messageOf } from '../kernel/thrown.ts'
import { type KeyPlace, titleOf } from '../keys/key-place.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import { confirm, printJson, type Terminal } from '../operator/terminal.ts'
import { countOfFamilies } from '../operator/text.ts'
import { EXIT } from '../operator/verb.ts'
import type { Configuration } from '../settings/configuration.ts'
import {
  countFamilies,
  type DerivedFamilies,
  familiesOfStore,
  type ReplacedKeys,
  replaceKeys,
} from '../start/rotate-keys.ts'
import { openStore } from '../stores/open-store.ts'
import { sqliteFile } from '../stores/schema.ts'
import { StoreError } from '../stores/store-error.ts'
import { madeLine, madeRow } from './key-text.ts'

const ATTEMPTS = 10
const PAUSE_MS = 200

export interface Replacement {
  readonly configuration: Configuration
  readonly plan: KeysPlan
  /** The store, if the keys are in it. */
  readonly shared: Store | undefined
  readonly clock: Clock
  /** `--yes`. */
  readonly yes: boolean
  /** `--json`. What is asked goes to stderr then. */
  readonly json: boolean
  readonly terminal: Terminal
}

/**
 * `keys rotate --compromised`: asks, then replaces the keys (start/rotate-keys.ts). Gives the exit code.
 *
 * @throws UsageError if nobody can be asked; KeyError if the keys cannot be read or written
 */
export async function replaceKeysByCommand({
  configuration,
  plan,
  shared,
  clock,
  yes,
  json,
  terminal,
}: Replacement): Promise<number> {
  const families = await openFamilies(configuration, shared)
  const prompt = json ? terminal.stderr : terminal.stdout
  try {
    prompt.write(
      `Every access token and id_token issued so far will be refused. ${families.summary}\n` +
        `Continue only if somebody may have read ${plan.place.name}. Otherwise use \`keys rotate\`.\n`,
    )
    if (!(await confirm(yes, terminal))) {
      prompt.write('nothing was changed\n')
      return EXIT.refused
    }
    const replaced = await replaceKeys(plan, families, clock)
    tellTrouble(replaced, terminal)
    if (json) printJson(replacedRow(plan.place, replaced), terminal)
    else printReplaced(plan.place, replaced, terminal)
    return replaced.trouble === undefined ? EXIT.done : EXIT.failed
  } finally {
    await families.close()
  }
}

const replacedRow = (place: KeyPlace, { families, made, removed }: ReplacedKeys): object => ({
  ...(families !== undefined && { families }),
  made: made.map((key) => madeRow(place, key)),
  removed: removed.map((name) => titleOf(place, name)),
})

function tellTrouble({ trouble }: ReplacedKeys, { stderr }: Terminal): void {
  if (trouble !== undefined)
    stderr.write(
      `postern: the families of refresh tokens could not be ended (${messageOf(trouble)}); ` +
        'the keys were replaced anyway. Run this command again when the store can be read.\n',
    )
}

function printReplaced(
  place: KeyPlace,
  { families, made, removed }: ReplacedKeys,
  { stdout }: Terminal,
): void {
  if (families !== undefined) stdout.write(`${countOfFamilies(families)} ended\n`)
  stdout.write(`${place.secretTitle}: replaced\n`)
  for (const key of made) stdout.write(madeLine(place, key))
  for (const name of removed)
    stdout.write(`${titleOf(place, name)}: removed; tokens that it signed are refused within a second\n`)
}

interface Families extends DerivedFamilies {
  /** How many there are, and what happens to them. */
  readonly summary: string
  readonly close: () => Promise<void>
}

/** The families in the store. If it cannot be opened, the keys are replaced anyway: a stolen key must not stay in use. */
async function openFamilies(
  { data, store: config }: Configuration,
  shared: Store | undefined,
): Promise<Families> {
  if (shared !== undefined)
    return { ...familiesOf(shared, await countFamilies(shared)), close: () => Promise.resolve() }
  const none = (): Promise<undefined> => Promise.resolve(undefined)
  const elsewhere = { end: none, remember: none, close: none }
  if (config.kind === 'memory') return { ...elsewhere, summary: IN_MEMORY }
  if (config.kind === 'sqlite' && !existsSync(sqliteFile(data)))
    return { ...elsewhere, summary: '0 families of refresh tokens will end.' }
  let store: Store | undefined
  try {
    store = await openStore(config, data, systemClock)
    return familiesOf(store, await countFamilies(store))
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    await store?.close()
    const summary =
      'The families of refresh tokens could not be counted, and may not end: the store cannot be read.'
    return { ...elsewhere, summary, end: () => Promise.reject(thrown) }
  }
}

const familiesOf = (store: Store, count: number): Families => ({
  summary: `${countOfFamilies(count)} will end: ${count === 1 ? 'its user' : 'their users'} must log in again.`,
  end: () => endWhileBusy(store, count),
  remember: familiesOfStore(store).remember,
  close: () => store.close(),
})

/** Tries again while the store is busy. What was ended before stays ended. */
async function endWhileBusy(store: Store, count: number): Promise<number> {
  for (let left = ATTEMPTS; ; left--)
    try {
      // An attempt that failed in the middle gives no number.
      return Math.max(await endAllFamilies(store), left === ATTEMPTS ? 0 : count)
    } catch (thrown) {
      if (!(thrown instanceof Fault) || left === 1) throw thrown
      await delay(PAUSE_MS)
    }
}

const IN_MEMORY =
  'The families of refresh tokens are in the memory of the service. It ends them when it reads the new secret.'
