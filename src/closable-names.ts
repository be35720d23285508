import type { Configuration } from './configuration.ts'
import type { ClosableNames } from './operations/maintenance-config.ts'

/** What maintenance switches may name. Names that stand in files of the directory are not known here. */
export function closableNames({
  areas,
  backends,
  directory,
}: Pick<Configuration, 'areas' | 'backends' | 'directory'>): ClosableNames {
  const { files, businesses, clients } = directory
  return {
    area: new Set(Object.keys(areas)),
    backend: new Set(Object.keys(backends)),
    business: files.businesses === undefined ? new Set(Object.keys(businesses)) : undefined,
    client: files.clients === undefined ? new Set(Object.keys(clients)) : undefined,
  }
}
