import { Fault, toFault } from '../kernel/faults.ts'
import type { Authorities } from './authorities.ts'
import { checkHead, type Head } from './head.ts'
import { parseRequestTarget, type RequestTarget } from './request-target.ts'

/** Characters of the target, bytes of the header lines, number of the header lines. */
export interface HeadLimits {
  readonly target: number
  readonly headers: number
  readonly headerCount: number
}

export interface HeadRules {
  readonly authorities: Authorities
  readonly limits: HeadLimits
}

/** C4.1: limits, head, then target. The fault of the first that fails. */
export function readTarget(head: Head, { authorities, limits }: HeadRules): RequestTarget | Fault {
  try {
    if (head.rawTarget.length > limits.target) throw new Fault('target_too_long')
    checkHeaderSize(head.rawHeaders, limits)
    checkHead(head)
    return parseRequestTarget(head.rawTarget, authorities, limits.target)
  } catch (thrown) {
    return toFault(thrown)
  }
}

function checkHeaderSize(rawHeaders: readonly string[], limits: HeadLimits): void {
  let size = 0
  for (const part of rawHeaders) size += part.length + 2 // `: ` and the line's end
  if (size > limits.headers || rawHeaders.length > limits.headerCount * 2)
    throw new Fault('headers_too_large')
}
