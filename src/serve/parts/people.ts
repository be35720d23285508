/** The people that a configuration finds: its own, those of the store, and those that live elsewhere. */
import { isDeepStrictEqual } from 'node:util'
import { areAsLoaded } from '../../base/config/modules/import-file.ts'
import type { Problems } from '../../base/config/problems.ts'
import type { PasswordVerifier, People } from '../../base/contracts/people/people.ts'
import type { Hasher } from '../../identity/directory/hashing/hasher.ts'
import type { Directory } from '../../identity/directory/records/compile.ts'
import { type DisabledMarks, MarkedPeople } from '../../identity/directory/records/marks.ts'
import {
  type OpenedSource,
  type PeopleLayerParts,
  type PeopleOpening,
  peopleSourceOf,
} from '../../identity/directory/records/people-source.ts'
import { LayeredPeople, StoredPeople } from '../../identity/directory/records/people.ts'
import { LayeredPlaces } from '../../identity/directory/records/places.ts'
import type { ClientForm, DirectoryConfig } from '../../identity/directory/records/schema.ts'
import { Roles, type StoredDirectory } from '../../identity/directory/records/stored-directory.ts'
import type { StoredPlaces } from '../../identity/directory/records/stored-places.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { Extension } from '../../operate/hooks/extension.ts'

/** People that live elsewhere. */
export interface OpenedPeople {
  readonly config: object
  readonly source: OpenedSource
}

export interface PeopleDependencies {
  readonly clock: Clock
  readonly extensions: readonly Extension[]
  readonly peopleFailed: PeopleOpening['note']
}

/** People that were opened before are kept if neither their section nor its files have changed. */
export async function openPeopleOf(
  directory: DirectoryConfig,
  { clock, extensions, peopleFailed }: PeopleDependencies,
  problems: Problems,
  before: OpenedPeople | undefined,
): Promise<OpenedPeople | undefined> {
  const source = peopleSourceOf(
    directory,
    extensions.flatMap(({ people }) => people ?? []),
  )
  const config = source?.configOf(directory)
  if (source === undefined || config === undefined) return undefined
  const same = isDeepStrictEqual(config, before?.config)
  if (same && before !== undefined && areAsLoaded(before.source.files)) return before
  const opened = await source.open(config, { clock, problems, note: peopleFailed })
  return opened && { config, source: opened }
}

export interface LayerParts extends Pick<PeopleLayerParts, 'store' | 'tokenRevoker' | 'recorder' | 'clock'> {
  readonly hasher: Hasher
  readonly clientForm: ClientForm
  readonly marks: DisabledMarks
  readonly storedDirectory: StoredDirectory
  readonly storedPlaces: StoredPlaces
}

/** The people of the configuration, of the store and those that live elsewhere, in this order. */
export function peopleOf(
  { directory, people: opened }: { readonly directory: Directory; readonly people: OpenedPeople | undefined },
  parts: LayerParts,
): { readonly people: People; readonly passwords?: PasswordVerifier } {
  const { clientForm, clock, marks, storedDirectory, storedPlaces } = parts
  const roles = new Roles(directory.roles, storedDirectory)
  const layers = new LayeredPeople(
    directory.people,
    new StoredPeople(storedDirectory, roles, clock, clientForm),
  )
  const earlier = new MarkedPeople(layers, marks)
  if (opened === undefined) return { people: earlier }
  const places = new LayeredPlaces(directory.places, storedPlaces)
  return opened.source.layer({ ...parts, earlier, roles, places })
}
