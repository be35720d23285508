/** The texts of the developer pages (C11.4), a table a page. Parts between backticks are shown as code. */

/** A time in the largest unit in which it is a whole number: `15 minutes`. */
export function timeText(milliseconds: number): string {
  const units = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
  ] as const
  const [unit, name] = units.find(([each]) => milliseconds % each === 0) ?? [1000, 'second']
  const count = Math.round(milliseconds / unit)
  return count === 1 ? `one ${name}` : `${count} ${name}s`
}

export const START_TEXTS = {
  lead: 'How your software gets a token, calls the API and reads the answers.',

  what: 'What this API is',
  whatText: [
    'Your software calls the API over HTTP. It sends an access token with each call. The token says who calls, for which business, and what the call may do.',
    'Every address names a business, or a fund of a business. Answers are JSON or XML: your software chooses with the header `Accept`.',
  ],
  addresses: {
    api: 'Address of the API',
    token: 'Token endpoint',
    authorize: 'Login page for users',
    metadata: 'Metadata for OAuth libraries',
    openapi: 'OpenAPI document',
    help: 'Help',
  },

  first: 'Your first call',
  firstSample:
    'These commands work as they stand. They use a client and a user that were made for trying the API. Copy them into a terminal, in this order.',
  firstOwn:
    'Before you copy these commands, replace the words in capital letters: `CLIENT_ID` and `CLIENT_SECRET` are what you got for your software, `USERNAME` and `PASSWORD` belong to one of your users, `BUSINESS` is the code of a business.',
  stepToken: '1. Get a token',
  stepTokenText:
    'The command keeps the access token in the variable `TOKEN`. To see the whole answer, run the part from `curl` up to the last line that begins with `-d` or `--data-urlencode`.',
  answerOfToken: 'The answer looks like this:',
  tokenScope:
    '`scope` in the answer lists what you were given. It can be less than you asked for. `expires_in` is the number of seconds for which the token works.',
  stepCall: '2. Call the API',
  stepXml: '3. Read the same answer as XML',
  stepXmlText: 'Only the header `Accept` is different.',
  stepUser: '2. Ask who is logged in',

  kinds: 'Which kind of client are you?',
  kindsText:
    'A client is your software, as the service knows it. The operator of the API creates it for you and gives you its id. There are three kinds.',
  kindHeads: ['Kind', 'What it is', 'How it gets tokens', 'Secret'],
  kindRows: [
    [
      '`customer`',
      'Software that a customer runs for its own users.',
      'With the name and password of a user (`password`). It can also use the code flow, if it was created so.',
      'yes',
    ],
    [
      '`partner`',
      'A web application of another company.',
      'With the code flow (`authorization_code`): users log in on our page and agree there. It never sees a password.',
      'yes',
    ],
    [
      '`public`',
      'An app on a device or in a browser, which cannot keep a secret.',
      'With the code flow and PKCE. It sends only its id.',
      'no',
    ],
  ],

  targets: 'Targets: which business a token opens',
  targetsText: [
    'A token opens **one** business, or one fund of it. You say which one in `scope`, beside what you want to do. This part of the scope is called the target.',
  ],
  targetHeads: ['In the scope', 'What the token opens', 'Addresses'],
  targetRows: [
    [
      '`target:b/{business}`',
      'The business and all of its funds',
      '`/b/{business}/…`, `/f/{business}/{fund}/…`',
    ],
    ['`target:f/{business}/{fund}`', 'One fund of the business', '`/f/{business}/{fund}/…`'],
    [
      '`target:b`',
      'In the code flow only: the user chooses the business on the consent page',
      '`/b/…`, `/f/…`',
    ],
  ],
  targetsRules: [
    'For another business, get another token. One user can have tokens for several businesses at the same time.',
    'A token without a target opens no business: the calls are answered 404.',
    'Codes of businesses and funds are compared exactly. Upper and lower case differ.',
  ],

  code: 'Let a user log in: the code flow',
  codeText:
    'In this flow your software never sees a password. It sends the user’s browser to our login page. The user logs in and agrees, and the browser comes back to your software with a code. Your software changes the code for tokens. Most languages have a library for OAuth 2.0 or OpenID Connect that does these steps: give it the address of the metadata.',
  codeSteps: {
    proof: 'Make a proof (PKCE)',
    proofText:
      'Make a random text, the verifier, for each login, and keep it. Its hash, the challenge, goes with the next step. Make a second random text, `state`, and keep it too.',
    send: 'Send the browser to the login page',
    sendText:
      'Put all of this into one address. `redirect_uri` must be one that is registered for your client, character by character.',
    back: 'The browser comes back',
    backText: (issuer: string) =>
      `Check that \`state\` is yours and that \`iss\` is \`${issuer}\`. If not, stop: the answer was not meant for you. If the user refused, there is \`error\` in place of \`code\`.`,
    redeem: 'Change the code for tokens',
    redeemText: (lifetime: string) =>
      `Do it within ${lifetime}. A code works once. A public client sends \`client_id\` in the form in place of \`-u\`.`,
    call: 'Call the API',
    callText: 'Send `access_token` with each call, as in your first call.',
  },

  refresh: 'Keep a login: refresh tokens',
  refreshText: (access: string, login: string) => [
    `An access token works for ${access}. Ask for \`offline_access\` in the scope, and the answer has a refresh token too. With it you get new access tokens without the user, for up to ${login} after the login.`,
  ],
  refreshRules: (grace: string | undefined) => [
    'Each answer has a **new** refresh token. Store the new one and forget the old one.',
    ...(grace === undefined
      ? ['An old refresh token does not work again.']
      : [`If an answer got lost, send the old one again within ${grace}: you get the same new one.`]),
    'An old refresh token that is used later ends the whole login, because somebody may have stolen it. Then the user has to log in again.',
    'Never use one refresh token from two places at the same time.',
  ],

  good: 'What every client should do',
  goodRules: [
    'Send `Authorization: Bearer` and the token, with exactly this upper and lower case.',
    'On 401 with `error="invalid_token"`: get a new token, then call once more. On 401 with `error="insufficient_scope"`: get a token with the scope that the header `WWW-Authenticate` names.',
    'On 429 and 503: wait as many seconds as the header `Retry-After` says, then call again.',
    'Read errors by `Code`, which never changes. `Message` is for people.',
    'Keep `X-Request-Id` of an answer that is not what you expect. With it we can find the call.',
    'Treat tokens as text without meaning. What is inside them can change.',
    'Ignore members of an answer that you do not know. There may be new ones.',
  ],
} as const

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

  parameters: 'In the address',
  query: 'In the query',
  byDefault: (value: string) => `without it ${value}`,
  business: 'The code of the business. The token must be for it.',
  fund: 'The code of a fund of the business.',
  types: {
    '': 'A text.',
    uuid: 'A UUID, as `7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f`.',
    integer: 'A whole number from 0.',
  } as Readonly<Record<string, string>>,
  rest: 'One to 32 parts with slashes between them. Of each part:',
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
    never: 'must be left out',
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

