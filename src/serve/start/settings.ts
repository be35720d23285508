import type { Extension } from '../../operate/hooks/extension.ts'
import type { TrailOpener } from '../../operate/hooks/kept-trail.ts'
import type { AdminOperation } from '../../operate/operation/operation.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { settingsWith } from '../../operate/settings/settings.ts'
import { NO_NOTICES, type OpenLogoutNotices } from '../../identity/dependencies/logouts.ts'
import { NO_PROFILE, type OpenSecurityProfile } from '../../operate/hooks/security-profile.ts'
import { peopleSourceOf } from '../../identity/directory/records/people-source.ts'
import type { DirectoryConfig } from '../../identity/directory/records/schema.ts'
import * as extensions from './extensions.ts'

export const EXTENSIONS: readonly Extension[] = Object.values<Extension>(extensions)

/** By what configuration files are read and checked: with the keys, kinds and checks of all extensions. */
export const SETTINGS = settingsWith(EXTENSIONS.flatMap(({ settings }) => settings ?? []))

const openNotices: OpenLogoutNotices =
  EXTENSIONS.find(({ logouts }) => logouts)?.logouts ?? (() => Promise.resolve(NO_NOTICES))

/** The parts of a state that extensions add. */
export const STATE_PARTS = { openNotices, stores: SETTINGS.added.stores }

export const loadSecurityProfile: () => Promise<OpenSecurityProfile> =
  EXTENSIONS.find(({ security }) => security)?.security ?? (() => Promise.resolve(NO_PROFILE))

/** Counters of identity that extensions add: in every process the same. */
export const ADDED_COUNTERS = EXTENSIONS.flatMap(({ counters = [] }) => counters)

/** Loads what opens a trail, of the extension that says where trails are. Undefined without one. */
export const trailOpener = EXTENSIONS.find(({ settings }) => settings?.trail)?.trail

/** The folder of the trail of a configuration; undefined if none is kept. */
export const trailFolderOf = (configuration: Configuration): string | undefined =>
  SETTINGS.added.trail?.folderOf(configuration)

/** Undefined if the configuration keeps no trail: then nothing of the extension is loaded. */
export const trailOpenerOf = async (configuration: Configuration): Promise<TrailOpener | undefined> =>
  trailFolderOf(configuration) === undefined ? undefined : trailOpener?.()

/** The operations that extensions add to the admin API. */
export const addedOperations = async (): Promise<readonly AdminOperation[]> =>
  (await Promise.all(EXTENSIONS.map(async ({ operations }) => (await operations?.()) ?? []))).flat()

const PEOPLE_SOURCES = EXTENSIONS.flatMap(({ people }) => people ?? [])

/** Whether people that live elsewhere are found by a configuration. They can be neither listed nor changed here. */
export const hasPeopleElsewhere = (directory: DirectoryConfig): boolean =>
  peopleSourceOf(directory, PEOPLE_SOURCES) !== undefined
