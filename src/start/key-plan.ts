/** How the service's own keys are kept and rotated, by its configuration. */
import { join } from 'node:path'
import { planKeys } from '../keys/config.ts'
import { FolderKeys } from '../keys/folder-keys.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import type { Configuration } from '../settings/configuration.ts'

export const keysPlanOf = ({ data, keys, identity }: Configuration): KeysPlan =>
  planKeys(new FolderKeys(join(data, 'keys')), keys, identity.idToken.lifetime)
