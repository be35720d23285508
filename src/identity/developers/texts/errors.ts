/** The texts of the page about errors (C11.4). What is to be done about each fault stands in error-guide.ts. */
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
