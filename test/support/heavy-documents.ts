/** T4.3: documents that are small to send, and made to be dear to read. */

const MIB = 1024 ** 2
const fill = (piece: string, around: (inner: string) => string): string =>
  around(piece.repeat(Math.floor((MIB - 100) / piece.length)))

export const HEAVY_BODIES: readonly (readonly [string, string, string])[] = [
  ['siblings', 'application/xml', fill('<a/>', (inner) => `<r>${inner}</r>`)],
  [
    'different siblings',
    'application/xml',
    `<r>${Array.from({ length: 90_000 }, (_, at) => `<a${at}/>`).join('')}</r>`.slice(0, MIB),
  ],
  ['depth 5,000', 'application/xml', '<a>'.repeat(5000) + '</a>'.repeat(5000)],
  ['depth 140,000', 'application/xml', '<a>'.repeat(149_000) + '</a>'.repeat(149_000)],
  ['character references', 'application/xml', fill('&#65;', (inner) => `<r><Status>${inner}</Status></r>`)],
  [
    'attributes',
    'application/xml',
    `<r ${Array.from({ length: 90_000 }, (_, at) => `a${at}=""`).join(' ')}/>`.slice(0, MIB),
  ],
  ['comments', 'application/xml', fill('<!---->', (inner) => `<r>${inner}<b></r>`)],
  ['CDATA', 'application/xml', fill('<![CDATA[]]>', (inner) => `<r><Status>${inner}</Status><b></r>`)],
  ['one long name', 'application/xml', `<r><${'a'.repeat(MIB - 100)}/></r>`],
  [
    'an expanding DTD',
    'application/xml',
    `<!DOCTYPE r [${fill('<!ENTITY a "b">', (inner) => inner)}]><r/>`.slice(0, MIB),
  ],
  ['lists in JSON', 'application/json', fill('[],', (inner) => `[${inner}[]]`)],
  [
    'keys in JSON',
    'application/json',
    `{${Array.from({ length: 70_000 }, (_, at) => `"k${at}":1`).join(',')}}`,
  ],
  ['depth in JSON', 'application/json', '['.repeat(MIB - 10)],
  ['one number in JSON', 'application/json', `[${'1'.repeat(MIB - 10)}]`],
  ['escapes in JSON', 'application/json', fill('\\u0041', (inner) => `{"Status":"${inner}"}`)],
  [
    '100,000 keys in a form',
    'application/x-www-form-urlencoded',
    Array.from({ length: 100_000 }, (_, at) => `k${at}=`).join('&'),
  ],
  ['escapes in a form', 'application/x-www-form-urlencoded', fill('%41', (inner) => `Status=${inner}`)],
  ['separators in a form', 'application/x-www-form-urlencoded', fill('&', (inner) => `${inner}Status=`)],
]

export const many = (text: string, times: number): string => text.repeat(times)

/** Refused by the reader itself. */
export const HEAVY_XML: readonly (readonly [string, string])[] = [
  ['5,000 levels', many('<a>', 5000) + many('</a>', 5000)],
  ['5,000 levels with attributes', many('<a type="array">', 5000) + many('</a>', 5000)],
  ['a million siblings', `<a>${many('<a/>', 1_000_000)}</a>`],
  ['as many siblings as fit in a body', `<a>${many('<a/>', 262_000)}</a>`],
  ['a million references', `<a>${many('&#65;', 1_000_000)}</a>`],
  ['as many references as fit in a body', `<a>${many('&lt;', 262_000)}</a>`],
  ['attributes by the thousand', `<a ${Array.from({ length: 50_000 }, (_, i) => `a${i}="b"`).join(' ')}/>`],
  [
    'declarations by the thousand',
    `<a ${Array.from({ length: 50_000 }, (_, i) => `xmlns:a${i}="b"`).join(' ')}/>`,
  ],
  ['one attribute by the thousand', `<a ${many('type="array" ', 50_000)}/>`],
  ['a long document type', `<!DOCTYPE a [${many('<!', 500_000)}`],
  ['a name of a mebibyte', `<${many('a', 1_048_000)}`],
  ['comments that do not end', many('<!--', 260_000)],
]
