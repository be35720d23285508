const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const REFERENCE = /&(?:#x([0-9A-Fa-f]+)|#([0-9]+)|([a-z]+));/g

/**
 * The text of a well-formed piece of XML: the five entities and character references are decoded, once. What a reference
 * stands for is not read again: `&amp;lt;` is `&lt;`.
 */
export const decodeReferences = (text: string): string =>
  text.includes('&')
    ? text.replace(REFERENCE, (whole, hex?: string, decimal?: string, name?: string) => {
        if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
        if (decimal !== undefined) return String.fromCodePoint(Number.parseInt(decimal, 10))
        return ENTITIES[name ?? ''] ?? whole
      })
    : text

/** An attribute's value (XML 1.0 §3.3.3): white space as it is written is a space, a reference to it is what it says. */
export const decodeAttribute = (value: string): string => decodeReferences(value.replaceAll(/[\t\n\r]/g, ' '))

const IN_ATTRIBUTE: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/** An attribute's value between double quotes, which every parser reads back as this text. */
export const escapeAttribute = (value: string): string =>
  value.replaceAll(/[&<>"\t\n\r]/g, (character) => IN_ATTRIBUTE[character] ?? character)
