import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Configuration } from '../settings/configuration.ts'
import type { Store } from '../contracts/store.ts'
import { endAllFamilies } from '../identity/tokens/endings.ts'
import { FAMILY } from '../identity/tokens/families.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { listKeyFiles, readKeyFolder, removeKey } from '../keys/key-folder.ts'
import { rememberKeys } from '../keys/watch-keys.ts'
import { reasonOf } from '../keys/private-folder.ts'
import { replaceSuccessorSecret } from '../keys/successor-secret.ts'
import { sqliteFile } from '../stores/config.ts'
import { openStore } from '../stores/open-store.ts'
import { StoreError } from '../stores/store-error.ts'
import { confirm, countOfFamilies } from './terminal.ts'
import { EXIT, type Terminal } from './command.ts'

const ATTEMPTS = 10
const PAUSE_MS = 200

export interface Replacement {
  readonly configuration: Configuration
  readonly folder: string
  /** `--yes`. */
  readonly yes: boolean
  readonly terminal: Terminal
  /** Makes keys that sign at once, and tells of them. */
  readonly makeKeys: () => Promise<void>
}

/**
 * `keys rotate --compromised`: other keys and another secret for refresh tokens, and nothing left of what was issued
 * with the old ones; a running service follows within a second. Families end before the keys are replaced: whatever a
 * thief still gets by a refresh token is signed by a key that goes next.
 */
export async function replaceKeys(replacement: Replacement): Promise<number> {
  const { configuration, folder, terminal } = replacement
  const families = await openFamilies(configuration)
  try {
    terminal.stdout.write(
      `Every access token and id_token issued so far will be refused. ${families.told}\n` +
        `Use this when somebody may have read ${folder}; \`keys rotate\` is for everything else.\n`,
    )
    if (!(await confirm(replacement.yes, terminal))) {
      terminal.stdout.write('nothing was changed\n')
      return EXIT.refused
    }
    const failed = await endFamilies(families, terminal)
    await replaceFiles(replacement)
    // Else the next start would take them for another installation's.
    const kids = (await readKeyFolder(folder)).map(({ kid }) => kid)
    await families.remember(kids).catch(() => undefined)
    return failed ? EXIT.failed : EXIT.done
  } finally {
    await families.close()
  }
}

async function replaceFiles({ folder, terminal, makeKeys }: Replacement): Promise<void> {
  const before = await listKeyFiles(folder)
  await replaceSuccessorSecret(folder)
  terminal.stdout.write('successors.secret: replaced\n')
  await makeKeys()
  for (const file of before) {
    await removeKey(folder, file)
    terminal.stdout.write(`${file}: removed; whatever it has signed is refused within a second\n`)
  }
}

interface Families {
  /** How many there are and what becomes of them. */
  readonly told: string
  /** Answers how many were ended; undefined if that is not for this process to do. */
  readonly end: () => Promise<number | undefined>
  /** Tells the store which keys are the service's own. */
  readonly remember: (kids: readonly string[]) => Promise<void>
  readonly close: () => Promise<void>
}

/** The families where they are kept. A store that cannot be opened does not keep a stolen key in use. */
async function openFamilies({ data, store: config }: Configuration): Promise<Families> {
  const none = (): Promise<undefined> => Promise.resolve(undefined)
  const elsewhere = { end: none, remember: none, close: none }
  if (config.kind === 'memory') return { ...elsewhere, told: IN_MEMORY }
  if (!existsSync(sqliteFile(data))) return { ...elsewhere, told: '0 families of refresh tokens will end.' }
  let store: Store | undefined
  try {
    store = await openStore(config, data, systemClock)
    return familiesOf(store, await store.countBy(FAMILY, {}))
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    await store?.close()
    const told =
      'The families of refresh tokens could not be counted, and may not end: the store is out of reach.'
    return { ...elsewhere, told, end: () => Promise.reject(thrown) }
  }
}

const familiesOf = (store: Store, count: number): Families => ({
  told: `${countOfFamilies(count)} will end: ${count === 1 ? 'its user' : 'their users'} must log in again.`,
  end: () => endWhileBusy(store, count),
  remember: (kids) => rememberKeys(kids, store),
  close: () => store.close(),
})

/** A store that serves may be busy for a moment: what was ended stays ended, and the rest is tried again. */
async function endWhileBusy(store: Store, count: number): Promise<number> {
  for (let left = ATTEMPTS; ; left--)
    try {
      // An attempt that failed half way does not tell how many it ended.
      return Math.max(await endAllFamilies(store), left === ATTEMPTS ? 0 : count)
    } catch (thrown) {
      if (!(thrown instanceof Fault) || left === 1) throw thrown
      await delay(PAUSE_MS)
    }
}

const IN_MEMORY =
  'The families of refresh tokens are in the memory of the service, which ends them when it sees the new secret.'

/** True if they could not be ended. */
async function endFamilies(families: Families, { stdout, stderr }: Terminal): Promise<boolean> {
  try {
    const ended = await families.end()
    if (ended !== undefined) stdout.write(`${countOfFamilies(ended)} ended\n`)
    return false
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    stderr.write(
      `postern: the families of refresh tokens could not be ended (${reasonOf(thrown)}); ` +
        'the keys are replaced all the same. Run this again when the store is back.\n',
    )
    return true
  }
}
