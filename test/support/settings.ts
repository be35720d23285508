/** Reads and checks configuration files with the keys of all extensions, as the programs do. */
import type { Environment } from '../../src/base/config/validate.ts'
import type { RecordReading } from '../../src/identity/directory/records/compile.ts'
import { checkConfiguration, loadConfiguration } from '../../src/operate/settings/check-configuration.ts'
import { SETTINGS as OWN } from '../../src/serve/start/settings.ts'

/** How records are read, without an environment. */
export const READING: RecordReading = { environment: {}, clientForm: OWN.added.clientForm }

export const SETTINGS = {
  ...OWN,
  load: (file: string, environment: Environment) => loadConfiguration(OWN, file, environment),
  check: (file: string, environment: Environment, strict?: boolean) =>
    checkConfiguration(OWN, file, environment, strict),
}
