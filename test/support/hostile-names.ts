/** Names that services may read as another one, made from it at random: in compatibility forms, encoded, and dirtied. */
import { below, oneOf, type Random } from './seeded-random.ts'

/** What some reading turns into a letter, digit or separator of ASCII. */
const formsOf = new Map<string, string[]>()
for (let code = 0x80; code < 0x2_00_00; code += 1) {
  if (code >= 0xd8_00 && code < 0xe0_00) continue
  const form = String.fromCodePoint(code)
  const texts = [
    form.normalize('NFKC').toLowerCase(),
    form.toUpperCase().toLowerCase().replaceAll('\u0307', ''),
  ]
  for (const text of new Set(texts))
    if (/^[!-~]{1,3}$/.test(text)) formsOf.set(text, [...(formsOf.get(text) ?? []), form])
}

/** What is skipped, joins, divides, ends, or begins an escape; and what is none of these. */
const DIRT = [
  ...[
    '\u200b',
    '\u00ad',
    '\ufeff',
    '\u0085',
    '\u2028',
    '\u00a0',
    '\u{e0001}',
    ' ',
    '\v',
    '-',
    '_',
    '+',
    '\0',
    '?',
  ],
  ...[
    '[',
    ']',
    '.',
    '\uff3b',
    '\uff0e',
    '\u2026',
    '\u0307',
    '\u0301',
    '\u0323',
    '\u0345',
    '\u0338',
    '\u{11099}\u{110ba}',
  ],
  ...[
    '%',
    '%25',
    '%00',
    '%5b',
    '%2',
    '%u',
    '%uff0',
    '\uff05',
    '\ufe6a',
    '%c3%a9',
    '%ef%bc',
    '%bd%83',
    '%CC%87',
  ],
  ...[
    '%ud835',
    '%udc1c',
    '\ud835',
    '\udc1c',
    '\u0130',
    '\u017f',
    '\u0131',
    '\u212a',
    'ß',
    'ė',
    'ċ',
    '\u1e9b',
    '\ufdfa',
  ],
  ...['\u1100', '\u1161', '\u00a8', '\uff12', '\uff15', '\uff42', 'B', 'u', '4', '1', '6'],
]

const escaped = (text: string): string => {
  if (!text.isWellFormed()) return text
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

const escapedUnits = (random: Random, text: string): string =>
  text.replaceAll(
    /[^]/g,
    (unit) => `%${oneOf(random, ['u', 'U'])}${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const widened = (random: Random, text: string): string =>
  text.replaceAll(/[!-~]/g, (each) =>
    random() < 0.6 ? String.fromCodePoint(each.charCodeAt(0) + 0xfe_e0) : each,
  )

function spelled(random: Random, letter: string, depth: number): string {
  const kind = random()
  let text = letter
  if (kind < 0.25) text = oneOf(random, formsOf.get(letter.toLowerCase()) ?? [letter])
  else if (kind < 0.35) text = letter.toUpperCase()
  else if (kind < 0.4) text = letter.normalize('NFD')
  for (let level = 0; level < depth; level += 1) {
    const how = random()
    if (how < 0.3) text = escaped(text)
    else if (how < 0.45) text = escapedUnits(random, text)
    else if (how < 0.6) text = widened(random, text)
  }
  return text
}

/** @param depth encodings of a letter, one within the other */
export function spelledLike(random: Random, wanted: string, depth: number): string {
  const dirt = (): string => {
    const piece = oneOf(random, DIRT)
    return random() < 0.4 ? spelled(random, piece, depth) : piece
  }
  const share = random() < 0.4 ? 0 : random() * 0.3
  let name = random() < 0.3 ? oneOf(random, DIRT) : ''
  for (const letter of wanted) name += spelled(random, letter, depth) + (random() < share ? dirt() : '')
  for (let more = below(random, 3); more > 0; more -= 1) name += dirt()
  return name
}

/** A pair of a query or form, or a value of one, that may hide the name behind separators and encodings. */
export function pairLike(random: Random, wanted: string): string {
  let text = oneOf(random, ['', 'x=1', `${spelledLike(random, 'x', 1)}=`])
  for (let more = below(random, 3); more >= 0; more -= 1) {
    const separator = oneOf(random, [
      '',
      '&',
      ';',
      '%26',
      '%3b',
      '%2526',
      '\uff1b',
      '%uff06',
      '%2',
      '%',
      '%c3',
      '%u0',
    ])
    const sign = oneOf(random, ['=', '%3d', '%253d', '\uff1d', '\u2260', '', '=1'])
    const piece =
      separator + oneOf(random, ['&', '%26', '']) + spelledLike(random, wanted, below(random, 3)) + sign
    text += random() < 0.3 && piece.isWellFormed() ? encodeURIComponent(piece) : piece
  }
  return text
}