/** Of the page about scopes (C5). */
export const SCOPE_TEXTS = {
  title: 'Scopes',
  lead: 'What a token may do. Ask for as little as your software needs: users see each scope in words before they agree.',
  how: 'How to ask',
  howExample: (scopes: readonly string[]) =>
    `For example: \`${[...scopes, 'target:b/{business}'].join(' ')}\`. The answer lists in \`scope\` what was given. What the client or the user may not have is left out; a name that is not on this page is refused.`,
  ask: 'Names stand in the parameter `scope`, with a space between two. The target, which says for which business, stands beside them.',
  data: 'Data of a business',
  dataText: 'They need a target: the business whose data the token opens.',
  person: 'The user',
  personText:
    'They are about the user who logged in. They need no target. `openid` gives you an id_token, and lets you ask for the others at the address of userinfo.',
  userinfo: 'Userinfo',
  includes: 'Includes',
  includedIn: 'Included in',
  opens: 'Opens',
  together: 'Needed, together with others, for',
  claims: 'Tells',
  targets: 'Targets',
  targetsText: 'They say which business or fund the token opens. A token has one at most.',
  targetRows: [
    ['`target:b/{business}`', 'The business and all of its funds'],
    ['`target:f/{business}/{fund}`', 'One fund of the business'],
    ['`target:b`', 'The user chooses the business on the consent page (code flow only)'],
  ],
} as const

