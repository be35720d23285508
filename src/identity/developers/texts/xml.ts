/** The texts of the page about XML (C11.4, C7.5). Parts between backticks are shown as code. */
export const XML_TEXTS = {
  title: 'XML and JSON',
  lead: 'Every operation speaks JSON and XML. The values are the same in both.',

  ask: 'Ask for a format',
  askText: (format: string) =>
    `Say with \`Accept\` which format you want. Without \`Accept\` you get ${format}. With \`Content-Type\` you say what your request body is.`,
  askHeads: ['You want', 'You send'],
  askRows: (vendor: string) => [
    ['JSON', '`Accept: application/json`'],
    ['XML', '`Accept: application/xml`'],
    ['version 2 of an action, as XML', `\`Accept: application/vnd.${vendor}.action.v2+xml\``],
    ['to send a body in JSON', '`Content-Type: application/json`'],
    ['to send a body in XML', '`Content-Type: application/xml`'],
    ['to send a body as a form', '`Content-Type: application/x-www-form-urlencoded`'],
  ],

  envelope: 'The frame of every answer',
  envelopeText:
    'In JSON an answer is an object with `Errors` and `Data`. In XML the root is `ApiResponse`, with the same two elements. A success has no errors; a failure has at least one, and its data is empty.',

  answers: 'Values in answers',
  answersText:
    'A member of an object is an element. XML has only text, so marks (attributes) say what the text is. The examples have line ends and indents to be readable; real answers have none.',
  answersHeads: ['JSON', 'XML'],
  answersRows: [
    ['text', 'the text of the element, without a mark'],
    ['number', 'the digits as they were written, with `type="number"`'],
    ['`true`, `false`', '`true` or `false`, with `type="boolean"`'],
    ['`null`', 'an empty element with `xsi:nil="true"`'],
    ['list', '`type="array"`, with one element for each item'],
    ['empty object', 'an empty element with `type="object"`'],
  ],
  everyKind: 'Every kind of value',
  items:
    'Items of a list are called `Item`, unless the operation has a name of its own for them. Characters that cannot stand in the name of an element are written as `_xHHHH_`: `a b` is `a_x0020_b`.',

  sending: 'XML that you send',
  sendingText: [
    'The root may have any name. You do not need marks where the operation describes its body: then the description says what is a number, a list or an object. Without a description, an element with elements in it is an object, and any other is a text.',
    'An item of a list may have any name. `null` needs `xsi:nil="true"`; an empty element is an empty text, list or object.',
  ],
  sentExample: 'A request body in XML',
  sentAsJson: 'The same body in JSON',

  refused: 'What is refused',
  refusedText: 'Each of these is answered 400. `Message` names line, column and reason.',
  refusedRules: (depth: number, count: number) => [
    'XML that is not well-formed, or not in UTF-8.',
    'A document type declaration (`<!DOCTYPE …>`), processing instructions, and entities other than `&amp;`, `&lt;`, `&gt;`, `&quot;`, `&apos;` and character references.',
    'Attributes other than `type`, `xsi:nil` and declarations of namespaces; prefixes.',
    'An element that holds both text and elements.',
    'An element twice, where the operation does not say that it is a list.',
    `More than ${depth} elements inside each other, or more than ${count} elements and attributes.`,
  ],
} as const
