import { isSidecar, type Configuration } from './configuration.ts'
import type { ClosableNames } from '../operations/maintenance/config.ts'

type Named = Pick<Configuration, 'areas' | 'backends' | 'directory' | 'issuers'>

/**
 * What maintenance switches may name. Names that stand in files of the directory are not known here, nor are the clients
 * of a sidecar's issuers, and its businesses where it has no directory.
 */
export function closableNames(configuration: Named): ClosableNames {
  const { areas, backends, directory } = configuration
  const { files, businesses, clients } = directory
  const sidecar = isSidecar(configuration)
  const hasBusinesses = !sidecar || Object.keys(businesses).length > 0
  return {
    area: new Set(Object.keys(areas)),
    backend: new Set(Object.keys(backends)),
    business: files.businesses === undefined && hasBusinesses ? new Set(Object.keys(businesses)) : undefined,
    client: files.clients === undefined && !sidecar ? new Set(Object.keys(clients)) : undefined,
  }
}
