/** `postern store copy`: from the store of one machine to one that several nodes share. */
import { dirname, join, resolve } from 'node:path'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { resealValues } from '../../identity/directory/records/values.ts'
import { FolderKeys } from '../../identity/keys/signing/folder-keys.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import { keysOf } from '../../identity/keys/signing/key-place.ts'
import { onSharedStore } from './run-commands.ts'
import { copyKeys, SealedKeys } from './sealed-keys.ts'
import { Seals } from '../../identity/keys/signing/seal.ts'
import { progressBar, RECORDS } from '../../operate/operation/progress.ts'
import type { AddedVerb, CommandParts } from '../../operate/hooks/added-command.ts'
import { countOf, printJson } from '../../operate/operation/terminal.ts'
import { EXIT, UsageError } from '../../operate/operation/verb.ts'
import { type PostgresSection, storeLocation } from './schema.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'

const SQLITE = 'sqlite:'

/** The path of the file. @throws UsageError */
function sourceOf(from: unknown): string {
  const path = typeof from === 'string' && from.startsWith(SQLITE) ? from.slice(SQLITE.length) : ''
  if (path === '') throw new UsageError('name the old store: --from sqlite:PATH')
  return resolve(path)
}

interface Copy {
  readonly file: string
  /** The folder of the old store's keys. */
  readonly keys: string
  readonly to: PostgresSection
  /** The configuration of `to`. */
  readonly node: Configuration
  readonly json: boolean
}

/** `postern store copy`. */
export const copyIntoShared: AddedVerb['work'] = ({ values }, parts) => {
  const { from: named, keys: folder } = values
  const file = sourceOf(named)
  return onSharedStore(parts, ({ configuration, store }) => {
    const keys = typeof folder === 'string' ? folder : join(dirname(file), 'keys')
    const order = { file, keys, to: store, node: configuration, json: values['json'] === true }
    return parts.recorded(configuration, { event: 'store.copied', from: file }, () => copy(order, parts))
  })
}

/** Rejects with StoreError or KeyError if it cannot be done. */
async function copy(
  { file, keys: folder, to, node, json }: Copy,
  { terminal, hasService, unkeptTrail, rehost }: CommandParts,
): Promise<number> {
  if (hasService(dirname(file)))
    throw new StoreError(
      `A service uses ${dirname(file)}: stop it, else the copy lacks what it goes on to write.`,
    )
  const unkept = unkeptTrail(dirname(file))
  if (unkept !== undefined) throw new StoreError(unkept)
  const keys = new FolderKeys(folder)
  await requireKeys(keys)
  const seals = new Seals(to.seal)
  const bar = progressBar(terminal, undefined, RECORDS)
  let sealed: readonly string[] = []
  const { copyStore } = await import('./copy-store.ts')
  const { records, changes } = await copyStore({
    from: file,
    to,
    progress: (progress) => bar.show(progress),
    add: async (store) => {
      const place = new SealedKeys(store, seals)
      const copied = await copyKeys(keys, place)
      sealed = [...copied, ...(await resealValues(store, keys, place)).sealed]
      await rehost(store, node)
    },
  }).finally(() => bar.clear())
  if (json) printJson({ from: file, to: storeLocation(to), records, changes, sealed }, terminal)
  else
    terminal.stdout.write(
      `${countOf(records, 'record')} and ${countOf(changes, 'change')} are in ${storeLocation(to)} now; sealed: ` +
        `${sealed.join(', ')}. Start no service on ${file} any more.\n`,
    )
  return EXIT.done
}

/** A service without its old keys would refuse what they have signed. Rejects with KeyError. */
async function requireKeys(keys: FolderKeys): Promise<void> {
  if ((await keysOf(keys)).length === 0)
    throw new KeyError(`There are no keys in ${keys.name}: name their folder with --keys.`)
}
