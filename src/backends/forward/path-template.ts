import type { Call } from '../../contracts/backend.ts'

/** What a template may name: each stands for segments of the judged target, and for nothing else (T1.6). */
const PIECES: Readonly<
  Record<string, (segments: readonly string[], fundLevel: boolean) => readonly string[]>
> = {
  version: (segments) => segments.slice(1, 2),
  business: (segments) => segments.slice(3, 4),
  fund: (segments, fundLevel) => (fundLevel ? segments.slice(4, 5) : []),
  area: (segments, fundLevel) => segments.slice(fundLevel ? 5 : 4, fundLevel ? 6 : 5),
  action: (segments, fundLevel) => segments.slice(fundLevel ? 6 : 5),
}

/** Unreserved characters and few others: nothing that any upstream reads as something else. */
const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/
const PIECE = /^\{([a-z]+)\}$/

type Part = (segments: readonly string[], fundLevel: boolean) => readonly string[]

/** The path that a call is sent to, made of its judged target. */
export type PathTemplate = (call: Pick<Call, 'target' | 'action'>) => string

/**
 * Compiles `/v2/{business}/{area}/{action}`. Each segment is literal or one piece: `version`, `business`, `fund` (left
 * out at business level), `area`, `action` (all of its segments, parameters as the client gave them). Answers what is
 * wrong with it, if anything is.
 */
export function compilePathTemplate(template: string): PathTemplate | string {
  if (!template.startsWith('/') || template === '/') return 'must begin with "/" and a segment'
  const parts: Part[] = []
  for (const segment of template.slice(1).split('/')) {
    const part = partOf(segment)
    if (typeof part === 'string') return part
    parts.push(part)
  }
  return ({ target, action }) => {
    const fundLevel = action.level === 'fund'
    return `/${parts.flatMap((part) => part(target.segments, fundLevel)).join('/')}`
  }
}

function partOf(segment: string): Part | string {
  const [, name] = PIECE.exec(segment) ?? []
  if (name !== undefined) {
    const piece = Object.hasOwn(PIECES, name) ? PIECES[name] : undefined
    return piece ?? `has no piece {${name}}; expected one of {${Object.keys(PIECES).join('}, {')}}`
  }
  if (!LITERAL.test(segment) || segment === '.' || segment === '..')
    return 'must be made of segments that are plain text or one {piece} each'
  const literal = [segment]
  return () => literal
}
