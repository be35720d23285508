/** What stands on every developer page (C11.4). Parts between backticks are shown as code. */
export const FRAME_TEXTS = {
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
  help: 'Help',
  onThisPage: 'On this page',
} as const
