import type { Configuration } from '../../src/operate/settings/configuration.ts'

/** Sets members of the section `audit`. An extension adds that section: where it was deleted, nobody reads them. */
export const withAudit = (
  configuration: Configuration,
  members: Readonly<Record<string, unknown>>,
): Configuration => {
  const { audit } = configuration as { readonly audit?: object }
  const changed = { ...configuration, audit: { ...audit, ...members } }
  return changed
}
