/** The texts of the first developer page (C11.4). Parts between backticks are shown as code. */

const whole = (milliseconds: number, unit: number): number => Math.round(milliseconds / unit)

/** A time in the largest unit in which it is a whole number: `15 minutes`. */
export function timeText(milliseconds: number): string {
  const units = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
  ] as const
  const [unit, name] = units.find(([each]) => milliseconds % each === 0) ?? [1000, 'second']
  const count = whole(milliseconds, unit)
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
  stepCallText: (operation: string) => `This calls ${operation}.`,
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