/** What to do about each fault stands in errors-page.ts. */
export const ERROR_TEXTS = {
  title: 'Errors',
  lead: 'Every error that you can get: what it means, why it comes, and what to do.',
  form: 'What an error looks like',
  formText: [
    'Every error of the API has the same form, in JSON or in XML, as your `Accept` says. `Code` never changes: let your software decide by it, and by the status. `Message` is for people, and is one of the texts on this page. On 400 a few words follow that say which part is wrong.',
  ],
  oauthForm:
    'The token endpoint and the other endpoints for tokens answer as OAuth 2.0 (RFC 6749) says. The status is 400, if nothing else stands here.',
  jsonExample: 'An error in JSON',
  xmlExample: 'The same error in XML',
  oauthExample: 'An error of the token endpoint',
  requestId: 'Every answer has the header `X-Request-Id`. Keep it in your log: with it we find your call.',
  summary: 'All codes of the API',
  summaryHeads: ['Status', 'Code', 'In short'],
  message: 'Message',
  mend: 'What to do',
  identity: 'Errors of the token endpoint',
  identityText:
    'They have the members `error` and `error_description`. These are the values of `error`, with every text that `error_description` begins with.',
  browser: 'Errors of the login page',
  browserText: (page: string) =>
    `Some are shown to the user on a page. The others come back to your \`redirect_uri\`, with \`error\`, \`error_description\`, \`state\` and \`iss\`. The login page is \`${page}\`.`,
  others: 'Other statuses',
  othersText:
    'A data service behind the API may answer with another status from 400 to 499, such as 409 or 422. You get that status, with `API_BAD_REQUEST` or with the code of the data service. 403, 502 and 504 are never sent.',
  short: {
    'API_BAD_REQUEST 400': 'Something in the request is wrong. Correct it; the same request will fail again.',
    'API_NOT_AUTHORISED 401': 'No token, a token that does not work, or not the scope that is needed.',
    'API_NOT_FOUND 404': 'There is nothing at this address for your token.',
    'API_METHOD_NOT_ALLOWED 405': 'The address is right, the method is not.',
    'API_NOT_ACCEPTABLE 406': 'The type in Accept cannot be given.',
    'API_TOO_LARGE 413': 'The body is too large.',
    'API_TOO_LARGE 414': 'The address is too long.',
    'API_UNSUPPORTED_MEDIA_TYPE 415': 'The type of the body is not read here.',
    'API_RATE_LIMITED 429': 'Too many calls. Wait.',
    'API_TOO_LARGE 431': 'The headers are too large.',
    'API_INTERNAL_ERROR 500': 'Something is wrong on our side.',
    'API_OUTCOME_UNKNOWN 500': 'A change may have been made. Find out before you send it again.',
    'API_NOT_IMPLEMENTED 501': 'There is no such version.',
    'API_UNAVAILABLE 503': 'Closed, busy, or out of reach for a while. Wait.',
  } as Readonly<Record<string, string>>,
} as const

/** Of the page about XML (C7.5). */
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

/** Of the page about versions (C7.3). */
export const CHANGE_TEXTS = {
  title: 'Versions and changes',
  lead: 'How the API changes, and how your client goes on working.',

  versions: 'How versions work',
  versionsText: (vendor: string) => [
    'The API has a version, which stands in every address: `/api/1.0/`. Each operation has versions of its own. You choose one with `Accept`:',
    `\`Accept: application/vnd.${vendor}.action.v2+json\` asks for version 2 in JSON, \`…+xml\` for XML. \`Accept: application/json\` asks for no version: you get the one that the list below calls the usual one. A version that an operation does not have is answered 501.`,
    'A new version stands beside the old ones. A client that names a version goes on getting that one, as long as it is in the list.',
  ],

  several: 'Operations with several versions',
  none: 'No operation has more than one version at the moment.',
  heads: ['Operation', 'Versions', 'Usual', 'To ask for the newest'],

  compatible: 'Changes that your client must bear',
  compatibleText: 'They can come at any time, without a new version:',
  compatibleRules: [
    'New operations, areas and scopes.',
    'New members in answers, and members in another order.',
    'New members of a request body that you may leave out.',
    'New texts of `Message` and `error_description`. The codes stay.',
    'New response headers.',
    'Tokens that look different or are longer. They are text without meaning to you.',
    'Signing keys: they change by themselves. Read the key set again when an id_token names a key that you do not know.',
  ],

  breaking: 'Changes that come as a new version',
  breakingRules: [
    'A member of an answer is removed, gets another name or another type.',
    'A member of a request body becomes required, or fewer values are allowed.',
    'The same call means something else.',
  ],

  learn: 'How you learn of changes',
  pages: 'These pages',
  pagesAndDocument: 'These pages and the OpenAPI document',
  learnRules: (what: string) => [
    `${what} are made from what the service really does. They change in the moment in which the service changes.`,
    'They have the header `ETag`. Send its value back in `If-None-Match`: 304 means that nothing has changed. A program of yours can look once a day.',
    'If an answer of an operation has the header `Deprecation` or `Sunset`, the operation will go away. `Sunset` says when. Let your client write both into its log.',
  ],

  reportOnly: 'Areas that do not refuse yet',
  reportOnlyText:
    'In these areas no call is refused yet for its token, scope or target. That will change. Send a token with the right scope and target already now.',
} as const

export const FRAME_TEXTS = {
  /** On the page of an unknown path. */
  link: 'Read how to write an application',
  section: 'Developers',
  skip: 'Skip to the content',
  pages: 'Pages for developers',
  home: 'Get started',
  operations: 'Operations',
  reference: 'Reference',
  scopes: 'Scopes',
  errors: 'Errors',
  xml: 'XML and JSON',
  changes: 'Versions and changes',
  openapi: 'OpenAPI document',
} as const
