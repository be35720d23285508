/** The editors of the directory for one configuration. */
import type { Environment } from '../config/validate.ts'
import { Problems } from '../config/problems.ts'
import { compileDirectory } from '../directory/compile.ts'
import { type Editors, openEditors } from '../directory/editors.ts'
import { Hasher } from '../directory/hasher.ts'
import type { Clock } from '../kernel/clock.ts'
import { AdminError } from '../operator/errors.ts'
import { compileScopes } from '../config/scopes/schema.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import type { State } from './state.ts'

export interface EditorParts {
  readonly state: Pick<State, 'store' | 'feed' | 'tokenRevoker'>
  readonly clock: Clock
  readonly environment: Environment
}

/** Compiles the directory of a configuration, to edit beside it. Its problems are in the report. */
export async function openConfiguredEditors(
  { scopes, directory }: Configuration,
  { state, clock, environment }: EditorParts,
  problems: Problems,
): Promise<Editors> {
  const catalogue = compileScopes(scopes, problems)
  const configured = await compileDirectory(directory, catalogue, problems, environment)
  const { store, feed, tokenRevoker } = state
  const peopleElsewhere = directory.people !== undefined
  const parts = { store, feed, tokenRevoker, clock, configured, catalogue, peopleElsewhere }
  return openEditors({ ...parts, hasher: new Hasher() })
}

/**
 * The editors for the configuration in force, opened when the first order needs them: a directory may be large, and a
 * supervisor has no other use for it.
 */
export class ConfiguredEditors {
  readonly #parts: EditorParts
  #opened: { readonly configuration: Configuration; readonly editors: Promise<Editors> } | undefined

  constructor(parts: EditorParts) {
    this.#parts = parts
  }

  /** Rejects with AdminError 409 or 503 if there is no directory, or its files have changed and have problems now. */
  of(configuration: Configuration): Promise<Editors> {
    if (this.#opened?.configuration !== configuration)
      this.#opened = { configuration, editors: this.#open(configuration) }
    return this.#opened.editors
  }

  /** Forgets what was opened for another configuration. */
  forget(): void {
    this.#opened = undefined
  }

  async #open(configuration: Configuration): Promise<Editors> {
    if (isSidecar(configuration)) throw new AdminError(409, 'a sidecar has no directory')
    const problems = new Problems()
    const editors = await openConfiguredEditors(configuration, this.#parts, problems)
    if (!problems.failed) return editors
    this.forget()
    throw new AdminError(
      503,
      'the files of the directory have changed, and have problems now: mend them, and reload',
    )
  }
}
