/** The texts of the pages about operations (C11.4). Parts between backticks are shown as code. */
export const AREA_TEXTS = {
  lead: (area: string) => `The operations of the area ${area}.`,
  onThisPage: 'On this page',
  reportOnly:
    'Here no call is refused yet for its token, scope or target. That will change. Send a token with the right scope and target already now.',

  token: 'A token for the commands of this page',
  tokenText: (words: readonly string[]) =>
    `The commands below use the variable \`TOKEN\`. This command fills it, with ${words.length === 1 ? 'the scope' : 'the scopes'} that the operations of this page need.`,
  capitals: 'Replace the words in capital letters first.',

  scope: 'Scope',
  oneOf: 'One of these is enough:',
  allOf: 'All of these are needed:',
  eachOf: 'One of these lines is enough; of a line, all are needed:',
  orIncluding: 'A scope that includes it will do as well.',

  parameters: 'In the address',
  business: 'The code of the business. The token must be for it.',
  fund: 'The code of a fund of the business.',
  types: {
    '': 'A text.',
    uuid: 'A UUID, as `7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f`.',
    integer: 'A whole number from 0.',
  } as Readonly<Record<string, string>>,
  oneWord: 'One of:',
  pattern: 'A text that fits as a whole:',

  versions: 'Versions',
  usual: 'without asking',
  answers: 'Answers',
  inFrame: 'JSON or XML, in the usual frame',
  mayBeEmpty: '`Data` may be empty, where the data service has nothing to tell.',
  ownTypes: 'As they are, without a frame:',
  websocket: 'Websocket',
  websocketText: 'This address can also be opened as a websocket, with the same token.',

  body: 'Request body',
  bodyRequired: 'Required.',
  bodyOptional: 'You may leave it out.',
  bodyTypes: 'As',
  bodyLimit: (kib: number) => `At most ${kib} KiB.`,
  bodyStreamed: 'Of any size. It is passed on as it is.',

  errors: 'Errors',
  command: 'Command',
  membersOfBody: 'Members of the request body',
  membersOfData: 'Members of `Data` in the answer',
  memberHeads: ['Member', 'Type', 'Rule'],
  bodyExample: 'Request body',
  answerExample: (version: number | undefined) =>
    version === undefined ? 'Answer' : `Answer in version ${version}`,
  inXml: 'The same in XML',
  askFor: 'Ask for it with',

  required: 'required',
  anything: 'anything',
  list: (of: string) => `list of ${of}`,
  or: ' or ',
  typeWords: {
    string: 'text',
    number: 'number',
    integer: 'whole number',
    boolean: 'true or false',
    array: 'list',
    object: 'object',
    null: 'null',
  },
  rules: {
    enum: (values: readonly string[]) => `one of ${values.join(', ')}`,
    const: (value: string) => `always ${value}`,
    pattern: (pattern: string) => `fits ${pattern}`,
    length: (least: number | undefined, most: number | undefined) => between(least, most, 'characters'),
    items: (least: number | undefined, most: number | undefined) => between(least, most, 'items'),
    range: (least: number | undefined, most: number | undefined) => between(least, most, ''),
    format: {
      date: 'a date, as 2026-01-31',
      'date-time': 'date and time (RFC 3339)',
      uuid: 'a UUID',
      email: 'an e-mail address',
    },
    closed: 'no other members',
  },
} as const

function between(least: number | undefined, most: number | undefined, of: string): string {
  const bounds = [
    ...(least === undefined ? [] : [`at least ${least}`]),
    ...(most === undefined ? [] : [`at most ${most}`]),
  ]
  return `${bounds.join(', ')} ${of}`.trim()
}
