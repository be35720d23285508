import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Configuration } from '../settings/configuration.ts'
import type { Store } from '../contracts/store.ts'
import { endAllFamilies } from '../identity/tokens/token-revoker.ts'
import { FAMILY } from '../identity/tokens/families.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { listKeyFiles, readKeyFolder, removeKey } from '../keys/key-folder.ts'
import { rememberKeys } from '../keys/watch-keys.ts'
import { replaceSuccessorSecret } from '../keys/successor-secret.ts'
import { sqliteFile } from '../stores/config.ts'
import { openStore } from '../stores/open-store.ts'
import { StoreError } from '../stores/store-error.ts'
import { confirm, countOfFamilies } from './terminal.ts'
import { EXIT, type Terminal } from './command.ts'
import { messageOf } from '../kernel/thrown.ts'

const ATTEMPTS = 10
const PAUSE_MS = 200

export interface Replacement {
  readonly configuration: Configuration
  readonly folder: string
  /** `--yes`. */
  readonly yes: boolean
  readonly terminal: Terminal
  /** Makes keys that sign at once, and prints their files. */
  readonly makeKeys: () => Promise<void>
}

/**
 * `keys rotate --compromised`: replaces the keys and the secret of refresh tokens, and ends everything that was issued
 * with the old ones. A running service follows within a second. Families end before the keys are replaced, so that what
 * an attacker still gets by a refresh token is signed by a key that is removed next. Gives the exit code.
 *
 * @throws UsageError if nobody can be asked; KeyFolderError if the folder cannot be read or written
 */
export async function replaceKeys(replacement: Replacement): Promise<number> {
  const { configuration, folder, terminal } = replacement
  const families = await openFamilies(configuration)
  try {
    terminal.stdout.write(
      `Every access token and id_token issued so far will be refused. ${families.summary}\n` +
        `Continue only if somebody may have read ${folder}. Otherwise use \`keys rotate\`.\n`,
    )
    if (!(await confirm(replacement.yes, terminal))) {
      terminal.stdout.write('nothing was changed\n')
      return EXIT.refused
    }
    const failed = await endFamilies(families, terminal)
    await replaceFiles(replacement)
    // Without this, the next start would take the keys for those of another installation.
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
    terminal.stdout.write(`${file}: removed; tokens that it signed are refused within a second\n`)
  }
}

interface Families {
  /** How many there are, and what happens to them. */
  readonly summary: string
  /** Ends them and gives their number; undefined if another process ends them. */
  readonly end: () => Promise<number | undefined>
  /** Records in the store which keys are the service's own. */
  readonly remember: (kids: readonly string[]) => Promise<void>
  readonly close: () => Promise<void>
}

/** The families in the store. If it cannot be opened, the keys are replaced anyway: a stolen key must not stay in use. */
async function openFamilies({ data, store: config }: Configuration): Promise<Families> {
  const none = (): Promise<undefined> => Promise.resolve(undefined)
  const elsewhere = { end: none, remember: none, close: none }
  if (config.kind === 'memory') return { ...elsewhere, summary: IN_MEMORY }
  if (!existsSync(sqliteFile(data)))
    return { ...elsewhere, summary: '0 families of refresh tokens will end.' }
  let store: Store | undefined
  try {
    store = await openStore(config, data, systemClock)
    return familiesOf(store, await store.countBy(FAMILY, {}))
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
  remember: (kids) => rememberKeys(kids, store),
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

/** Ends the families. True if that failed, after a message. */
async function endFamilies(families: Families, { stdout, stderr }: Terminal): Promise<boolean> {
  try {
    const ended = await families.end()
    if (ended !== undefined) stdout.write(`${countOfFamilies(ended)} ended\n`)
    return false
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    stderr.write(
      `postern: the families of refresh tokens could not be ended (${messageOf(thrown)}); ` +
        'the keys are replaced anyway. Run this command again when the store can be read.\n',
    )
    return true
  }
}
