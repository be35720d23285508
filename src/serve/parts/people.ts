/** Who is found by a configuration: its own people, those of the store, and those whom the operator's code finds. */
import { isDeepStrictEqual } from 'node:util'
import { areAsLoaded } from '../../base/config/modules/import-file.ts'
import type { Problems } from '../../base/config/problems.ts'
import type { PasswordVerifier, People } from '../../base/contracts/people/people.ts'
import type { Directory } from '../../identity/directory/records/compile.ts'
import type { Hasher } from '../../identity/directory/hashing/hasher.ts'
import {
  type ModuleDirectory,
  openPeople,
  type PeopleOpening,
} from '../../identity/directory/module-people/module-directory.ts'
import {
  LayeredPasswords,
  ModulePeople,
  type ModulePeopleParts,
} from '../../identity/directory/module-people/module-people.ts'
import { type DisabledMarks, MarkedPeople } from '../../identity/directory/records/marks.ts'
import { LayeredPeople, StoredPeople } from '../../identity/directory/records/people.ts'
import { LayeredPlaces } from '../../identity/directory/records/places.ts'
import type { DirectoryConfig } from '../../identity/directory/records/schema.ts'
import { Roles, type StoredDirectory } from '../../identity/directory/records/stored-directory.ts'
import type { StoredPlaces } from '../../identity/directory/records/stored-places.ts'
import type { Clock } from '../../base/kernel/clock.ts'

/** The code of `directory.people`. */
export interface OpenedPeople {
  readonly config: NonNullable<DirectoryConfig['people']>
  readonly module: ModuleDirectory
}

export interface PeopleDependencies {
  readonly clock: Clock
  readonly peopleFailed: PeopleOpening['note']
}

/** What was opened before is kept if neither its section nor its files have changed. */
export async function openPeopleOf(
  config: DirectoryConfig['people'],
  { clock, peopleFailed }: PeopleDependencies,
  problems: Problems,
  before: OpenedPeople | undefined,
): Promise<OpenedPeople | undefined> {
  if (config === undefined) return undefined
  const same = isDeepStrictEqual(config, before?.config)
  if (same && before !== undefined && areAsLoaded(before.module.files)) return before
  const module = await openPeople(config, { clock, problems, note: peopleFailed })
  return module && { config, module }
}

export interface LayerParts extends Pick<ModulePeopleParts, 'store' | 'tokenRevoker' | 'recorder' | 'clock'> {
  readonly hasher: Hasher
  readonly marks: DisabledMarks
  readonly storedDirectory: StoredDirectory
  readonly storedPlaces: StoredPlaces
}

/** The people of the configuration, of the store and of `directory.people`, in this order. */
export function peopleOf(
  { directory, people: opened }: { readonly directory: Directory; readonly people: OpenedPeople | undefined },
  parts: LayerParts,
): { readonly people: People; readonly passwords?: PasswordVerifier } {
  const { clock, hasher, marks, storedDirectory, storedPlaces } = parts
  const roles = new Roles(directory.roles, storedDirectory)
  const layers = new LayeredPeople(directory.people, new StoredPeople(storedDirectory, roles, clock))
  const earlier = new MarkedPeople(layers, marks)
  if (opened === undefined) return { people: earlier }
  const { module } = opened
  const places = new LayeredPlaces(directory.places, storedPlaces)
  const people = new ModulePeople({ ...parts, module, earlier, roles, places })
  return {
    people: new LayeredPeople(earlier, people),
    passwords: new LayeredPasswords({ hasher, module, people }),
  }
}
