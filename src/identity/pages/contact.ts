/** What a browser can open, by the form of the text; the first match wins. */
const ADDRESSES: readonly (readonly [RegExp, (contact: string) => string])[] = [
  [/^https?:\/\//, (contact) => contact],
  [/^[^\s@]+@[^\s@]+$/, (contact) => `mailto:${contact}`],
  [/^\+?[0-9][0-9 ().-]{4,}$/, (contact) => `tel:${contact.replace(/[^0-9+]/g, '')}`],
]

/** The address of a web page, an e-mail address or a telephone number, as configured; undefined for any other text. */
export function contactAddress(contact: string): string | undefined {
  const [, addressOf] = ADDRESSES.find(([form]) => form.test(contact)) ?? []
  return addressOf?.(contact)
}
