/** What an extension may add to Postern: one literal, in `extension.ts` of its folder. Its work is loaded by `import()`. */
import type { FirstConfigurationSource } from './first-configuration.ts'

export interface Extension {
  /** A source of the configuration that `postern init` writes (C10). */
  readonly firstConfiguration?: FirstConfigurationSource
}
