import type { RequestTarget } from '../../http/request-target.ts'
import { Fault } from '../../kernel/faults.ts'

export const API_VERSION = '1.0'

/** C4.3, C3.1: one version is known; a missing one is as unknown as any other. */
export function requireApiVersion({ segments }: RequestTarget): void {
  if (segments[1] !== API_VERSION) throw new Fault('unknown_api_version')
}
