/** The texts of the page about scopes (C11.4, C5). Parts between backticks are shown as code. */
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
