import type { Exchange } from '../../contracts/exchange.ts'
import type { RequestTarget } from '../../http/request-target.ts'
import { Fault } from '../../kernel/faults.ts'

/** C4.1: the request could be read (C3.4, C3.6, limits), the service takes it on, and its path is one of ours. */
export function readTarget({ target, refusal }: Exchange): RequestTarget {
  if (target instanceof Fault) throw target
  if (refusal !== undefined) throw refusal
  if (target.segments[0] !== 'api') throw new Fault('outside')
  return target
}
