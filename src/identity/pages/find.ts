/** The searches of pages, which the server answers (C6.2.2, C11.4). */

/** The longest search, in characters: a longer one would find nothing more. */
const LONGEST_SEARCH = 100

/** The search of a query; empty if there is none. */
export const searchIn = (params: { get(name: 'find'): string | null | undefined }): string =>
  (params.get('find') ?? '').trim().slice(0, LONGEST_SEARCH)

const folded = (text: string): string => text.normalize('NFKC').toLowerCase()

/** Whether each word of the search is in a text, in any case and as any part of a word. */
export function finderOf(find: string): (text: string) => boolean {
  const words = folded(find).split(/\s+/)
  return (text) => {
    const searched = folded(text)
    return words.every((word) => searched.includes(word))
  }
}
