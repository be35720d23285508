/** The searches of pages, which the server answers (C6.2.2, C11.4). */
import { html, type Html } from './layout.ts'

/** The longest search, in characters: a longer one would find nothing more. */
const LONGEST_SEARCH = 100

interface SearchForm {
  readonly action: string
  readonly label: string
  readonly button: string
  /** Empty if there is none yet. */
  readonly find: string
}

/** @param more fields that go with the search */
export const searchForm = ({ action, button, find, label }: SearchForm, more: readonly Html[] = []): Html =>
  html`<form class="search" method="get" action="${action}" role="search">
    ${more}
    <label for="find">${label}</label>
    <div>
      <input
        id="find"
        name="find"
        type="search"
        value="${find}"
        maxlength="${LONGEST_SEARCH}"
        autocomplete="off"
      />
      <button class="second" type="submit">${button}</button>
    </div>
  </form>`

/** @param find of a query; undefined if there is none */
export const searchOf = (find: string | undefined): string => (find ?? '').trim().slice(0, LONGEST_SEARCH)

const folded = (text: string): string => text.normalize('NFKC').toLowerCase()

/** Whether each word of the search is in a text, in any case and as any part of a word. */
export function finderOf(find: string): (text: string) => boolean {
  const words = folded(find).split(/\s+/)
  return (text) => {
    const searched = folded(text)
    return words.every((word) => searched.includes(word))
  }
}
