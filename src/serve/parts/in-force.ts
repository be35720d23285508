/** The configuration in force, and what follows it in the process that supervises. */
import { problemsOfValues, targetValuesOf } from '../../gateway/backends/forward/schema/origins.ts'
import { Problems } from '../../base/config/problems.ts'
import { compileScopes } from '../../base/config/scopes/schema.ts'
import { compileDirectory, type RecordReading } from '../../identity/directory/records/compile.ts'
import type { Sealer } from '../../base/contracts/people/keys.ts'
import { DirectoryRefusal, type EditingParts } from '../../identity/directory/editors/editing.ts'
import { type Editors, openEditors } from '../../identity/directory/editors/editors.ts'
import { Hasher } from '../../identity/directory/hashing/hasher.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import { AdminError } from '../../operate/operation/errors.ts'
import type { KeyWork } from '../../operate/operation/key-work.ts'
import type { KeysPlan } from '../../identity/keys/signing/service-keys.ts'
import { oneAtATime } from '../../base/kernel/in-turn.ts'
import { namedValuesOf } from '../../operate/settings/business-values.ts'
import { type Configuration, configuredSwitches } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { State } from './state.ts'
import type { DirectoryConfig } from '../../identity/directory/records/schema.ts'

export interface EditorParts extends RecordReading {
  /** Where the keys are, beside which secrets of records are sealed. */
  readonly place: Sealer | undefined
  readonly state: Pick<EditingParts, 'store' | 'feed' | 'tokenRevoker'>
  readonly clock: Clock
  readonly pause: EditingParts['pause']
  /** Whether people that live elsewhere are found by a configuration. */
  readonly hasPeopleElsewhere: (directory: DirectoryConfig) => boolean
}

interface InForceParts extends Omit<EditorParts, 'place'> {
  /** Undefined in a sidecar. */
  readonly plan: KeysPlan | undefined
  readonly state: EditorParts['state'] & Pick<State, 'maintenance'>
}

/** Compiles the directory of a configuration, to edit beside it. Its problems are in the report. */
export async function openConfiguredEditors(
  configuration: Configuration,
  { state, clock, place, pause, hasPeopleElsewhere, ...reading }: EditorParts,
  problems: Problems,
): Promise<Editors> {
  const { scopes, directory } = configuration
  const catalogue = compileScopes(scopes, problems)
  const configured = await compileDirectory(directory, catalogue, problems, reading)
  const { store, feed, tokenRevoker } = state
  const namedValues = namedValuesOf(configuration)
  const targets = targetValuesOf(configuration.backends)
  const sealer = place && refusing(place)
  const parts = {
    store,
    feed,
    tokenRevoker,
    clock,
    configured,
    catalogue,
    peopleElsewhere: hasPeopleElsewhere(directory),
    namedValues,
    problemsOfValues: (texts: Readonly<Record<string, string>>) => problemsOfValues(targets, texts),
    sealer,
    pause,
  }
  return openEditors({ ...parts, hasher: new Hasher() })
}

/** A seal that cannot be used refuses the change. */
const refusing = (place: Sealer): Sealer => ({
  sealText: (text, at) =>
    place.sealText(text, at).catch((thrown: unknown) => {
      throw thrown instanceof KeyError ? new DirectoryRefusal(thrown.message) : thrown
    }),
  openText: (sealed, at) => place.openText(sealed, at),
})

/** The parts of a supervising service that follow the configuration in force. */
export class InForce {
  /** Absent in a sidecar. */
  readonly keys: KeyWork | undefined
  readonly #parts: InForceParts
  #configuration: Configuration
  #editors: Promise<Editors> | undefined

  constructor(configuration: Configuration, parts: InForceParts) {
    this.#parts = parts
    this.#configuration = configuration
    this.keys = keyWorkOf(parts)
    this.adopt(configuration)
  }

  get configuration(): Configuration {
    return this.#configuration
  }

  /** Takes over the configuration that is in force now. */
  adopt(configuration: Configuration): void {
    this.#configuration = configuration
    this.#editors = undefined
    this.keys?.plan.place.adopt?.(configuration.store)
    this.#parts.state.maintenance.configure(configuredSwitches(configuration))
  }

  /**
   * Opened when they are asked for first: a directory may be large, and a supervisor has no other use for it. Rejects with
   * AdminError 409 or 503 if there is no directory, or its files have changed and have problems now.
   */
  editors(): Promise<Editors> {
    this.#editors ??= this.#openEditors(this.#configuration)
    return this.#editors
  }

  async #openEditors(configuration: Configuration): Promise<Editors> {
    if (isSidecar(configuration)) throw new AdminError(409, 'a sidecar has no directory')
    const problems = new Problems()
    const place = this.keys?.plan.place
    const editors = await openConfiguredEditors(configuration, { ...this.#parts, place }, problems)
    if (!problems.failed) return editors
    this.#editors = undefined
    throw new AdminError(
      503,
      'the files of the directory have changed, and have problems now: mend them, and reload',
    )
  }
}

function keyWorkOf({ plan, state, clock }: InForceParts): KeyWork | undefined {
  if (plan === undefined) return undefined
  const { store } = state
  return {
    plan,
    clock,
    store: () => Promise.resolve(store),
    elsewhere: false,
    announced: new Set(),
    inTurn: oneAtATime(),
  }
}
