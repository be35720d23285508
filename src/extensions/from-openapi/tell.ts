/** How what a configuration cannot say is told. */

/**
 * @param what a sentence
 * @param kind the sentence without what differs from case to case; left out: the same
 * @param names what is counted beside it
 */
export type Tell = (what: string, kind?: string, names?: readonly string[]) => void

/** The kind of what schemas lose. */
export const LOST = 'keywords of schemas are left out'
