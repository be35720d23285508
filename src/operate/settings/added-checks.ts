/** What a check of a configuration is, and what extensions add to the checks. */
import type { Problems } from '../../base/config/problems.ts'
import type { AddedBackends } from '../../gateway/backends/kinds.ts'
import type { Directory } from '../../identity/directory/records/compile.ts'
import type { ClientForm } from '../../identity/directory/records/schema.ts'
import type { Configuration } from './configuration.ts'
import type { TrailSettings } from './trail-settings.ts'
import type { SharedStoreKinds } from './shared-stores.ts'

/** @typeParam Section sections of the top level; an extension has its own too */
export interface ConfigurationCheck<Section extends string = keyof Configuration> {
  /** Sections that must have been read, with those of their entries that could be read. */
  readonly needs: readonly Section[]
  /** Sections that must have been read with all their entries. */
  readonly whole?: readonly Section[]
  readonly run: (configuration: Configuration, problems: Problems, shared: Shared) => unknown
}

/** What several checks need. */
export interface Shared {
  readonly unreadable: ReadonlySet<unknown>
  readonly addedBackends: AddedBackends
  readonly addedStores: SharedStoreKinds
  readonly trail: TrailSettings | undefined
  /** The compiled directory; the first call reports its problems. */
  readonly directory: () => Promise<Directory>
}

/** What extensions add. */
export interface AddedChecks {
  /** Checks of rules that the schema cannot express: cheap, and they open nothing. */
  readonly checks: readonly ConfigurationCheck<string>[]
  /** Checks that open something. The service makes them when it opens a configuration for serving. */
  readonly partChecks: readonly ConfigurationCheck<string>[]
  /** Checks open backends of these kinds. */
  readonly backends: AddedBackends
  readonly clientForm: ClientForm
  /** Where the trail is kept (C12). Undefined without an extension that keeps it; one does at most. */
  readonly trail: TrailSettings | undefined
  /** The kinds of stores that several nodes share. */
  readonly stores: SharedStoreKinds
}
