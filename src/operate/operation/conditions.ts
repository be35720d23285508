/** Changes that are made only to the version that the operator has seen: `If-Match`, answered with 412 (C11.5). */
import { fitsStrongly, readTagCondition, type TagCondition } from '../../base/http/head/entity-tag.ts'
import { AdminError } from './errors.ts'
import { type AdminAnswer, type AdminRequest, textSchema } from './operation.ts'

export const IF_MATCH = textSchema(
  'The `ETag` of the version that is meant, or several of them, or `*`. Without it the latest version is meant.',
)

/**
 * The versions that a request means; undefined if it does not say.
 *
 * @throws AdminError 400 if the header cannot be read: a change must not be made to a version that was not meant
 */
export function readIfMatch(header: string | undefined): TagCondition | undefined {
  if (header === undefined) return undefined
  const condition = readTagCondition(header)
  if (condition !== undefined) return condition
  throw new AdminError(400, 'the request does not fit', [
    'If-Match  expected "*", or entity tags in quotes, divided by commas, such as "1-4"',
  ])
}

/** Whether a version, by its tag, is the one that is meant. */
export type IsMeant = (tag: string) => boolean

/** Which versions a request means; undefined if it does not say. */
export const meantBy = ({ ifMatch }: Pick<AdminRequest, 'ifMatch'>): IsMeant | undefined =>
  ifMatch && ((tag) => fitsStrongly(ifMatch, tag))

/** 412: the version that was meant is not the latest one. Nothing has changed. */
export const overtaken = (tag: string): AdminAnswer => ({
  status: 412,
  tag,
  body: {
    error: 'somebody else was faster: nothing has changed',
    problems: [`If-Match  the version now is "${tag}": read it, and decide again`],
  },
})
