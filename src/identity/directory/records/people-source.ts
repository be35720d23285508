/** People that live elsewhere: an extension finds them, behind those of the configuration and of the store. */
import type { LoadedFile } from '../../../base/config/modules/import-file.ts'
import type { Problems } from '../../../base/config/problems.ts'
import type { PasswordVerifier, People } from '../../../base/contracts/people/people.ts'
import type { Places } from '../../../base/contracts/people/places.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Store } from '../../../base/contracts/records/store.ts'
import type { TokenRevoker } from '../../../base/contracts/records/tokens.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import type { Hasher } from '../hashing/hasher.ts'
import type { DisabledMarks } from './marks.ts'
import type { DirectoryConfig } from './schema.ts'
import type { Roles, StoredDirectory } from './stored-directory.ts'

export interface PeopleOpening {
  readonly clock: Clock
  readonly problems: Problems
  /** Logs what the operator's code did outside of any call that waits for it. Must not throw. */
  readonly note: (
    event: 'module_failed' | 'people_decoy_failed' | 'people_thread_replaced',
    cause: unknown,
  ) => void
}

/** The parts of one configuration from which a layer of people is made. */
export interface PeopleLayerParts {
  /** The people of the configuration and of the store: their names and subjects are taken, and the ids of machines. */
  readonly earlier: People
  readonly roles: Pick<Roles, 'of'>
  readonly places: Pick<Places, 'findBusinesses'>
  readonly storedDirectory: Pick<StoredDirectory, 'findSubject'>
  readonly store: Pick<Store, 'create' | 'find' | 'remove'>
  readonly marks: Pick<DisabledMarks, 'current'>
  readonly tokenRevoker: TokenRevoker
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Clock
  readonly hasher: Pick<Hasher, 'verify' | 'requireRoom'>
}

interface PeopleLayer {
  readonly people: People
  /** Verifies passwords of all people, wherever their hashes are. */
  readonly passwords: PasswordVerifier
}

/** It outlives a configuration. */
export interface OpenedSource {
  /** The files of its code, in the versions that were loaded. */
  readonly files: readonly LoadedFile[]
  readonly layer: (parts: PeopleLayerParts) => PeopleLayer
  /** Verifications of passwords that wait for a place. */
  readonly waiting: () => number
  /** Never rejects. */
  readonly close: () => Promise<void>
}

export interface PeopleSource {
  /** Its section of the configuration; undefined if there is none. A reload with the same section keeps the source open. */
  readonly configOf: (directory: DirectoryConfig) => object | undefined
  /** Resolves with undefined, and reports a problem, if it cannot be used. @param config what `configOf` gave */
  readonly open: (config: object, opening: PeopleOpening) => Promise<OpenedSource | undefined>
}

/** The source that a configuration has. */
export const peopleSourceOf = (
  directory: DirectoryConfig,
  sources: readonly PeopleSource[],
): PeopleSource | undefined => sources.find(({ configOf }) => configOf(directory) !== undefined)
