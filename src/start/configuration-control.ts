/** The configuration file on disk beside the configuration in force (C11.5.4). */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { problemLines, Problems } from '../config/problems.ts'
import { viewOf, withoutSecrets } from '../config/schema.ts'
import type { Environment } from '../config/validate.ts'
import type { Entry, Store } from '../contracts/store.ts'
import { BUSINESS, FUND, readBusiness, readFund, readRole, ROLE } from '../directory/schema.ts'
import { CLIENT, readStoredClient, readStoredUser, USER } from '../directory/stored-directory.ts'
import type { Clock } from '../kernel/clock.ts'
import { accessOf, compareAccess } from '../settings/access.ts'
import { checkConfiguration, loadConfiguration } from '../settings/check-configuration.ts'
import {
  changedSettings,
  type Configuration,
  configurationSchema,
  fixedChanges,
  isSidecar,
} from '../settings/configuration.ts'
import { NOTHING_STORED, type PartiesParts } from '../settings/parties.ts'
import {
  type ConfigurationOrders,
  type ConfigurationStanding,
  type FileCheck,
  type FileDifference,
  MOST_PATHS,
  MOST_STORED,
  type NoFile,
} from '../watch/status/configuration-orders.ts'
import type { ConfigurationLoads } from './configuration-loads.ts'

export interface ConfigurationControlParts {
  /** Absent if the configuration does not come from a file. */
  readonly file: string | undefined
  readonly environment: Environment
  readonly store: Pick<Store, 'list'>
  readonly clock: Clock
  readonly loads: Pick<ConfigurationLoads, 'loadedAt' | 'refused'>
}

const NO_FILE: NoFile = { unreadable: ['the configuration does not come from a file'] }

/** A configuration as it may be shown. */
export const shownConfiguration = (configuration: Configuration): unknown =>
  withoutSecrets(viewOf(configurationSchema), configuration)

const digestOf = (configuration: Configuration): string =>
  createHash('sha256')
    .update(JSON.stringify(shownConfiguration(configuration)))
    .digest('hex')

export class ConfigurationControl implements ConfigurationOrders {
  readonly #parts: ConfigurationControlParts
  #configuration: Configuration
  #digest: string

  constructor(configuration: Configuration, parts: ConfigurationControlParts) {
    this.#parts = parts
    this.#configuration = configuration
    this.#digest = digestOf(configuration)
  }

  /** Takes over the configuration that is in force now. */
  adopt(configuration: Configuration): void {
    this.#configuration = configuration
    this.#digest = digestOf(configuration)
  }

  standing(): ConfigurationStanding {
    const { file, loads } = this.#parts
    return { file, digest: this.#digest, loadedAt: loads.loadedAt, refused: loads.refused }
  }

  async check(): Promise<FileCheck | NoFile> {
    const { file, environment } = this.#parts
    if (file === undefined) return NO_FILE
    const problems = await checkConfiguration(file, environment)
    const { configuration } = loadConfiguration(file, environment)
    const needsRestart = configuration === undefined ? [] : fixedChanges(this.#configuration, configuration)
    const fits = !problems.failed && needsRestart.length === 0
    return {
      fits,
      problems: problemLines(problems, 'error'),
      warnings: problemLines(problems, 'warning'),
      needsRestart,
    }
  }

  async compare(): Promise<FileDifference | NoFile> {
    const { file, environment } = this.#parts
    if (file === undefined) return NO_FILE
    const { configuration: next, problems } = loadConfiguration(file, environment)
    if (next === undefined) return { unreadable: problemLines(problems) }
    const before = this.#configuration
    const changed = changedSettings(before, next)
    const { stored, withStored } = await this.#storedPeople()
    const parts: PartiesParts = { environment, stored, clock: this.#parts.clock }
    const [old, rows] = [await accessOf(before, parts, new Problems()), await accessOf(next, parts, problems)]
    if (problems.failed) return { unreadable: problemLines(problems) }
    return {
      same: isDeepStrictEqual(before, next),
      changed: changed.slice(0, MOST_PATHS),
      changedCount: changed.length,
      needsRestart: fixedChanges(before, next),
      ...compareAccess(old, rows),
      withStored,
    }
  }

  async #storedPeople(): Promise<{ readonly stored: PartiesParts['stored']; readonly withStored: boolean }> {
    if (isSidecar(this.#configuration)) return { stored: NOTHING_STORED, withStored: true }
    const read = (kind: string): Promise<readonly Entry[]> =>
      this.#parts.store.list(kind, { after: undefined, limit: MOST_STORED + 1 })
    const [clients, users] = [await read(CLIENT), await read(USER)]
    const [businesses, funds, roles] = [await read(BUSINESS), await read(FUND), await read(ROLE)]
    if ([clients, users, businesses, funds, roles].some(({ length }) => length > MOST_STORED))
      return { stored: NOTHING_STORED, withStored: false }
    return {
      stored: {
        clients: clients.map(({ value }) => readStoredClient(value)),
        users: users.map(({ value }) => readStoredUser(value)),
        businesses: businesses.map(({ value }) => readBusiness(value)),
        funds: funds.map(({ value }) => readFund(value)),
        roles: roles.map(({ value }) => readRole(value)),
      },
      withStored: true,
    }
  }
}
