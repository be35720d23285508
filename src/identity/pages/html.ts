/**
 * HTML as a template tag. Whatever is put into a template is escaped, but for what another template made; so text that
 * came from outside cannot become markup (T6). Slots stand in text or in quoted attributes, nowhere else.
 */
class Markup {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** A piece of HTML. Only `html` makes one. */
export type Html = Markup

/** What may stand in a template; false and undefined are nothing. */
export type Slot = Html | string | number | false | undefined | readonly Slot[]

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

function render(slot: Slot): string {
  if (slot === undefined || slot === false) return ''
  if (slot instanceof Markup) return slot.toString()
  return Array.isArray(slot) ? slot.map(render).join('') : escape(String(slot))
}

export const html = (strings: TemplateStringsArray, ...slots: readonly Slot[]): Html =>
  new Markup(strings.map((text, at) => text + render(slots[at])).join(''))
