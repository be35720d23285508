import type { Head } from '../../http/head.ts'
import type { Negotiation, Representation } from '../../http/accept.ts'
import type { Operation } from '../action.ts'

/** How a success is written: enveloped in a negotiated format, or of the action's own type (C7.1). */
export type Outcome =
  | ({ readonly kind: 'envelope' } & Representation)
  | { readonly kind: 'own'; readonly version: number; readonly type: string }

/** C4.10: the media type, then the action version. */
export function negotiate(negotiation: Negotiation, { headers }: Head, operation: Operation): Outcome {
  const { produces, versions } = operation
  if (produces === undefined) {
    const { format, version, contentType } = negotiation.negotiate(headers.accept, versions)
    return { kind: 'envelope', format, version, contentType }
  }
  const type = negotiation.negotiateOwn(headers.accept, produces)
  return { kind: 'own', version: versions.defaultVersion, type }
}
