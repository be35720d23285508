/** For a configuration that extends the demo: a client that is told when a login ends. */
export const toldAt = (url: string): string =>
  `directory: { clients: { ledgerline: { backchannelLogoutUri: '${url}' } } }`
