/** Tells which parts of a description a configuration cannot say. */

/**
 * @param what a sentence
 * @param kind the sentence without the parts that differ from case to case; left out: the same
 * @param names the things that are counted with it
 */
export type Tell = (what: string, kind?: string, names?: readonly string[]) => void

/** The kind of note about keywords that schemas lose. */
export const LOST = 'keywords of schemas are left out'
