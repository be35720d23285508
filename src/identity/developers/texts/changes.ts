/** The texts of the page about versions (C11.4, C7.3). Parts between backticks are shown as code. */
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
