/** Who is found by a configuration: its own people, those of the store, and those whom the operator's code finds. */
import { isDeepStrictEqual } from 'node:util'
import { areAsLoaded } from '../config/modules/import-file.ts'
import type { Problems } from '../config/problems.ts'
import type { PasswordVerifier, People } from '../contracts/people.ts'
import type { Directory } from '../directory/compile.ts'
import type { Hasher } from '../directory/hasher.ts'
import {
  type ModuleDirectory,
  openPeople,
  type PeopleOpening,
} from '../directory/module-people/module-directory.ts'
import {
  LayeredPasswords,
  ModulePeople,
  type ModulePeopleParts,
} from '../directory/module-people/module-people.ts'
import { type DisabledMarks, MarkedPeople } from '../directory/marks.ts'
import { LayeredPeople, StoredPeople } from '../directory/people.ts'
import { LayeredPlaces } from '../directory/places.ts'
import type { DirectoryConfig } from '../directory/schema.ts'
import { Roles, type StoredDirectory } from '../directory/stored-directory.ts'
import type { StoredPlaces } from '../directory/stored-places.ts'
import type { Clock } from '../kernel/clock.ts'

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
